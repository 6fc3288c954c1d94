"""What torch.compile does when compiled functions are called, as PyTorch 2.13 records it, and what is advised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stepscope.advice import Finding, worded
from stepscope.errors import Unavailable
from stepscope.run import Run, open_run
from tests.kineto_job import RankTrace, advised, by_rule

STEP = 100_000
WEIGHT = [64, 64]

Call = tuple[str, int, list[list[int]]]
"""What a call does (`ran`, `compiled`, `missed`, `failed`), the version, and the shapes of its inputs."""


def job(calls: list[Call], *, types: list[str] | None = None, gradients: bool = True, **header: Any) -> RankTrace:
    """One call of function 0 in each step: the search, then a compiler of 40 ms or a version, or operators."""
    trace = RankTrace(device="cpu")
    trace.header |= header
    for number, (what, version, dims) in enumerate(calls, 1):
        at = number * STEP
        trace.step(number, at, STEP - 1000)
        trace.operator("TorchDynamo Cache Lookup", at + 100, 20)
        begun = at + 200
        if what in ("compiled", "failed"):
            trace.operator("dynamo", begun, 40_000).operator("entire_frame_compile", begun + 50, 39_900)
            trace.operator("_compile.compile_inner (dynamo_timed)", begun + 60, 39_800)
            trace.add("user_annotation", f"dynamo_data: compile_id=0/{version}", begun + 10, 5)
            begun += 40_100
        if what in ("compiled", "ran"):
            trace.operator(f"Torch-Compiled Region: 0/{version}", begun, 1000)
            if gradients:
                kinds = [(types or ["float"] * len(calls))[number - 1]] * len(dims)
                trace.operator("CompiledFunction", begun + 100, 800, dims, kinds)
        trace.operator("aten::mm", begun + 1100, 40_000)
    return trace


def sized(*rows: int) -> list[list[list[int]]]:
    return [[WEIGHT, [], [count, 64]] for count in rows]


def recompiling() -> list[Call]:
    """Four sizes, three of them compiled; then the limit is reached."""
    shapes = sized(32, 31, 30, 29, 28, 27)
    whats = ["ran", "compiled", "compiled", "failed", "missed", "missed"]
    return [(what, at, shapes[at]) for at, what in enumerate(whats)]


def run(trace: RankTrace, directory: Path) -> Run:
    return open_run(trace.write(directory))


def found(trace: RankTrace, directory: Path) -> dict[tuple[str, str], Finding]:
    return by_rule(advised(directory, trace))


def test_names_with_numbers_that_nothing_counts_to_are_no_regions(tmp_path: Path) -> None:
    trace = job([("ran", 10**30, sized(32)[0]), ("compiled", 10**30, sized(31)[0])])
    trace.header["pytorch_version"] = f"{10**30}.1"
    odd = run(trace, tmp_path)

    assert odd.analyse("compiled_searches").select("searches", "highest_version").rows() == [(2, None)]
    assert odd.analyse("recompilations").select("function", "version").rows() == [(None, None)]


def test_each_compiled_version_is_told_with_what_differs_from_the_one_before(tmp_path: Path) -> None:
    rows = run(job(recompiling()), tmp_path).analyse("recompilations")

    shown = rows.select("step", "function", "version", "compile_ns", "ran", "varied", "before", "after").rows()
    assert shown == [
        (2, 0, 1, 40_000_000, True, "sizes", "[32, 64]", "[31, 64]"),
        (3, 0, 2, 40_000_000, True, "sizes", "[31, 64]", "[30, 64]"),
        (4, 0, 3, 40_000_000, False, None, None, None),
    ]


def test_calls_are_counted_by_what_follows_the_search(tmp_path: Path) -> None:
    rows = run(job(recompiling()), tmp_path).analyse("compiled_searches")

    counted = rows.select("searches", "ran", "compiled", "missed", "missed_steps", "last_missed", "highest_version")
    assert counted.rows() == [(6, 1, 3, 2, 2, True, 2)]


def test_sizes_that_vary_are_named_and_ask_for_dynamic_shapes(tmp_path: Path) -> None:
    finding = found(job(recompiling()), tmp_path)["compile-time", "again_sizes"]

    words = worded(finding)
    assert words.cause == (
        "The compiled code did not fit what came later in steps 3-4, so it was made anew 2 times: sizes of its inputs "
        "vary, e.g. from 31x64 to 30x64."
    )
    assert "dynamic=True" in words.action
    assert finding.saving_ns == pytest.approx(80_000_000 / 6)


def test_a_compiler_that_has_given_up_may_cost_nothing_more(tmp_path: Path) -> None:
    calls = recompiling()

    given_up = found(job(calls), tmp_path / "a")["compile-time", "again_sizes"]
    going_on = found(job([*calls[:3], ("compiled", 3, calls[3][2])]), tmp_path / "b")["compile-time", "again_sizes"]

    assert given_up.saving_low_ns == 0
    assert going_on.saving_low_ns == going_on.saving_ns > 0


def test_a_single_version_compiled_later_is_no_first_run(tmp_path: Path) -> None:
    calls: list[Call] = [("ran", 1, [[32, 64]])] * 3 + [("compiled", 2, [[16, 64]])]

    anew = found(job(calls), tmp_path / "a")["compile-time", "anew"]
    first = found(job([("compiled", 0, [[16, 64]]), *calls[:3]]), tmp_path / "b")

    assert worded(anew).cause.endswith("sizes of its inputs vary, e.g. from 32x64 to 16x64.")
    assert ("compile-time", "once") in first and ("compile-time", "anew") not in first


def test_inputs_that_are_the_same_leave_other_reasons(tmp_path: Path) -> None:
    calls: list[Call] = [("compiled", at, [WEIGHT, [32, 64]]) for at in range(5)]

    (finding,) = [one for (_, name), one in found(job(calls), tmp_path).items() if name.startswith("again")]

    assert finding.message == "again_values"
    assert "dynamic" not in worded(finding).action


def test_types_that_vary_are_named(tmp_path: Path) -> None:
    calls: list[Call] = [("compiled", at, [WEIGHT, [32, 64]]) for at in range(4)]
    types = ["float", "c10::Half", "float", "c10::Half"]

    finding = found(job(calls, types=types), tmp_path)["compile-time", "again_types"]

    assert "from float to c10::Half" in worded(finding).cause


def test_without_inputs_it_is_unknown_what_varies(tmp_path: Path) -> None:
    calls: list[Call] = [("compiled", at, [WEIGHT]) for at in range(4)]

    assert ("compile-time", "again") in found(job(calls, gradients=False), tmp_path)


def test_versions_that_fit_no_more_run_as_written(tmp_path: Path) -> None:
    missed: list[Call] = [("missed", 0, [WEIGHT])] * 4

    finding = found(job(missed), tmp_path)["recompile-limit", "reached"]

    assert worded(finding).summary == (
        "Rank 0 runs compiled functions as if they were not compiled: in 4 of 4 calls no version fitted, and none was "
        "compiled."
    )
    assert finding.severity == "medium"


def test_a_function_that_runs_compiled_is_no_finding(tmp_path: Path) -> None:
    ran: list[Call] = [("ran", 1, [WEIGHT])] * 4

    told = found(job(ran), tmp_path)

    assert not {rule for rule, _ in told} & {"recompile-limit", "compile-time", "graph-breaks"}


def test_many_versions_are_a_remark_before_the_limit(tmp_path: Path) -> None:
    for version, expected in ((5, False), (6, True)):
        told = found(job([("ran", version, [WEIGHT])] * 4), tmp_path / str(version))

        assert (("recompile-limit", "near") in told) == expected
        assert all(one.severity == "low" for (rule, _), one in told.items() if rule == "recompile-limit")


def test_a_recording_that_ends_within_a_call_is_no_finding(tmp_path: Path) -> None:
    calls: list[Call] = [("ran", 0, [WEIGHT])] * 3 + [("missed", 0, [WEIGHT])]

    assert not any(rule == "recompile-limit" for rule, _ in found(job(calls), tmp_path))


def test_versions_of_pytorch_that_mark_no_regions_are_not_judged(tmp_path: Path) -> None:
    missed: list[Call] = [("missed", 0, [WEIGHT])] * 4

    with pytest.raises(Unavailable):
        run(job(missed, baseTimeNanoseconds=0), tmp_path).analyse("compiled_searches")


def test_passes_whose_search_found_nothing_are_no_graph_breaks(tmp_path: Path) -> None:
    trace = job([("missed", 0, [WEIGHT])] * 4)
    for number in range(1, 5):
        trace.add("python_function", "nn.Module: OptimizedModule_0", number * STEP + 50, 60_000)

    assert not any(rule == "graph-breaks" for rule, _ in found(trace, tmp_path))
