"""Flame graphs of the tree of calls (`call_tree`): as files of other tools, and as pages that need none."""
