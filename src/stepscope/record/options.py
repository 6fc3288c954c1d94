"""The options of the Profiler: types, defaults, supported devices, and what happens to a bad value.

Names, defaults and reactions are those of MindSpore's Profiler (2.3). stepscope supports some options on more devices
(`also`). Options that only stepscope has come last.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from stepscope.record.schedule import Action, as_schedule

log = logging.getLogger("stepscope")

Target = Literal["cpu", "gpu", "ascend"]
"""Device of the operators; decides which options are valid."""

_EVERYWHERE: frozenset[Target] = frozenset({"cpu", "gpu", "ascend"})
_ASCEND: frozenset[Target] = frozenset({"ascend"})
_GPU: frozenset[Target] = frozenset({"gpu"})
_NOWHERE: frozenset[Target] = frozenset()
_LEVELS = ("Level0", "Level1", "Level2")
_AICORE_METRICS = range(-1, 7)
_MOST_SECONDS = 86_400


@dataclass(frozen=True)
class Options:
    """The options in effect, after checks and fallbacks."""

    output_path: str | None = None
    """Output directory; None: `MS_DIAGNOSTIC_DATA_PATH`, else `./data`. `/profiler` is appended."""
    start_profile: bool = True
    """Start recording on construction instead of with `start()`."""
    op_time: bool = True
    """Record operators; if False, only marks and samples."""
    timeline_limit: int = 500
    """Largest timeline file in MB (2^20 bytes)."""
    profile_framework: str | None = "all"
    """What to record of the host side: `all`, `time`, `memory` or None."""
    data_process: bool = True
    """Record the input pipeline."""
    sync_enable: bool = True
    """GPU: synchronize with the device at the start and end of a window of operators."""
    profile_memory: bool = False
    """Record memory allocations."""
    profile_communication: bool = False
    """Ascend: record communication tasks."""
    parallel_strategy: bool = True
    """Ascend: record the parallel strategy of the graph."""
    aicore_metrics: int = 0
    """Ascend: metric set of the AI cores, -1 (none) to 6."""
    l2_cache: bool = False
    """Ascend: record the L2 cache."""
    hbm_ddr: bool = False
    """Ascend: record memory bandwidth."""
    pcie: bool = False
    """Ascend, GPU: record PCIe throughput."""
    profiler_level: str | None = None
    """Ascend: `Level0`, `Level1` or `Level2`."""
    data_simplification: bool = True
    """Leave out files that can be derived from the others."""
    host_stack: bool = True
    """Record Python stacks; on CPU and GPU only if given explicitly."""
    ascend_job_id: str = ""
    """Ascend: directory of an earlier collection."""
    schedule: Callable[[int], Action] | None = None
    """Steps to record, see `stepscope.schedule`."""
    on_trace_ready: Callable[[Any], object] | None = None
    """Called with the profiler at the end of each cycle of the schedule, or of the recording."""
    steps: tuple[int, int] | None = None
    """First and last step to record, counted from 1."""
    epochs: tuple[int, int] | None = None
    """First and last epoch to record, counted from 1."""
    record_shapes: bool = True
    """Record input shapes of operators."""
    window_seconds: float = 5.0
    """Maximum length of the windows in which operators are written to disk (a window ends with a step)."""
    sampling_interval: int = 1000
    """Time between samples of host and device, ms."""
    runtime_detail: bool = False
    """MindSpore: also record its runtime in detail (costly; MindSpore also prints a summary)."""
    framework: str | None = None
    """`torch` or `mindspore`; needed if both are imported."""
    given: frozenset[str] = field(default=frozenset(), compare=False)
    """Names of the options that the user gave and that are in effect."""

    @property
    def with_stack(self) -> bool:
        """Whether Python stacks were requested."""
        return self.host_stack and "host_stack" in self.given

    def as_json(self) -> dict[str, Any]:
        """The options as JSON values."""
        shown = {option.name: getattr(self, option.name) for option in fields(self) if option.name != "given"}
        for name in ("schedule", "on_trace_ready"):
            shown[name] = None if shown[name] is None else str(shown[name])
        return shown


@dataclass(frozen=True)
class Spec:
    """Rules for one option.

    Args:
        check: Returns the value to use; raises ValueError, naming what is expected, for a bad one.
        targets: Devices on which MindSpore's Profiler accepts it.
        also: More devices on which stepscope accepts it.
        raises: A bad value is a TypeError, not a warning.
        alone: Also valid without `op_time`.
        instead: What a user gets, or can do, on other devices.
    """

    check: Callable[[Any], Any]
    targets: frozenset[Target] = _EVERYWHERE
    also: frozenset[Target] = _NOWHERE
    raises: bool = False
    alone: bool = False
    instead: str = ""


def _bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be True or False")
    return value


def _path(value: Any) -> str | None:
    import os  # noqa: PLC0415

    if value is not None and not isinstance(value, (str, os.PathLike)):
        raise ValueError("must be a path")
    return None if value is None else os.fspath(value)


def _limit(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise ValueError("must be a positive integer (MB)")
    return value


def _framework_part(value: Any) -> str | None:
    if value not in ("all", "time", "memory", None) or isinstance(value, bool):
        raise ValueError('must be "all", "time", "memory" or None')
    return value  # type: ignore[no-any-return]


def _metrics(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value not in _AICORE_METRICS:
        raise ValueError("must be an integer from -1 to 6")
    return value


def _level(value: Any) -> str | None:
    if not value:
        return None
    name = getattr(value, "name", value)
    if name not in _LEVELS:
        raise ValueError("must be Level0, Level1 or Level2")
    return str(name)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a string")
    return value


def _callable(value: Any) -> Any:
    if value is not None and not callable(value):
        raise ValueError("must be a function that takes the profiler")
    return value


def _range(value: Any) -> tuple[int, int] | None:
    if value is None:
        return None
    pair = tuple(value) if isinstance(value, (tuple, list, range)) else ()
    if isinstance(value, range) and len(pair) > 1:
        pair = (pair[0], pair[-1])
    if (
        len(pair) != 2
        or any(isinstance(n, bool) or not isinstance(n, int) for n in pair)
        or not 1 <= pair[0] <= pair[1]
    ):
        raise ValueError("must be (first, last), integers with 1 <= first <= last")
    return (pair[0], pair[1])


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= _MOST_SECONDS:
        raise ValueError("must be a number of seconds above 0 and at most a day")
    return float(value)


def _interval(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1000 * _MOST_SECONDS:
        raise ValueError("must be an integer number of milliseconds, from 1 to a day")
    return value


def _framework(value: Any) -> str | None:
    if value not in (None, "torch", "mindspore"):
        raise ValueError('must be "torch", "mindspore" or None')
    return value  # type: ignore[no-any-return]


_CPU_GPU: frozenset[Target] = frozenset({"cpu", "gpu"})
_CPU: frozenset[Target] = frozenset({"cpu"})

SPECS: dict[str, Spec] = {
    "output_path": Spec(_path, raises=True, alone=True),
    "start_profile": Spec(_bool, raises=True, alone=True),
    "op_time": Spec(_bool, alone=True),
    "timeline_limit": Spec(_limit),
    "profile_framework": Spec(_framework_part, alone=True),
    "data_process": Spec(_bool, frozenset({"gpu", "ascend"}), _CPU, alone=True),
    "sync_enable": Spec(_bool, _GPU, instead="operators are timed on their own device"),
    "profile_memory": Spec(_bool, _ASCEND, _CPU_GPU),
    "profile_communication": Spec(_bool, _ASCEND, instead="collective calls are always recorded"),
    "parallel_strategy": Spec(_bool, _ASCEND, alone=True, instead="process groups are always recorded"),
    "aicore_metrics": Spec(_metrics, _ASCEND, instead="there are no AI cores"),
    "l2_cache": Spec(_bool, _ASCEND, alone=True, instead="its cache cannot be measured here"),
    "hbm_ddr": Spec(_bool, _ASCEND, alone=True, instead="its memory bandwidth cannot be measured here"),
    "pcie": Spec(_bool, _ASCEND, _GPU, alone=True, instead="its bus cannot be measured here"),
    "profiler_level": Spec(_level, _ASCEND, alone=True, instead="use op_time and record_shapes to record less"),
    "data_simplification": Spec(_bool, _ASCEND, _CPU_GPU),
    "host_stack": Spec(_bool, _ASCEND, _CPU_GPU),
    "ascend_job_id": Spec(_text, _ASCEND, alone=True, instead="analyse recordings with offline_analyse"),
    "schedule": Spec(as_schedule, raises=True, alone=True),
    "on_trace_ready": Spec(_callable, raises=True, alone=True),
    "steps": Spec(_range, raises=True, alone=True),
    "epochs": Spec(_range, raises=True, alone=True),
    "record_shapes": Spec(_bool),
    "window_seconds": Spec(_seconds),
    "sampling_interval": Spec(_interval, alone=True),
    "runtime_detail": Spec(_bool, alone=True),
    "framework": Spec(_framework, raises=True, alone=True),
}
"""All options. The reactions of the first seventeen are those of MindSpore's Profiler."""

_DEFAULT = Options()

ALWAYS_IGNORED = ("start",)
"""Key of the environment variable; older scripts also pass it as an option."""


def resolve(given: Mapping[str, Any], target: Target, *, lenient: bool = False) -> Options:
    """Check the given options. Problems are logged once, as warnings.

    Args:
        given: Options by name.
        target: Device of the operators.
        lenient: Never raise: warn about a bad value of any option.

    Raises:
        TypeError: For a bad value of an option that decides whether or where to record.
    """
    default = _DEFAULT
    values: dict[str, Any] = {}
    fallbacks = set()
    for name, value in given.items():
        spec = SPECS.get(name)
        if name in ALWAYS_IGNORED:
            continue
        if spec is None:
            log.warning("Profiler: %r is not an option; it has no effect. Options are: %s", name, ", ".join(SPECS))
            continue
        if target not in spec.targets | spec.also:
            where = " and ".join(sorted(spec.targets | spec.also))
            log.warning("Profiler: %s has no effect on %s, only on %s: %s", name, target, where, spec.instead)
            continue
        try:
            values[name] = spec.check(value)
        except ValueError as error:
            if spec.raises and not lenient:
                raise TypeError(f"Profiler: {name} {error}, not {value!r}") from error
            fallback = "Level0" if name == "profiler_level" else getattr(default, name)
            log.warning("Profiler: %s %s, not %r; %r is used", name, error, value, fallback)
            values[name] = fallback
            fallbacks.add(name)
    _without_operators(values)
    _by_level(values, given)
    return replace(default, **values, given=frozenset(values) - fallbacks)


def _without_operators(values: dict[str, Any]) -> None:
    """Drop options that need operators if none are recorded."""
    if values.get("op_time", True):
        return
    for name in [name for name in values if not SPECS[name].alone]:
        log.warning("Profiler: %s has no effect with op_time=False", name)
        del values[name]


def is_default(name: str, value: Any) -> bool:
    """Whether a value is the option's default and needs no warning: scripts often spell defaults out.

    1 is not True. An explicit `host_stack` is never a default: it requests stacks on CPU and GPU too.
    """
    if name == "host_stack":
        return False
    usual = getattr(_DEFAULT, name)
    return type(value) is type(usual) and bool(value == usual)


def _by_level(values: dict[str, Any], given: Mapping[str, Any]) -> None:
    """Lower levels of the Ascend profiler switch off other options."""
    level = values.get("profiler_level")
    forced: dict[str, Any] = {
        "Level0": {"data_process": False, "aicore_metrics": -1},
        "Level1": {"data_process": False},
    }
    for name, value in forced.get(str(level), {}).items():
        if name in given and values.get(name) != value:
            log.warning("Profiler: %s is %r with profiler_level %s", name, value, level)
        values[name] = value
