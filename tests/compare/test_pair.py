"""Two sides compared: parts that sum to the whole, what is noise, and what cannot be compared."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.compare import COMPARISONS, compare, judged
from stepscope.errors import StepscopeError, Unavailable
from stepscope.pages.compared_summary import opening
from stepscope.run import Run
from stepscope.tables import KERNELS, RANKS, STEPS
from tests.analysis.jobs import MS, job

STEP = 100 * MS


def kernels_run(lengths: list[dict[str, float]], *, names: dict[str, str] | None = None, ranks: int = 1) -> Run:
    """Ranks whose steps of 100 ms run some kernels, by name and length in ms."""
    rows, steps = [], []
    for step, of_step in enumerate(lengths, 1):
        start = step * STEP
        steps.append({"step": step, "start_ns": start, "end_ns": start + STEP, "window_start_ns": start,
                      "window_end_ns": start + STEP, "window": "device"})  # fmt: skip
        for name, ms in of_step.items():
            rows.append({"start_ns": start, "duration_ns": round(ms * MS), "kind": "compute",
                         "name": (names or {}).get(name, name), "step": step, "input_shapes": "8,8"})  # fmt: skip
            start += round(ms * MS)
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    of_steps = {name: [row[name] for row in steps] for name in steps[0]}
    tables = {
        "kernels": KERNELS.frame(kernel=list(range(len(rows))), **columns),
        "steps": STEPS.frame(**of_steps),
    }
    return Run.from_frames(dict.fromkeys(range(ranks), tables))


def verdicts(base: Run, new: Run, question: str = "kernel_differences", **options: str) -> dict[str, str]:
    found = compare(base, new).analyse(question, **options)
    return dict(zip(found["name" if "name" in found.columns else "part"], found["verdict"], strict=True))


BASE = [{"MatMul": 20 + 0.1 * n, "Add": 5 + 0.5 * (n % 2), "Old": 1} for n in range(6)]
NEW = [{"MatMul": 30 + 0.1 * n, "Add": 5.4 - 0.5 * (n % 2), "New": 1} for n in range(6)]


def test_a_run_with_itself_has_no_difference_at_all() -> None:
    run = job(4, 5, compute={2: 1.5})
    pair = compare(run, run)

    for question in COMPARISONS:
        try:
            found = pair.analyse(question)
        except Unavailable:
            continue
        for name in ("difference_ns", "own_difference_ns"):
            if name in found.columns:
                assert not found[name].fill_null(0).cast(pl.Boolean).any()
        if "verdict" in found.columns:
            assert set(found["verdict"]) <= {"same", "untested"}


def test_kernels_are_slower_noise_added_or_removed() -> None:
    assert verdicts(kernels_run(BASE), kernels_run(NEW)) == {
        "MatMul": "more",
        "Add": "noise",
        "New": "added",
        "Old": "removed",
    }


def test_three_steps_are_too_few_and_no_verdict_of_them_is_certain() -> None:
    found = verdicts(kernels_run(BASE[:3]), kernels_run(NEW[:3]))

    assert found["MatMul"] == "too few"


def test_three_steps_that_overlap_are_noise_and_do_not_fail_a_check() -> None:
    lengths = ({"MatMul": 20.0}, {"MatMul": 30.0}, {"MatMul": 22.0})
    slower = [{"MatMul": 1.1 * of_step["MatMul"]} for of_step in lengths]

    assert verdicts(kernels_run(list(lengths)), kernels_run(slower))["MatMul"] == "noise"


def test_one_clear_difference_among_many_needs_more_than_four_steps() -> None:
    same = {f"op{n}": 1.0 for n in range(30)}
    wobbling = [
        {name: 1 + 0.02 * ((place * 7 + step * 13) % 10) for place, name in enumerate(same)} for step in range(16)
    ]
    base = [{**wobbling[2 * n], "slow": 20 + 3 * n % 8 / 10} for n in range(8)]
    new = [{**wobbling[2 * n + 1], "slow": 21 + 3 * n % 8 / 10} for n in range(8)]

    assert verdicts(kernels_run(base[:4]), kernels_run(new[:4]))["slow"] == "too few"
    assert verdicts(kernels_run(base), kernels_run(new))["slow"] == "more"


def test_parts_sum_to_the_step_and_parts_of_parts_to_them() -> None:
    found = compare(job(4, 5), job(4, 5, compute={2: 1.4}, data_ns={1: 3 * MS})).analyse("time_differences")

    for column in ("base_ns", "new_ns", "difference_ns"):
        step = found.filter(pl.col("level") == 0)[column].item()
        parts = found.filter(pl.col("level") == 1)
        assert parts[column].sum() == step
        for part, whole in parts.select("part", column).iter_rows():
            inner = found.filter(pl.col("of") == part)
            assert inner.is_empty() or inner[column].sum() == whole
    assert found.filter(pl.col("level") == 1)["share_ratio"].sum() == pytest.approx(1)


def test_swapped_sides_have_mirrored_parts_none_of_them_negative() -> None:
    """Rounding is put right on the largest part of each side."""
    nanosecond = 1e-6
    base = kernels_run(
        [{"Add": nanosecond, "FlashAttn": 2 * nanosecond}, {"Add": 2 * nanosecond, "FlashAttn": nanosecond}]
    )
    runs = [base, kernels_run([{"MatMul": 20.0}, {"MatMul": 20.0}])]
    there, back = (compare(*pair).analyse("time_differences") for pair in (runs, runs[::-1]))

    columns = ["part", "of", "base_ns", "new_ns"]
    assert sorted(there.select(columns).rows(), key=str) == sorted(
        ((part, of, new, base) for part, of, base, new in back.select(columns).iter_rows()), key=str
    )
    assert min(there["base_ns"].to_list() + there["new_ns"].to_list()) >= 0


def test_kernels_slower_by_one_factor_are_said_to_be_so_in_both_directions() -> None:
    base = [{"MatMul": 20.0, "Add": 5.0, "Softmax": 9.0}] * 5
    slower = [{name: 1.3 * ms for name, ms in of_step.items()} for of_step in base]

    there = compare(kernels_run(base), kernels_run(slower)).analyse("kernel_change").row(0, named=True)
    back = compare(kernels_run(slower), kernels_run(base)).analyse("kernel_change").row(0, named=True)

    assert (there["pattern"], there["factor"]) == ("alike", pytest.approx(1.3))
    assert (back["pattern"], back["factor"]) == ("alike", pytest.approx(1 / 1.3))
    assert there["difference_ns"] == -back["difference_ns"] == round(0.3 * 34 * MS)


def test_kernels_without_common_names_are_compared_by_class_of_work() -> None:
    names = {"MatMul": "volta_sgemm_128x32_nt", "Add": "vectorized_elementwise_kernel"}
    found = compare(kernels_run(BASE), kernels_run(NEW, names={**names, "New": "FlashAttn"})).analyse(
        "kernel_differences"
    )

    assert set(found["compared_by"]) == {"class"}
    rows = {row["name"]: row for row in found.to_dicts()}
    assert rows["matmul"]["verdict"] == "more"
    assert rows["attention"]["verdict"] == "added"


def test_a_name_that_takes_next_to_no_time_does_not_make_kernels_comparable() -> None:
    base = [{"gemm": 20.0, "copy": 1.0}] * 5
    new = [{"MatMulV3": 30.0, "copy": 1.0}] * 5

    assert set(compare(kernels_run(base), kernels_run(new)).analyse("kernel_differences")["compared_by"]) == {"class"}


def test_the_rank_whose_own_time_has_changed_comes_first() -> None:
    found = compare(job(4, 5), job(4, 5, compute={2: 1.5})).analyse("rank_differences")

    assert found["rank"][0] == 2
    assert found["own_difference_ns"][0] == pytest.approx(10 * MS, rel=0.05)
    assert found["own_difference_ns"][1:].abs().max() < MS
    assert set(found["verdict"]) == {"more"}


def test_ranks_of_one_run_are_the_slow_one_and_a_typical_one() -> None:
    pair = compare(job(8, 5, compute={6: 1.3}))

    assert [rank.rank for rank in pair.new.ranks] == [6]
    assert [rank.rank for rank in pair.base.ranks] != [6]
    change = pair.analyse("kernel_change").row(0, named=True)
    assert change["factor"] == pytest.approx(1.3, rel=0.02)
    with pytest.raises(StepscopeError, match="no rank"):
        compare(job(8, 5))


def test_parts_of_one_run_are_compared_by_their_steps() -> None:
    pair = compare(kernels_run([*BASE, *NEW]), base_steps="1-6", steps="7-12")

    rows = {row["name"]: row["verdict"] for row in pair.analyse("kernel_differences").to_dicts()}
    assert rows["MatMul"] == "more"
    assert pair.analyse("compared_sides")["counted_steps"].to_list() == ["1-6", "7-12"]


def test_settings_that_make_it_other_work_come_first() -> None:
    sides = []
    for framework, version in (("pytorch", "2.1"), ("mindspore", "2.2")):
        run = kernels_run(BASE)
        tables = {name: run.ranks[0].table(name).collect() for name in ("kernels", "steps")}
        ranks = RANKS.frame(framework=[framework], framework_version=[version], environment=['{"A": "1", "RANK": "3"}'])
        sides.append(Run.from_frames({0: {**tables, "ranks": ranks}}))
    found = compare(*sides).analyse("setting_differences")

    assert found.rows() == [
        ("framework", "pytorch", "mindspore", "work"),
        ("framework version", "2.1", "2.2", "conditions"),
    ]


@pytest.mark.parametrize(("steps", "how", "fails"), [(5, "certain", True), (2, "untested", True)])
def test_a_slower_step_fails_unless_it_is_noise(steps: int, how: str, fails: bool) -> None:
    verdict = judged(compare(job(4, steps), job(4, steps, compute=dict.fromkeys(range(4), 1.5))), 0.05)

    assert (verdict.how, verdict.fails) == (how, fails)
    assert not judged(compare(job(4, steps), job(4, steps)), 0.0).fails


def test_a_side_without_steps_is_named() -> None:
    kernels = KERNELS.frame(kernel=[0], start_ns=[0], duration_ns=[5], kind=["compute"], name=["a"])
    without = Run.from_frames({0: {"kernels": kernels}})

    with pytest.raises(Unavailable, match=r"^new: "):
        compare(kernels_run(BASE), without).analyse("time_differences")


def test_a_part_that_one_side_does_not_know_is_no_difference() -> None:
    run = job(4, 5)
    only_steps = Run.from_frames({rank.rank: {"steps": rank.table("steps").collect()} for rank in run.ranks})
    found = compare(run, only_steps).analyse("time_differences")

    assert "exposed communication" in set(compare(run, run).analyse("time_differences")["part"])
    assert found["part"].to_list() == ["step", "not told apart"]
    assert found["base_ns"][0] == found["base_ns"][1]


def test_a_recording_without_steps_is_not_held_against_steps() -> None:
    tables = {name: kernels_run(BASE).table(name).collect().drop("rank") for name in ("kernels", "steps")}
    whole = tables["steps"].head(1).with_columns(window=pl.lit("recording"))
    pair = compare(kernels_run(BASE), Run.from_frames({0: {**tables, "steps": whole}}))

    assert pair.without_steps == "new"
    assert compare(pair.new, pair.base).without_steps == "base"
    assert next(iter(opening(pair))).startswith("Times cannot be compared: the new side has no steps")
    with pytest.raises(Unavailable, match="new: it has no steps"):
        judged(pair, 0.01)


def test_kernels_that_differ_within_noise_are_not_said_to_be_slower() -> None:
    noisy = [{"MatMul": ms} for ms in (20.0, 30.0, 22.0, 29.0, 21.0)]
    pair = compare(kernels_run(noisy), kernels_run([{"MatMul": 1.05 * of["MatMul"]} for of in noisy]))

    assert pair.analyse("kernel_change")["factor"].to_list() == [pytest.approx(1.05)]
    assert not any("equal shapes" in text for text in opening(pair))


def test_where_no_rank_can_be_found_slow_none_is_said_to_be_as_fast_as_the_others() -> None:
    steps = kernels_run(BASE).table("steps").collect().drop("rank")
    bare = Run.from_frames({rank: {"steps": steps} for rank in range(2)})

    with pytest.raises(StepscopeError, match="which rank is slow is unknown: "):
        compare(bare)
