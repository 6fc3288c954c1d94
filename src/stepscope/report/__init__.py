"""Answers about a run, gathered once for every surface, and their written forms."""
