"""Readers: of what other tools write and of our own recordings, one module or package a format."""
