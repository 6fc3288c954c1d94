"""Runs in the process that we attach to: connects back, and does there what the other side asks for.

A copy of this file is executed by one injected line, on the main thread, between any two instructions of the script. So
it only starts a thread; the thread does the rest, and asks the main thread for the few moments when hooks are installed
and removed. It needs nothing but the standard library: stepscope itself is imported by `Finder`, which finds stepscope
and nothing else. Everything that it adds to the process is taken back at the end.
"""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import json
import logging
import os
import select
import socket
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

NAME = "_stepscope_attached"
"""Module under which a visit can be found while it lasts."""
OURS = "stepscope"
OLDEST = (3, 10)
PATIENCE_S = 1.0
"""After this time, a main thread that waits for other Python threads is no longer asked to do something."""
RETRY_S = 0.002
WAITING = ("threading.py", "queue.py", "selectors.py", "subprocess.py", "socket.py")
"""Files of Python's library in which a main thread waits that leaves the training to another thread."""
OPTIMIZERS, OPTIMIZER_FILE = "torch/optim", "torch/optim/optimizer.py"


class Finder:
    """Finds some packages in our directories, so that no other package of them hides one of the process.

    Args:
        places: Directory of each package.
    """

    def __init__(self, places: dict[str, str]) -> None:
        self.places = places

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:  # noqa: ARG002 - the interface
        """Where a package is; None for all others. Their submodules are found as usual."""
        place = self.places.get(name)
        return None if place is None else importlib.machinery.PathFinder.find_spec(name, [place])


class Visit(logging.Handler):
    """One visit of a process: the connection to the other side, and what has been added to the process.

    Args:
        room: The private directory with the other side's socket.
    """

    def __init__(self, room: str) -> None:
        super().__init__(logging.INFO)
        self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._connection.settimeout(PATIENCE_S)
        self._connection.connect(room + "/socket")
        self._received, self._heard = b"", True
        self._sending = threading.Lock()
        self._before = set(sys.modules)
        self._importers = set(sys.path_importer_cache)
        self._finders: list[Finder] = []
        self._page = 0
        self._patience_s = PATIENCE_S
        self._propagated = True
        self._main = threading.main_thread().ident
        self.stays = False
        """What was asked for goes on after the connection ends, e.g. a live worker."""
        self.thread = threading.Thread(target=self._run, name="stepscope-attached", daemon=True)

    # What the work in here uses

    def say(self, kind: str, **content: Any) -> bool:
        """Send a message; returns whether anybody listens."""
        line = json.dumps({"type": kind, **content}, default=str).encode() + b"\n"
        with self._sending:
            if self._heard:
                try:
                    self._connection.sendall(line)
                except OSError:  # also if it does not read: nobody in here waits for it twice
                    self._heard = False
            return self._heard

    def orders(self, wait_s: float) -> Iterator[dict[str, Any]]:
        """The messages that arrive within some time.

        Raises:
            EOFError: If the other side is gone.
        """
        if b"\n" not in self._received and select.select([self._connection], [], [], wait_s)[0]:
            try:
                more = self._connection.recv(65536)
            except OSError as error:
                raise EOFError from error
            if not more:
                raise EOFError
            self._received += more
        *lines, self._received = self._received.split(b"\n")
        for line in lines:
            yield json.loads(line)

    def on_main(self, action: Callable[[], Any]) -> Any:
        """Run `action` on the main thread, at a moment when hooks may be added and removed.

        If the main thread waits in Python for other threads, it is run on this thread instead. If it is in compiled
        code, this waits until it returns.

        Returns:
            What `action` returned; its exception is raised here.
        """
        task = _Task(action)
        asked_s = time.monotonic()
        reported = False
        while not task.over:
            task.ask()
            if task.called.wait(RETRY_S * 10):
                time.sleep(0 if task.over else RETRY_S)
                continue
            waited_s = time.monotonic() - asked_s
            frame = sys._current_frames().get(self._main or 0)
            if waited_s > self._patience_s and frame is not None and Path(frame.f_code.co_filename).name in WAITING:
                self._patience_s = 0.0  # it will not take part next time either
                task.run_here()
            elif waited_s > 2 * PATIENCE_S and not reported:
                reported = True
                self.say("waiting", where=_place(frame))
        return task.result()

    def place(self) -> str:
        """Where the main thread is, e.g. `train.py:31 in step`."""
        return _place(sys._current_frames().get(self._main or 0))

    def abandon(self) -> None:
        """In a forked child: the connection is the parent's."""
        self._sending, self._heard = threading.Lock(), False
        self._connection.close()

    def emit(self, record: logging.LogRecord) -> None:
        """A message of our logger: for the other side, not for the script's own log."""
        self.say("log", level=record.levelname, text=record.getMessage())

    # The visit itself

    def _run(self) -> None:
        try:
            if not self.say("hello", pid=os.getpid(), version=list(sys.version_info[:3]), executable=sys.executable):
                return
            self._follow()
        except EOFError:
            pass
        except BaseException as error:
            self.say("error", text=f"{type(error).__name__}: {error}", module=getattr(error, "name", None) or "")
        finally:
            self._leave()

    def _follow(self) -> None:
        while True:
            for order in self.orders(60):
                if order["type"] == "bye":
                    return
                self._page = order.get("page", 0)
                self._enter(order)
                module = importlib.import_module(order["module"])
                module.work(self, order)
                return

    def _enter(self, order: dict[str, Any]) -> None:
        """Make stepscope importable."""
        if sys.version_info < OLDEST:
            raise RuntimeError(f"stepscope requires Python {'.'.join(map(str, OLDEST))} or newer")
        already = sys.modules.get(OURS)
        if already is not None:
            version = getattr(already, "__version__", "of unknown version")
            if version != order["version"]:
                raise RuntimeError(f"the process has loaded another stepscope, {version} from {already.__file__}")
        else:
            self._finders.append(Finder({OURS: order["home"]}))
            sys.meta_path.insert(0, self._finders[-1])
        lacking = {name: place for name, place in order["lent"].items() if not _can_import(name)}
        if lacking:
            self._finders.append(Finder(lacking))
            sys.meta_path.append(self._finders[-1])
        logger = logging.getLogger(OURS)
        self._propagated, logger.propagate = logger.propagate, False
        logger.addHandler(self)

    def _leave(self) -> None:
        """Take back everything, as the last thing on this thread."""
        try:
            logger = logging.getLogger(OURS)
            logger.removeHandler(self)
            logger.propagate = self._propagated
            if self.stays:
                self._remain()
            else:
                self.forget_modules()
            page, self._page = self._page, 0
            if page:
                libc = ctypes.CDLL(None)
                libc.munmap(ctypes.c_void_p(page), ctypes.c_size_t(4096))
            self.say("left", modules=sorted(set(sys.modules) - self._before), threads=threading.active_count() - 1)
        finally:
            self._connection.close()
            self.close()

    def _remain(self) -> None:
        """Be found by a later visit, which takes back what this one has added."""
        module = types.ModuleType(NAME)
        module.visit = self  # type: ignore[attr-defined]
        sys.modules[NAME] = module

    def forget_modules(self) -> None:
        """Remove the modules that this visit has brought, and all that finds them."""
        for finder in self._finders:
            if finder in sys.meta_path:
                sys.meta_path.remove(finder)
        packages = {name for finder in self._finders for name in finder.places}
        self._finders.clear()
        for name in list(sys.modules):
            if name.partition(".")[0] in packages and name not in self._before:
                del sys.modules[name]
        if OURS in packages:
            for name in set(logging.Logger.manager.loggerDict):
                if name == OURS or name.startswith(OURS + "."):
                    del logging.Logger.manager.loggerDict[name]
        for place in set(sys.path_importer_cache) - self._importers:
            if any(part in Path(place).parts for part in packages):
                del sys.path_importer_cache[place]
        if packages:
            sys.modules.pop(NAME, None)


class _Task:
    """A function to be called once, on the main thread or, if that waits, on another one."""

    def __init__(self, action: Callable[[], Any]) -> None:
        self._action = action
        self._answer: Any = None
        self._error: BaseException | None = None
        self._mutex = threading.Lock()
        self.over = False
        self.called = threading.Event()
        self._is_asked = False
        self._call = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(self._pending)

    def ask(self) -> None:
        """Have it called by the main thread as soon as that runs Python, unless it will be anyway. Python takes a few
        such calls at a time; if there are more, ask again later."""
        if self._is_asked:
            return
        self._is_asked = True
        self.called.clear()
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._call))  # Python calls it, however late
        if ctypes.pythonapi.Py_AddPendingCall(self._call, None):
            self._is_asked = False
            ctypes.pythonapi.Py_DecRef(ctypes.py_object(self._call))

    def run_here(self) -> None:
        """Call it on this thread, while all others stand between two of their instructions."""
        interval = sys.getswitchinterval()
        sys.setswitchinterval(10)
        try:
            self._attempt()
        finally:
            sys.setswitchinterval(interval)

    def result(self) -> Any:
        """What the function returned, once it is over."""
        if self._error is not None:
            raise self._error
        return self._answer

    def _pending(self, _: Any) -> int:
        try:
            self._attempt()
        except KeyboardInterrupt:
            _interrupt()
        except BaseException:
            pass
        self._is_asked = False
        self.called.set()
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(self._call))
        return 0

    def _attempt(self) -> None:
        with self._mutex:
            if self.over or not all(_is_safe(frame) for frame in sys._current_frames().values()):
                return
            try:
                self._answer = self._action()
            except KeyboardInterrupt as error:
                self._error = RuntimeError("interrupted by Ctrl-C in the process")
                self._error.__cause__ = error
                _interrupt()
            except BaseException as error:
                self._error = error
            self.over = True


def _is_safe(frame: types.FrameType | None) -> bool:
    """Whether a thread does not go through hooks of optimizers now, whose list must not change meanwhile, and is not in
    the middle of code of ours. Threads of the recorder go through no hooks, wherever they wait, e.g. for the clocks of
    ranks that nobody attaches to."""
    if _is_of_recorder(frame):
        return True
    inner = None
    while frame is not None:
        file = frame.f_code.co_filename
        if file == __file__ or file.endswith(("/attach/visitor.py", "/attach/recording.py", "/attach/worker.py")):
            frame = frame.f_back
            continue
        if inner is None and "/stepscope/record/" in file:
            return False
        if (
            file.endswith(OPTIMIZER_FILE)
            and frame.f_code.co_name == "wrapper"
            and (inner is None or OPTIMIZERS not in inner)
        ):
            return False
        inner, frame = file, frame.f_back
    return True


def _is_of_recorder(frame: types.FrameType | None) -> bool:
    """Whether `own_thread` has started a thread."""
    while frame is not None:
        if frame.f_code.co_name == "run" and frame.f_code.co_filename.endswith("/stepscope/record/process_facts.py"):
            return True
        frame = frame.f_back
    return False


def _place(frame: types.FrameType | None) -> str:
    """The innermost line of the user's own code, and what it calls."""
    inner = frame
    while frame is not None and (
        "site-packages" in frame.f_code.co_filename or frame.f_code.co_filename.startswith(sys.prefix)
    ):
        frame = frame.f_back
    shown = frame or inner
    if shown is None:
        return "unknown"
    return f"{Path(shown.f_code.co_filename).name}:{shown.f_lineno} in {shown.f_code.co_name}"


def _interrupt() -> None:
    import _thread  # noqa: PLC0415 - almost never needed

    _thread.interrupt_main()


def _can_import(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def visit(room: str) -> None:
    """Called by the injected line, on the main thread. Never raises."""
    try:
        there = Visit(room)
        there.thread.start()
    except KeyboardInterrupt:
        _interrupt()
    except BaseException:
        pass  # nobody listens any more


if "ROOM" in globals():
    visit(globals()["ROOM"])
