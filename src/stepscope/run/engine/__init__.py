"""Engines: where analyses over ranks are carried out, in threads, worker processes or a Ray cluster."""

from stepscope.run.engine.base import Engine, Task
from stepscope.run.engine.named import engine_of
from stepscope.run.engine.processes import Processes
from stepscope.run.engine.ray import Ray
from stepscope.run.engine.threads import Threads

__all__ = ["Engine", "Processes", "Ray", "Task", "Threads", "engine_of"]
