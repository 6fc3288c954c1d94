"""The `rank-<R>_<stamp>_ascend_ms` directory that msprof-analyze and MindStudio Insight read."""
