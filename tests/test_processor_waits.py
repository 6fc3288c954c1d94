"""What the training thread waits for a processor: from the recorder to the advice, and what is no longer blamed."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from stepscope.advice import Finding, advise, worded
from stepscope.errors import Unavailable
from stepscope.record.processor_waits import ProcessorWaits, between
from stepscope.run import Run, open_run
from stepscope.tables import OPERATORS, RANKS, STEPS
from tests.kineto_job import grave
from tests.recordings import EPOCH_NS, MS, Raw, op

STEP = 20 * MS


def recording(
    root: Path,
    delays: dict[int, int],
    *,
    stalls: dict[int, int] | None = None,
    longer: dict[int, int] | None = None,
    larger: bool = False,
    counted: bool = True,
    count: int = 12,
) -> Run:
    """Steps of 20 ms that compute for 18 ms, then stop for so many ms.

    Args:
        root: Where to write it.
        delays: What the thread waits for a processor, ms, by step, which stop as long.
        stalls: Further stops, ms, by step.
        longer: By how much computing takes longer, ms, by step.
        larger: Whether these steps compute on larger shapes.
        counted: Whether waits were recorded.
        count: Steps.
    """
    raw, at, events = Raw(root), 0, []
    for step in range(1, count + 1):
        waited = delays.get(step, 0)
        stop = waited + (stalls or {}).get(step, 0)
        more = (longer or {}).get(step, 0)
        shape = [[128 if more and larger else 64, 64]]
        events.append(op("aten::mm", at / 1000, 18_000 + 1000 * more, **{"Input Dims": shape, "Input type": ["float"]}))
        end = at + STEP + (stop + more) * MS
        detail = f"run_delay_ns={waited * MS}" if counted else ""
        raw.add("marks", ["step", str(step), raw_time(at), raw_time(end), step, 1, detail])
        at = end
    raw.kineto(0, 0, at, events)
    return open_run(root)


def raw_time(at_ns: int) -> int:
    """A time as the recorder writes it."""
    return EPOCH_NS + at_ns


def told(run: Run) -> dict[str, Finding]:
    return {one.rule: one for one in advise(run, strict=True)}


def test_waits_of_steps_are_read(tmp_path: Path) -> None:
    run = recording(tmp_path, {3: 5}, count=4)

    assert run.rank(0).table("steps").collect()["run_delay_ns"].to_list() == [0, 0, 5 * MS, 0]
    assert run.analyse("processor_waits").select("step", "run_delay_ns").rows() == [(1, 0), (2, 0), (3, 5 * MS), (4, 0)]


def test_steps_without_counts_have_no_answer(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="was not recorded"):
        recording(tmp_path, {}, counted=False).analyse("processor_waits")


def test_a_stop_is_blamed_on_the_script_only_if_its_thread_had_a_processor(tmp_path: Path) -> None:
    waited = told(recording(tmp_path / "waited", {6: 60}))
    stopped = told(recording(tmp_path / "stopped", {}, stalls={6: 60}))
    unknown = told(recording(tmp_path / "unknown", {6: 60}, counted=False))

    assert set(waited) == {"processor-wait"}
    assert {"long-step", "idle-time"} & set(stopped) == {"long-step", "idle-time"} & set(unknown) != set()


def test_a_step_in_which_others_wait_for_a_rank_without_a_processor_is_not_long() -> None:
    def frames(rank: int, delay: int) -> dict[str, pl.DataFrame]:
        starts = [step * STEP + (60 * MS if step > 5 else 0) for step in range(12)]
        ends = [*starts[1:], starts[-1] + STEP]
        window = {"window_start_ns": starts, "window_end_ns": ends, "window": ["host"] * 12}
        delays = [delay if step == 5 else 0 for step in range(12)]
        busy = [end - start - MS for start, end in zip(starts, ends, strict=True)]
        return {
            "ranks": RANKS.frame(framework=["pytorch"], device_kind=["cpu"], world_size=[2], rank=[rank]),
            "steps": STEPS.frame(step=range(12), start_ns=starts, end_ns=ends, run_delay_ns=delays, **window),
            "operators": OPERATORS.frame(
                slice=range(12), name=["aten::mm"] * 12, start_ns=starts, duration_ns=busy, step=range(12)
            ),
        }

    def long(delay: int) -> int:
        run = Run.from_frames({rank: frames(rank, delay if rank else 0) for rank in (0, 1)})
        return run.analyse("outlier_steps").height

    assert long(0) == 1
    assert long(60 * MS) == 0


def test_the_same_operators_that_take_longer_once_are_nothing_to_change(tmp_path: Path) -> None:
    run = recording(tmp_path, {}, longer={6: 60})

    finding = told(run)["long-step"]

    assert (finding.message, finding.severity) == ("computing/same", "low")
    assert run.analyse("outlier_steps")["same_work"].to_list() == [True]


def test_on_a_host_without_free_processors_a_long_step_is_a_remark(tmp_path: Path) -> None:
    delays = dict.fromkeys(range(1, 13), 10)

    crowded = told(recording(tmp_path / "crowded", delays, longer={6: 90}, larger=True))["long-step"]
    alone = told(recording(tmp_path / "alone", {}, longer={6: 90}, larger=True))["long-step"]

    assert (crowded.severity, alone.severity) == ("low", "high")


def test_a_stall_of_one_step_is_a_remark_on_such_a_host_and_stalls_of_all_are_none(tmp_path: Path) -> None:
    delays = dict.fromkeys(range(1, 13), 10)

    single = told(recording(tmp_path / "single", delays, stalls={6: 90}))["idle-time"]
    every = told(recording(tmp_path / "every", delays, stalls=dict.fromkeys(range(1, 13), 60)))["idle-time"]

    assert (single.severity, every.severity) == ("low", "high")


def test_larger_shapes_that_take_longer_are_work_of_the_step(tmp_path: Path) -> None:
    finding = told(recording(tmp_path, {}, longer={6: 60}, larger=True))["long-step"]

    assert (finding.message, finding.severity) == ("computing", "high")


def test_a_single_wait_is_a_remark(tmp_path: Path) -> None:
    finding = told(recording(tmp_path, {6: 60}))["processor-wait"]

    assert (finding.message, finding.severity, finding.saving_ns) == ("single", "low", 0)
    assert worded(finding).summary == (
        "Training waits for processors: in 60.0 ms of 300 ms (20%), the training thread was ready to run but none was "
        "free, in the longest step for 60.0 ms."
    )


def test_waits_in_most_steps_are_a_finding_with_what_they_cost(tmp_path: Path) -> None:
    finding = told(recording(tmp_path, dict.fromkeys(range(1, 13), 5)))["processor-wait"]

    assert (finding.message, finding.severity) == ("usual", "high")
    assert (finding.saving_ns, finding.saving_low_ns) == (5 * MS, 0)
    assert "OMP_NUM_THREADS" in worded(finding).action


def test_short_waits_are_no_finding(tmp_path: Path) -> None:
    findings = advise(recording(tmp_path, {3: 2, 7: 3}), strict=True)

    assert grave(findings) == []
    assert "processor-wait" not in {one.rule for one in findings}


def test_lost_time_leaves_out_the_share_of_waits(tmp_path: Path) -> None:
    def lost(name: str, delays: dict[int, int], **options: bool) -> int:
        rows = recording(tmp_path / name, delays, **options).analyse("lost_time").filter(pl.col("cause") == "other")
        return int(rows["lost_ns"].sum())

    every = dict.fromkeys(range(1, 13), 20)  # idle for 22 of 40 ms
    assert lost("unknown", every, counted=False) == 11 * 22 * MS
    assert lost("known", every) == 11 * (22 * MS - round(20 * MS * 22 / 40))


@pytest.mark.skipif(not Path("/proc/thread-self/schedstat").exists(), reason="only Linux counts waits")
def test_the_system_counts_the_waits_of_the_thread_that_asks() -> None:
    waits = ProcessorWaits()

    first, last = waits.read(), waits.read()
    waits.close()

    assert first is not None and (between(first, last) or 0) >= 0
    assert between(None, last) is None
    assert between((first[0] + 1, 0), last) is None
