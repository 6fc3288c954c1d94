"""Ascend rank directories with SQLite databases, which msprof-analyze and MindStudio Insight read."""
