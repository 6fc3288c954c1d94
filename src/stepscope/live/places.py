"""Where the live parts of a job meet: directories, sockets, ports and the name of the job."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from stepscope.errors import StepscopeError

MANAGER_PORT, PROXY_PORT = 9601, 9602
LOOPBACK = "127.0.0.1"
BASE_VARIABLE = "STEPSCOPE_LIVE_DIR"
STATE_VARIABLE = "STEPSCOPE_LIVE_STATE"
SOCKET_VARIABLE = "STEPSCOPE_LIVE_SOCKET"
SWITCH_FILE_VARIABLE = "STEPSCOPE_LIVE_SWITCH_FILE"
TASK_VARIABLE = "MINDX_TASK_ID"
CLUSTER_BASE = Path("/user/cluster-info/profiling")
"""Where MindCluster mounts the records of a job."""
CLUSTER_SWITCH_FILE = Path("/user/cluster-info/datatrace-config/profilingSwitch")
"""Where MindCluster mounts the switches of a job."""
DEFAULT_TASK = "default_task_id"


def base_directory() -> Path:
    """Directory of the records of all jobs: `STEPSCOPE_LIVE_DIR`, else MindCluster's if it exists and is writable, else
    the user's own.

    Raises:
        StepscopeError: If the user has none.
    """
    chosen = os.environ.get(BASE_VARIABLE)
    if chosen:
        return Path(chosen).absolute()
    if os.access(CLUSTER_BASE, os.W_OK | os.X_OK):
        return CLUSTER_BASE
    return _own(BASE_VARIABLE) / "live"


def state_directory() -> Path:
    """Directory in which managers keep the switches of their jobs: `STEPSCOPE_LIVE_STATE`, else the user's own.

    Raises:
        StepscopeError: If the user has none.
    """
    chosen = os.environ.get(STATE_VARIABLE)
    if chosen:
        return Path(chosen).absolute()
    return _own(STATE_VARIABLE) / "managers"


def _own(variable: str) -> Path:
    state = os.environ.get("XDG_STATE_HOME")
    try:
        return Path(state or Path.home() / ".local" / "state") / "stepscope"
    except RuntimeError as error:  # e.g. a container that runs as a user it does not know
        raise StepscopeError(f"this user has no home directory. Set {variable} to a directory of yours") from error


def switch_file() -> Path | None:
    """The mounted file with the switches: `STEPSCOPE_LIVE_SWITCH_FILE`, else MindCluster's if its directory exists."""
    chosen = os.environ.get(SWITCH_FILE_VARIABLE)
    if chosen:
        return Path(chosen).absolute()
    return CLUSTER_SWITCH_FILE if CLUSTER_SWITCH_FILE.parent.is_dir() else None


def socket_path(port: int = PROXY_PORT) -> Path:
    """The Unix socket on which the proxy of this node that listens on `port` accepts workers of the same user."""
    chosen = os.environ.get(SOCKET_VARIABLE)
    if chosen:
        return Path(chosen).absolute()
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    room = Path(runtime) / "stepscope" if runtime else Path(tempfile.gettempdir()) / f"stepscope-{os.getuid()}"
    return room / f"live-{port}.sock"


def manager_socket_path(port: int = MANAGER_PORT) -> Path:
    """The Unix socket on which the manager that listens on `port` serves this user on its own node."""
    return socket_path().with_name(f"manager-{port}.sock")


def task_id() -> str:
    """The job that this process belongs to: `MINDX_TASK_ID`, else a name that all ranks of the job derive from what its
    launcher has set, so that they write below one directory."""
    stated = os.environ.get(TASK_VARIABLE)
    if stated:
        return safe_name(stated)
    known = [os.environ.get(name, "") for name in _LAUNCHERS]
    return safe_name("_".join([DEFAULT_TASK, *filter(None, known)]))


_LAUNCHERS = ("SLURM_JOB_ID", "TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT", "MS_SCHED_HOST", "MS_SCHED_PORT")


def safe_name(text: str) -> str:
    """A text as the name of a directory: other characters than letters, digits and `._-` become `_`."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", text)[:200].lstrip(".") or "_"
