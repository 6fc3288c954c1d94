"""All options: good values, bad values, and devices that cannot give them."""

from __future__ import annotations

import enum
import logging
from typing import Any

import pytest

from stepscope.record.options import SPECS, Options, Target, resolve
from stepscope.record.schedule import Schedule, schedule


class ProfilerLevel(enum.Enum):
    """As MindSpore's."""

    Level0 = "Level0"
    Level1 = "Level1"
    Level2 = "Level2"


ALL, ASCEND = ("cpu", "gpu", "ascend"), ("ascend",)

# name, default, good values, bad values, what a bad value becomes (or the error), where the reference takes it,
# where it works here
CHECKLIST: list[tuple[str, Any, list[Any], list[Any], Any, tuple[str, ...], tuple[str, ...]]] = [
    ("output_path", None, ["./data", "/tmp/x"], [3, b"x", ["a"]], TypeError, ALL, ALL),
    ("start_profile", True, [True, False], [1, "True", None], TypeError, ALL, ALL),
    ("op_time", True, [True, False], [1, "yes", None], True, ALL, ALL),
    ("timeline_limit", 500, [1, 20, 5000], [True, "500", 0, -3, 2.5], 500, ALL, ALL),
    ("profile_framework", "all", ["all", "time", "memory", None], ["cpu", 1, True], "all", ALL, ALL),
    ("data_process", True, [True, False], ["on", 0], True, ("gpu", "ascend"), ALL),
    ("sync_enable", True, [True, False], ["on", 0], True, ("gpu",), ("gpu",)),
    ("profile_memory", False, [True, False], ["on", 1], False, ASCEND, ALL),
    ("profile_communication", False, [True, False], ["on", 1], False, ASCEND, ASCEND),
    ("parallel_strategy", True, [True, False], ["on", 0], True, ASCEND, ASCEND),
    ("aicore_metrics", 0, [-1, 0, 1, 2, 3, 4, 5, 6], [7, -2, "0", 1.0, True], 0, ASCEND, ASCEND),
    ("l2_cache", False, [True, False], ["on", 1], False, ASCEND, ASCEND),
    ("hbm_ddr", False, [True, False], ["on", 1], False, ASCEND, ASCEND),
    ("pcie", False, [True, False], ["on", 1], False, ASCEND, ("gpu", "ascend")),
    ("profiler_level", None, ["Level2", ProfilerLevel.Level2], ["Level9", 4], "Level0", ASCEND, ASCEND),
    ("data_simplification", True, [True, False], ["on", 0], True, ASCEND, ALL),
    ("host_stack", True, [True, False], ["on", 0], True, ASCEND, ALL),
    ("ascend_job_id", "", ["/some/where"], [3], "", ASCEND, ASCEND),
    ("schedule", None, [schedule(active=2), {"active": 2}, None], [3, "a", {"activ": 1}], TypeError, ALL, ALL),
    ("on_trace_ready", None, [print, None], [3, "a"], TypeError, ALL, ALL),
    ("steps", None, [(1, 2), [3, 3], range(2, 5)], [(0, 1), (3, 2), 4, (1,), "12", (True, 2)], TypeError, ALL, ALL),
    ("epochs", None, [(1, 2)], [(0, 1), 4], TypeError, ALL, ALL),
    ("record_shapes", True, [True, False], ["on", 0], True, ALL, ALL),
    ("window_seconds", 5.0, [1, 0.5], [0, -1, "5", True, float("inf"), float("nan")], 5.0, ALL, ALL),
    ("sampling_interval", 1000, [1, 100], [0, -1, "5", True, 1.5, 10**12], 1000, ALL, ALL),
    ("runtime_detail", False, [True, False], ["on", 1], False, ALL, ALL),
    ("framework", None, ["torch", "mindspore", None], ["jax", 3], TypeError, ALL, ALL),
]
DEVICES: tuple[Target, ...] = ("cpu", "gpu", "ascend")
NORMALISED = {"steps": tuple, "epochs": tuple, "window_seconds": float}


def same(name: str, value: Any) -> Any:
    """A given value as the options hold it."""
    if name == "profiler_level" and value is not None:
        return getattr(value, "name", value)
    if name == "schedule" and isinstance(value, dict):
        return Schedule(**value)
    if name in ("steps", "epochs"):
        return (value[0], value[-1])
    return NORMALISED.get(name, lambda kept: kept)(value)


def test_the_checklist_names_every_option() -> None:
    assert [row[0] for row in CHECKLIST] == list(SPECS)


@pytest.mark.parametrize("target", DEVICES)
@pytest.mark.parametrize(("name", "default", "good"), [(row[0], row[1], row[2]) for row in CHECKLIST])
def test_defaults_and_good_values(
    name: str, default: Any, good: list[Any], target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    here = next(row[6] for row in CHECKLIST if row[0] == name)
    assert getattr(resolve({}, target), name) == default
    if target not in here:
        return
    for value in good:
        caplog.clear()
        assert getattr(resolve({name: value}, target), name) == same(name, value)
        assert not caplog.records


@pytest.mark.parametrize(("name", "bad", "becomes"), [(row[0], row[3], row[4]) for row in CHECKLIST])
def test_bad_values(name: str, bad: list[Any], becomes: Any, caplog: pytest.LogCaptureFixture) -> None:
    target = next(row[6] for row in CHECKLIST if row[0] == name)[-1]
    for value in bad:
        caplog.clear()
        if isinstance(becomes, type) and issubclass(becomes, Exception):
            with pytest.raises(becomes, match=f"{name} "):
                resolve({name: value}, target)  # type: ignore[arg-type]
            found = resolve({name: value}, target, lenient=True)  # type: ignore[arg-type]
            assert getattr(found, name) == getattr(Options(), name)
        else:
            assert getattr(resolve({name: value}, target), name) == becomes  # type: ignore[arg-type]
        assert [record.levelno for record in caplog.records] == [logging.WARNING]
        assert name in caplog.text
        assert repr(value) in caplog.text


@pytest.mark.parametrize("target", DEVICES)
@pytest.mark.parametrize(("name", "good", "here"), [(row[0], row[2], row[6]) for row in CHECKLIST])
def test_wrong_devices_are_told_once_with_the_reason(
    name: str, good: list[Any], here: tuple[str, ...], target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    if target in here:
        return
    found = resolve({name: good[-1]}, target)
    assert getattr(found, name) == getattr(Options(), name)
    assert len(caplog.records) == 1
    assert f"{name} has no effect on {target}" in caplog.text
    assert SPECS[name].instead in caplog.text
    assert SPECS[name].instead


def test_where_the_reference_takes_an_option_it_works_here() -> None:
    for name, *_, reference, here in CHECKLIST:
        # MindSpore's CPU and Ascend profilers take no sync_enable, its CUDA profiler does
        assert set(reference) <= set(here), name


def test_an_unknown_name_is_told_and_has_no_effect(caplog: pytest.LogCaptureFixture) -> None:
    assert resolve({"optime": False}, "cpu") == Options()
    assert "'optime' is not an option" in caplog.text


ALONE = (
    *("start_profile", "output_path", "data_process", "parallel_strategy", "l2_cache", "hbm_ddr", "pcie"),
    *("ascend_job_id", "op_time", "profile_framework", "profiler_level"),
)


@pytest.mark.parametrize(("name", "good"), [(row[0], row[2]) for row in CHECKLIST[:18] if row[0] != "op_time"])
def test_without_operators_only_some_options_have_an_effect(
    name: str, good: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    target: Target = "gpu" if name == "sync_enable" else "ascend"
    value = next(value for value in good if value != getattr(Options(), name)) if len(good) > 1 else good[0]
    found = resolve({"op_time": False, name: value}, target)
    told = f"{name} has no effect with op_time=False" in caplog.text
    if name in ALONE:
        assert not told
    else:
        assert told
        assert getattr(found, name) == getattr(Options(), name)


@pytest.mark.parametrize(
    ("level", "data_process", "metrics"), [("Level0", False, -1), ("Level1", False, 3), ("Level2", True, 3)]
)
def test_lower_levels_switch_options_off(
    level: str, data_process: bool, metrics: int, caplog: pytest.LogCaptureFixture
) -> None:
    found = resolve({"profiler_level": level, "data_process": True, "aicore_metrics": 3}, "ascend")
    assert (found.data_process, found.aicore_metrics) == (data_process, metrics)
    assert ("data_process" in caplog.text) == (level != "Level2")
    assert ("aicore_metrics" in caplog.text) == (level == "Level0")


def test_stacks_are_recorded_only_if_asked_for() -> None:
    assert not resolve({}, "cpu").with_stack
    assert resolve({"host_stack": True}, "cpu").with_stack
    assert not resolve({"host_stack": False}, "cpu").with_stack
    assert not resolve({"host_stack": "yes"}, "cpu").with_stack
