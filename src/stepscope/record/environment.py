"""Ranks and options from the environment, and the part of it that is stored with a recording."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

log = logging.getLogger("stepscope")

FRAMEWORKS = ("torch", "mindspore")
OPTIONS_VARIABLE = "STEPSCOPE_OPTIONS"
CLASSIC_VARIABLE = "MS_PROFILER_OPTIONS"
RUN_VARIABLE = "MS_PROFILER_RUN_CONFIG"
PATH_VARIABLE = "MS_DIAGNOSTIC_DATA_PATH"
FORBIDDEN_VARIABLE = "PROFILING_MODE"
EXTERNAL_VARIABLE = "PROFILER_SAMPLECONFIG"
"""Set if an external collector (msprof) already records; the Profiler then does nothing."""
CLASSIC_KEYS = (
    *("start", "output_path", "profile_memory", "profile_communication", "aicore_metrics", "l2_cache"),
    *("sync_enable", "data_process", "timeline_limit", "parallel_strategy", "op_time", "profile_framework"),
)
"""Keys allowed in `MS_PROFILER_OPTIONS`."""

_KEPT = re.compile(
    r"^(RANK|RANK_ID|RANK_SIZE|WORLD_SIZE|LOCAL_RANK|LOCAL_WORLD_SIZE|GROUP_RANK|NODE_RANK|DEVICE_ID|MASTER_(ADDR|PORT)"
    r"|(CUDA|ASCEND_RT|HIP|ROCR)_VISIBLE_DEVICES|PYTHON(HASHSEED|OPTIMIZE)|LD_PRELOAD"
    r"|(CUDA|HIP)_LAUNCH_BLOCKING|AMD_SERIALIZE_KERNEL|ACLNN_CACHE_LIMIT|HOST_CACHE_CAPACITY"
    r"|(NCCL|GLOO|HCCL|UCX|OMP|MKL|KMP|TORCH|TORCHELASTIC|PYTORCH|CUDNN|CUBLAS|MS|GLOG|ASCEND|PROFILING|SLURM)_.*)$"
)
_SECRET = re.compile(r"(?i)(token|secret|passw|api[_-]?key|credential|private)")
_MAX_TEXT = 1024


@dataclass
class Identity:
    """Who this process is, as far as the framework knows yet; None is unknown."""

    rank: int | None = None
    world_size: int | None = None
    local_rank: int | None = None
    device_id: int | None = None


def stated_identity(*, quiet: bool = False) -> Identity:
    """Rank, world size, local rank and device as set by launchers; a value that is not a number counts as 0, with a
    warning unless `quiet`."""

    def number(*names: str) -> int | None:
        name = next(filter(os.environ.get, names), None)
        if name is None:
            return None
        found = number_of(name)
        if found is None and not quiet:
            log.warning("Profiler: %s is %r, which is not a number; 0 is used", name, os.environ[name])
        return found or 0

    return Identity(
        rank=number("RANK", "RANK_ID"),
        world_size=number("WORLD_SIZE", "RANK_SIZE", "MS_WORKER_NUM"),
        local_rank=number("LOCAL_RANK"),
        device_id=number("DEVICE_ID"),
    )


def number_of(variable: str) -> int | None:
    """The number in a variable of this process; None if it is not set, or is not a number."""
    text = os.environ.get(variable, "")
    return int(text) if text.isdecimal() else None


def output_root(given: str | None) -> Path:
    """The `profiler` directory for the given output path.

    Raises:
        RuntimeError: If the path is empty or contains characters that MindSpore's tools do not accept.
    """
    stated = os.environ.get(PATH_VARIABLE)
    if given is None:
        chosen = stated or "data"
    else:
        chosen = given
        if stated:
            log.warning("Profiler: both output_path and %s are set; output_path %r is used", PATH_VARIABLE, given)
    if not chosen:
        raise RuntimeError("Profiler: output_path is empty. Give a directory or omit the option")
    real = os.path.realpath(chosen)
    if not re.fullmatch(r"[A-Za-z0-9\-_./\\@]+", real):
        odd = "".join(sorted(set(re.findall(r"[^A-Za-z0-9\-_./\\@]", real))))
        raise RuntimeError(
            f"Profiler: output_path {real!r} contains {odd!r}. Only letters, digits and - _ . / \\ @ are allowed"
        )
    return Path(real) / "profiler"


def options_from_environment() -> dict[str, Any] | None:
    """Options of a start from the environment; None if not requested, or invalid, which is logged."""
    own = _parsed(OPTIONS_VARIABLE)
    if own is not None:
        return own if _starts(own, default=True, name=OPTIONS_VARIABLE) else None
    classic = _parsed(CLASSIC_VARIABLE)
    if classic is None or not _starts(classic, default=False, name=CLASSIC_VARIABLE):
        return None
    for name in [name for name in classic if name not in CLASSIC_KEYS]:
        log.warning(
            "%s: %r is not an option of MindSpore's Profiler and has no effect; %s accepts all options",
            CLASSIC_VARIABLE,
            name,
            OPTIONS_VARIABLE,
        )
        del classic[name]
    path = classic.get("output_path")
    if path is not None and not (isinstance(path, str) and Path(path).is_absolute()):
        log.warning("%s: output_path must be an absolute path, not %r; ./data is used", CLASSIC_VARIABLE, path)
        classic["output_path"] = str(Path.cwd() / "data")
    return classic


def _parsed(name: str) -> dict[str, Any] | None:
    text = os.environ.get(name)
    if not text:
        return None
    try:
        options = json.loads(text)
    except ValueError as error:
        log.error('%s is not valid JSON (%s); nothing is recorded. Example: {"start": true}', name, error)
        return None
    if not isinstance(options, dict):
        log.error('%s must be a JSON object like {"start": true}, not %s; nothing is recorded', name, text[:80])
        return None
    return options


def _starts(options: dict[str, Any], *, default: bool, name: str) -> bool:
    start = options.pop("start", default)
    if not isinstance(start, bool):
        log.warning('%s: "start" must be true or false, not %r; nothing is recorded', name, start)
        return False
    return start


def kept_environment() -> dict[str, str]:
    """The variables that affect how a job runs, without secrets."""
    return {
        name: value[:_MAX_TEXT]
        for name, value in sorted(os.environ.items())
        if _KEPT.match(name) and not _SECRET.search(name)
    }


def kept_arguments() -> list[str]:
    """The script and its arguments, without secrets."""
    shown: list[str] = []
    hide_next = False
    for argument in getattr(sys, "orig_argv", sys.argv)[:200]:
        name, separator, _ = argument.partition("=")
        if hide_next and not argument.startswith("-"):
            shown.append("***")
        elif _SECRET.search(name) and separator:
            shown.append(f"{name}=***")
        else:
            shown.append(argument[:_MAX_TEXT])
        hide_next = bool(argument.startswith("-") and not separator and _SECRET.search(name))
    return shown
