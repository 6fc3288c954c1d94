"""Workers in a Ray cluster: processes that answer messages like those of `processes`, on any node of the cluster.

Ray is an extra and is imported when a cluster is first used.
"""

from __future__ import annotations

import atexit
import logging
import os
import secrets
import shutil
import socket
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stepscope._version import __version__
from stepscope.errors import StepscopeError
from stepscope.processes import worker_environment

_LOG = logging.getLogger(__name__)

CLIENT_PORT = 10001
"""Where clusters serve programs on other machines (`ray[client]`); at other ports they serve their own nodes."""

_THIS = "auto"
"""The cluster of which this machine is a node."""

_CONNECT_S = 5.0
_START_S = 120.0
"""How long a worker may take to start, chosen by us: a node may have to load Python from a slow disk."""

_LOCAL_STORE_BYTES = 128 << 20
"""Room for messages in a cluster of our own: only answers and what is asked travel."""

_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_DEDUP_LOGS": "0"}

_TIMED_OUT = "timed out"
"""In Ray's errors if one of its processes was not ready in time (its own limits, 30 s each); seen on busy machines,
where a second start succeeded."""


class WorkerLost(Exception):
    """A worker died, or its node cannot be reached any more; the text says how."""


class RayCluster:
    """A Ray cluster.

    One that runs already is left as it is. Otherwise one is started on this machine: without a dashboard, for this
    process alone, and it ends, with all its files, with this object or the process.

    Args:
        address: `HOST:PORT`, or `auto` for the cluster of which this machine is a node. Default: start one, unless this
            process is connected to one.
        count: Number of workers. Default: one per CPU of the cluster.
    """

    def __init__(self, address: str | None = None, count: int | None = None) -> None:
        if count is not None and count < 1:
            raise StepscopeError(f"{count} workers cannot answer. Give 1 or more, or None for the default")
        self.address = address
        self._count = count
        self._lock = threading.Lock()
        self._ray: Any = None
        self._end: weakref.finalize[..., RayCluster] | None = None
        self._workers: weakref.WeakSet[RayWorker] = weakref.WeakSet()

    @property
    def count(self) -> int:
        """Number of workers; connects to the cluster.

        Raises:
            StepscopeError: If Ray is not installed, or the cluster cannot be reached.
        """
        cpus = int(self._connected().cluster_resources().get("CPU", 0))
        if not cpus:
            raise StepscopeError(f"the Ray cluster{self._where()} has no CPUs for workers")
        return cpus if self._count is None else min(self._count, cpus)

    def worker(self, serve: str) -> RayWorker:
        """A new worker that serves what a function without arguments (`module:name`) returns."""
        worker = RayWorker(self._connected(), serve, self._where())
        with self._lock:
            self._workers.add(worker)
        return worker

    def make_room(self) -> int:
        """End the workers that do nothing now, which would keep their CPUs from others; they start again when asked.

        Returns:
            How many go on with what they do.
        """
        with self._lock:
            workers = list(self._workers)
        return sum(not worker.end_if_idle() for worker in workers)

    def close(self) -> None:
        """End the cluster if it was started here, else only the connection, if it is ours."""
        with self._lock:
            if self._end is not None:
                self._end()
            self._end = self._ray = None

    def _where(self) -> str:
        return "" if self.address is None else f" at {self.address}"

    def _connected(self) -> Any:
        with self._lock:
            if self._ray is None or not self._ray.is_initialized():
                self._ray = self._connect()
            return self._ray

    def _connect(self) -> Any:
        with _environment({**_QUIET, **(_own_token() if self.address is None else _known_token())}):
            try:
                import ray  # an extra, which takes a second to load
            except ImportError as error:
                raise StepscopeError("the engine `ray` needs Ray: pip install 'stepscope[ray]'") from error
            if self.address not in (None, _THIS):
                _reach(self.address)
            if ray.is_initialized():  # by the user, who also ends it
                there = ray.get_runtime_context().gcs_address
                if self.address not in (None, _THIS, there):
                    raise StepscopeError(f"this process is connected to the Ray cluster at {there}, not {self.address}")
                return ray
            folder = None
            try:
                if self.address is None:
                    folder = _short_folder()
                    try:
                        _start(ray, folder, self._count)
                    except Exception as error:
                        if _TIMED_OUT not in str(error).lower():
                            raise
                        _ended(ray, folder)
                        folder = _short_folder()
                        _start(ray, folder, self._count)
                else:
                    _join(ray, self.address)
            except BaseException as error:  # Ray's own errors have no common class; and the user may interrupt it
                _ended(ray, folder)
                if not isinstance(error, Exception):
                    raise
                problem = " ".join(str(error).split()) or type(error).__name__
                what = f"no connection to the Ray cluster{self._where()}" if self.address else "Ray does not start here"
                raise StepscopeError(f"{what}: {problem}") from error
        self._end = weakref.finalize(self, _ended, ray, folder)
        _silence()
        return ray


class RayWorker:
    """One worker, started when needed, and again after it was lost.

    Args:
        ray: The module, connected.
        serve: What it serves, see `RayCluster.worker`.
        where: The cluster, for messages.
    """

    def __init__(self, ray: Any, serve: str, where: str) -> None:
        self._ray, self._serve, self._where = ray, serve, where
        self._actor: Any = None
        self.at_work = threading.RLock()
        """Held while it must not be ended: from the start of a call to its reply, or to that of several calls."""
        self.node = ""
        """Address of the node on which it runs, once it does."""

    @property
    def is_started(self) -> bool:
        """Whether it runs and has what it was sent."""
        return self._actor is not None

    def start(self) -> None:
        """Start it if it does not run.

        Raises:
            StepscopeError: If it does not start in time, or another version is installed there.
        """
        if self._actor is not None:
            return
        actor = _actor_class(self._ray).remote(self._serve, _search_path(), worker_environment(1))
        try:
            self.node, version = self._ray.get(actor.hello.remote(), timeout=_START_S)
        except self._ray.exceptions.GetTimeoutError as error:
            self._ray.kill(actor)
            problem = f"no worker started within {_START_S:.0f} s: all of its CPUs are busy or reserved"
            raise StepscopeError(f"the Ray cluster{self._where}: {problem}") from error
        except self._ray.exceptions.RayError as error:
            text = str(error)
            if "ModuleNotFoundError" in text and "stepscope" in text:
                raise StepscopeError(
                    f"the Ray cluster{self._where}: stepscope {__version__} is not installed on its nodes"
                ) from error
            raise WorkerLost(_first_line(error)) from error
        if version != __version__:
            self._ray.kill(actor)
            raise StepscopeError(
                f"node {self.node} of the Ray cluster{self._where} has stepscope {version}; {__version__} is needed"
            )
        self._actor = actor

    def ask(self, payload: bytes) -> bytes:
        """The reply to a message; empty if it needs none.

        Raises:
            WorkerLost: If the worker dies, or did so before.
        """
        return bytes(self._call("ask", payload))

    def missing(self, paths: Sequence[str]) -> list[str]:
        """Those of some paths that do not exist on its node; raises like `ask`."""
        return list(self._call("missing", list(paths)))

    def _call(self, method: str, argument: Any) -> Any:
        with self.at_work:
            self.start()
            try:
                return self._ray.get(getattr(self._actor, method).remote(argument))
            except self._ray.exceptions.RayError as error:
                self.end()
                raise WorkerLost(_first_line(error)) from error

    def end_if_idle(self) -> bool:
        """End the process unless it is at work; whether it does not run any more."""
        if not self.at_work.acquire(blocking=False):
            return False
        try:
            self.end()
        finally:
            self.at_work.release()
        return True

    def end(self) -> None:
        """End the process; what was sent to it is forgotten."""
        if self._actor is not None and self._ray.is_initialized():
            self._ray.kill(self._actor)
        self._actor = None


def _actor_class(ray: Any) -> Any:
    """The class of workers; defined here, so that Ray sends its code and nodes need not find this module first."""

    class Worker:
        def __init__(self, serve: str, paths: list[str], environment: dict[str, str]) -> None:
            import importlib  # noqa: PLC0415
            import os  # noqa: PLC0415
            import sys  # noqa: PLC0415

            os.environ.update({**environment, **os.environ, "POLARS_MAX_THREADS": "1"})  # before Polars is loaded
            sys.path.extend(path for path in paths if path not in sys.path and os.path.isdir(path))  # noqa: PTH112
            module, _, name = serve.partition(":")
            self.serve = getattr(importlib.import_module(module), name)()

        def hello(self) -> tuple[str, str]:
            import ray

            from stepscope._version import __version__  # noqa: PLC0415

            return str(ray.util.get_node_ip_address()), __version__

        def missing(self, paths: list[str]) -> list[str]:
            import os  # noqa: PLC0415

            return [path for path in paths if not os.path.exists(path)]  # noqa: PTH110

        def ask(self, payload: bytes) -> bytes:
            reply: bytes = self.serve(payload)
            return reply

    return ray.remote(num_cpus=1, max_restarts=0, scheduling_strategy="SPREAD")(Worker)


def _start(ray: Any, folder: str, count: int | None) -> None:
    """Start a cluster on this machine, which nobody else can reach and which shows nothing."""
    ray.init(
        address="local",
        num_cpus=count,
        num_gpus=0,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        object_store_memory=_LOCAL_STORE_BYTES,
        _temp_dir=folder,
        _node_ip_address="127.0.0.1",
    )


def _reach(address: str) -> None:
    """Try whether anybody answers at an address; Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise StepscopeError(f"{address!r} is not the address of a Ray cluster. Give ray://HOST:PORT or ray://auto")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S).close()
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StepscopeError(
            f"no Ray cluster answers at {address} ({reason}). Start one with `ray start --head`, or leave out the "
            "address to start one here"
        ) from error


def _join(ray: Any, address: str) -> None:
    """Connect to a cluster that runs."""
    name = f"ray://{address}" if address.endswith(f":{CLIENT_PORT}") else address
    ray.init(address=name, log_to_driver=False, logging_level=logging.ERROR)


def _own_token() -> dict[str, str]:
    """Variables by which a cluster of our own, which listens at all addresses, serves only processes that it started.

    Ray reads them when it is loaded; a process that has loaded it without them goes on as its user chose.
    """
    if _OWN_TOKEN or "ray" not in sys.modules:
        _OWN_TOKEN.setdefault("RAY_AUTH_MODE", "token")
        _OWN_TOKEN.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    return _OWN_TOKEN


_OWN_TOKEN: dict[str, str] = {}


def _known_token() -> dict[str, str]:
    """Variables by which Ray uses the token that this user has for clusters, which some versions do only if told to."""
    file = Path.home() / ".ray" / "auth_token"
    is_there = "RAY_AUTH_TOKEN" in os.environ or "RAY_AUTH_TOKEN_PATH" in os.environ or file.exists()
    return {"RAY_AUTH_MODE": "token"} if is_there else {}


def _silence() -> None:
    """Log what Ray says about workers instead of having it printed among the answers on standard output."""
    module = sys.modules.get("ray._private.worker")
    if module is not None and hasattr(module, "print_to_stdstream"):
        module.print_to_stdstream = lambda said, *_, **__: _LOG.info("Ray: %s", said)  # type: ignore[attr-defined]


def _ended(ray: Any, folder: str | None) -> None:
    ray.shutdown()
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def _short_folder() -> str:
    """A new directory for the files of a cluster: names of its sockets must not be longer than about 100 bytes."""
    most = 32
    usual = tempfile.gettempdir()
    folder = tempfile.mkdtemp(prefix="ss-ray-", dir=usual if len(usual) <= most else "/tmp")
    atexit.register(
        shutil.rmtree, folder, ignore_errors=True
    )  # after what Ray registers later, which ends its processes
    return folder


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Variables for the processes that are started meanwhile, unless the user has set them."""
    new = {name: value for name, value in values.items() if name not in os.environ}
    os.environ.update(new)
    try:
        yield
    finally:
        for name in new:
            os.environ.pop(name, None)


def _search_path() -> list[str]:
    return [path for path in sys.path if path]


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
