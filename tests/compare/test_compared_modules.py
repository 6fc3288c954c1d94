"""Modules of two sides: wrapped, renumbered, or more of a class; and tested over steps."""

from __future__ import annotations

import pytest

from stepscope.compare import compare
from stepscope.compare.module_places import ModulePlace, module_places
from stepscope.run import Run
from stepscope.tables import SLICES, STEPS
from tests.analysis.jobs import MS

NET = {"Net_0": None, "Net_0/Block_0": "Net_0", "Net_0/Block_0/Linear_0": "Net_0/Block_0", "Net_0/Linear_1": "Net_0"}


def test_modules_of_the_same_path_are_the_same() -> None:
    base, new = module_places(NET, NET)

    assert base == new == {path: ModulePlace(path, "path") for path in NET}


def test_a_wrapper_around_modules_is_added_and_they_are_matched() -> None:
    wrapped = {
        "DDP_0": None,
        **{f"DDP_0/{path}": f"DDP_0/{parent}" if parent else "DDP_0" for path, parent in NET.items()},
    }
    base, new = module_places(NET, wrapped)

    assert new["DDP_0"] == ModulePlace("DDP_0", None)
    assert {base[path] for path in NET} == {ModulePlace(path, "inner") for path in NET}
    assert all(new[f"DDP_0/{path}"] == base[path] for path in NET)


def test_a_module_that_is_only_numbered_otherwise_is_the_same() -> None:
    more = {"Stem_0": None, "Stem_0/Linear_0": "Stem_0", "Net_0": None, "Net_0/Block_0": "Net_0",
            "Net_0/Block_0/Linear_1": "Net_0/Block_0", "Net_0/Linear_2": "Net_0"}  # fmt: skip
    base, new = module_places(NET, more)

    assert new["Net_0/Linear_2"] == base["Net_0/Linear_1"] == ModulePlace("Net_0/Linear_1", "inner")
    assert new["Stem_0/Linear_0"].how is None


def test_where_one_side_has_more_modules_of_a_class_they_are_compared_together() -> None:
    more = {**NET, "Net_0/Block_1": "Net_0", "Net_0/Block_1/Linear_2": "Net_0/Block_1"}
    base, new = module_places(NET, more)

    assert new["Net_0/Block_1"] == base["Net_0/Block_0"] == ModulePlace("Net_0/Block_*", "several")
    assert new["Net_0/Block_1/Linear_2"] == ModulePlace("Net_0/Block_*/Linear_*", "several")
    assert base["Net_0/Linear_1"].how == "path"


def run(lengths: list[float]) -> Run:
    """A rank whose only module takes so many ms in each step, without a device."""
    starts = [step * 100 * MS for step in range(1, len(lengths) + 1)]
    steps = list(range(1, len(lengths) + 1))
    ends = [start + 90 * MS for start in starts]
    return Run.from_frames(
        {
            0: {
                "slices": SLICES.frame(
                    slice=[step - 1 for step in steps], start_ns=starts, thread=["1"] * len(steps), step=steps,
                    duration_ns=[round(ms * MS) for ms in lengths], name=["nn.Module: Net_0"] * len(steps),
                    category=["python"] * len(steps), process=["p"] * len(steps),
                ),
                "steps": STEPS.frame(
                    step=steps, start_ns=starts, end_ns=ends, window_start_ns=starts, window_end_ns=ends,
                    window=["host"] * len(steps),
                ),
            }
        }
    )  # fmt: skip


def test_modules_are_tested_over_steps_and_without_a_device_by_their_time_on_the_host() -> None:
    base, new = run([10, 11, 10.5, 11.5, 10.2]), run([20, 21, 20.5, 21.5, 20.2])
    row = compare(base, new).analyse("module_differences").row(0, named=True)

    assert (row["module"], row["measured"], row["verdict"]) == ("Net_0", "host", "more")
    assert row["probability_ratio"] == pytest.approx(2 / 252)
    assert compare(base, base).analyse("module_differences")["verdict"].to_list() == ["same"]
