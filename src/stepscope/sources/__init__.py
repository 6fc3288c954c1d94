"""Readers of the formats that other tools write, one module or package a format."""
