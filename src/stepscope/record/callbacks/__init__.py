"""Callbacks for the trainers of frameworks; each creates a Profiler when training begins."""
