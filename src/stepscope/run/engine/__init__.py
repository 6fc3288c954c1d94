"""How analyses run over ranks: in threads of this process or in worker processes, with the same answers."""

from stepscope.run.engine.base import Engine, Task
from stepscope.run.engine.processes import Processes
from stepscope.run.engine.threads import Threads

__all__ = ["Engine", "Processes", "Task", "Threads"]
