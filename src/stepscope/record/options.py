"""The options of the Profiler: types, defaults, supported devices, and what happens to a bad value.

Names, defaults and reactions are those of MindSpore's Profiler (2.3). stepscope supports some options on more devices
(`also`). Options that only stepscope has come last.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeVar

from stepscope.record.environment import FRAMEWORKS
from stepscope.record.schedule import Action, as_schedule

log = logging.getLogger("stepscope")

Target = Literal["cpu", "gpu", "ascend"]
"""Device of the operators; decides which options are valid."""
Check = Callable[[Any], Any]
"""Returns the value to use; raises ValueError, naming what is expected, for a bad one."""
_T = TypeVar("_T")

_EVERYWHERE: frozenset[Target] = frozenset({"cpu", "gpu", "ascend"})
_ASCEND: frozenset[Target] = frozenset({"ascend"})
_GPU: frozenset[Target] = frozenset({"gpu"})
_CPU: frozenset[Target] = frozenset({"cpu"})
_NOWHERE: frozenset[Target] = frozenset()
_MOST_SECONDS = 86_400


@dataclass(frozen=True)
class Spec:
    """Rules for one option.

    Args:
        check: Checks a value.
        targets: Devices on which MindSpore's Profiler accepts it.
        also: More devices on which stepscope accepts it.
        raises: A bad value is a TypeError, not a warning.
        alone: Also valid without `op_time`.
        instead: What a user gets, or can do, on other devices.
    """

    check: Check
    targets: frozenset[Target] = _EVERYWHERE
    also: frozenset[Target] = _NOWHERE
    raises: bool = False
    alone: bool = False
    instead: str = ""


def _check(expected: str, fits: Callable[[Any], bool], use: Callable[[Any], Any] = lambda value: value) -> Check:
    """Accepts the values that fit, and passes them on as `use` returns them."""

    def check(value: Any) -> Any:
        if not fits(value):
            raise ValueError(expected)
        return use(value)

    return check


def _one_of(values: tuple[str | None, ...], expected: str) -> Check:
    return _check(expected, lambda value: value in values)


def _integer(expected: str, least: int, most: float = float("inf")) -> Check:
    return _check(expected, lambda value: _is_integer(value) and least <= value <= most)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _range(value: Any) -> tuple[int, int] | None:
    if value is None:
        return None
    pair = tuple(value) if isinstance(value, (tuple, list, range)) else ()
    if isinstance(value, range) and len(pair) > 1:
        pair = (pair[0], pair[-1])
    if len(pair) != 2 or not all(map(_is_integer, pair)) or not 1 <= pair[0] <= pair[1]:
        raise ValueError("must be (first, last), integers with 1 <= first <= last")
    return (pair[0], pair[1])


_bool = _check("must be True or False", lambda value: isinstance(value, bool))
_text = _check("must be a string", lambda value: isinstance(value, str))
_path = _check(
    "must be a path",
    lambda value: value is None or isinstance(value, (str, os.PathLike)),
    lambda value: None if value is None else os.fspath(value),
)
_level = _check(  # from its name, or from an enum of a framework
    "must be Level0, Level1 or Level2",
    lambda value: not value or getattr(value, "name", value) in ("Level0", "Level1", "Level2"),
    lambda value: str(getattr(value, "name", value)) if value else None,
)
_function = _check("must be a function that takes the profiler", lambda value: value is None or callable(value))
_seconds = _check(
    "must be a number of seconds above 0 and at most a day",
    lambda value: isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= _MOST_SECONDS,
    float,
)


def _option(
    default: _T,
    check: Check,
    targets: frozenset[Target] = _EVERYWHERE,
    also: frozenset[Target] = _NOWHERE,
    **rules: Any,
) -> _T:
    """A field of `Options` with its `Spec`."""
    return field(default=default, metadata={"spec": Spec(check, targets, also, **rules)})


@dataclass(frozen=True)
class Options:
    """The options in effect, after checks and fallbacks."""

    output_path: str | None = _option(None, _path, raises=True, alone=True)
    """Output directory; None: `MS_DIAGNOSTIC_DATA_PATH`, else `./data`. `/profiler` is appended."""
    start_profile: bool = _option(True, _bool, raises=True, alone=True)
    """Start recording on construction instead of with `start()`."""
    op_time: bool = _option(True, _bool, alone=True)
    """Record operators; if False, only marks and samples."""
    timeline_limit: int = _option(500, _integer("must be a positive integer (MB)", 1))
    """Largest timeline file in MB (2^20 bytes)."""
    profile_framework: str | None = _option(
        "all", _one_of(("all", "time", "memory", None), 'must be "all", "time", "memory" or None'), alone=True
    )
    """What to record of the host side: `all`, `time`, `memory` or None."""
    data_process: bool = _option(True, _bool, _GPU | _ASCEND, _CPU, alone=True)
    """Record the input pipeline."""
    sync_enable: bool = _option(True, _bool, _GPU, instead="operators are timed on their own device")
    """GPU: synchronize with the device at the start and end of a window of operators."""
    profile_memory: bool = _option(False, _bool, _ASCEND, _CPU | _GPU)
    """Record memory allocations."""
    profile_communication: bool = _option(False, _bool, _ASCEND, instead="collective calls are always recorded")
    """Ascend: record communication tasks."""
    parallel_strategy: bool = _option(True, _bool, _ASCEND, alone=True, instead="process groups are always recorded")
    """Ascend: record the parallel strategy of the graph."""
    aicore_metrics: int = _option(
        0, _integer("must be an integer from -1 to 6", -1, 6), _ASCEND, instead="there are no AI cores"
    )
    """Ascend: metric set of the AI cores, -1 (none) to 6."""
    l2_cache: bool = _option(False, _bool, _ASCEND, alone=True, instead="its cache cannot be measured here")
    """Ascend: record the L2 cache."""
    hbm_ddr: bool = _option(False, _bool, _ASCEND, alone=True, instead="its memory bandwidth cannot be measured here")
    """Ascend: record memory bandwidth."""
    pcie: bool = _option(False, _bool, _ASCEND, _GPU, alone=True, instead="its bus cannot be measured here")
    """Ascend, GPU: record PCIe throughput."""
    profiler_level: str | None = _option(
        None, _level, _ASCEND, alone=True, instead="use op_time and record_shapes to record less"
    )
    """Ascend: `Level0`, `Level1` or `Level2`."""
    data_simplification: bool = _option(True, _bool, _ASCEND, _CPU | _GPU)
    """Leave out files that can be derived from the others."""
    host_stack: bool = _option(True, _bool, _ASCEND, _CPU | _GPU)
    """Record Python stacks; on CPU and GPU only if given explicitly."""
    ascend_job_id: str = _option("", _text, _ASCEND, alone=True, instead="analyse recordings with offline_analyse")
    """Ascend: directory of an earlier collection."""
    schedule: Callable[[int], Action] | None = _option(None, as_schedule, raises=True, alone=True)
    """Steps to record, see `stepscope.schedule`."""
    on_trace_ready: Callable[[Any], object] | None = _option(None, _function, raises=True, alone=True)
    """Called with the profiler at the end of each cycle of the schedule, or of the recording."""
    steps: tuple[int, int] | None = _option(None, _range, raises=True, alone=True)
    """First and last step to record, counted from 1."""
    epochs: tuple[int, int] | None = _option(None, _range, raises=True, alone=True)
    """First and last epoch to record, counted from 1."""
    record_shapes: bool = _option(True, _bool)
    """Record input shapes of operators."""
    window_seconds: float = _option(5.0, _seconds)
    """Maximum length of the windows in which operators are written to disk (a window ends with a step)."""
    sampling_interval: int = _option(
        1000,
        _integer("must be an integer number of milliseconds, from 1 to a day", 1, 1000 * _MOST_SECONDS),
        alone=True,
    )
    """Time between samples of host and device, ms."""
    runtime_detail: bool = _option(False, _bool, alone=True)
    """MindSpore: also record its runtime in detail (costly; MindSpore also prints a summary)."""
    framework: str | None = _option(
        None, _one_of((*FRAMEWORKS, None), 'must be "torch", "mindspore" or None'), raises=True, alone=True
    )
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


SPECS: dict[str, Spec] = {option.name: option.metadata["spec"] for option in fields(Options) if option.metadata}
"""All options. The reactions of the first seventeen are those of MindSpore's Profiler."""
_DEFAULT = Options()


def resolve(given: Mapping[str, Any], target: Target, *, lenient: bool = False) -> Options:
    """Check the given options. Problems are logged once, as warnings.

    Args:
        given: Options by name.
        target: Device of the operators.
        lenient: Never raise: warn about a bad value of any option.

    Raises:
        TypeError: For a bad value of an option that decides whether or where to record.
    """
    values: dict[str, Any] = {}
    fallbacks = set()
    for name, value in given.items():
        spec = SPECS.get(name)
        if name == "start":  # a key of the environment variable; older scripts also pass it as an option
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
            fallback = "Level0" if name == "profiler_level" else getattr(_DEFAULT, name)
            log.warning("Profiler: %s %s, not %r; %r is used", name, error, value, fallback)
            values[name] = fallback
            fallbacks.add(name)
    _without_operators(values)
    _by_level(values, given)
    return replace(_DEFAULT, **values, given=frozenset(values) - fallbacks)


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
