"""Callbacks that users give to the trainers of frameworks; each makes a Profiler when training begins."""
