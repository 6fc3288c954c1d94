"""How questions are asked over ranks: by threads of this process or by worker processes, with the same answers."""

from stepscope.run.engine.base import Engine, Task
from stepscope.run.engine.processes import Processes
from stepscope.run.engine.threads import Threads

__all__ = ["Engine", "Processes", "Task", "Threads"]
