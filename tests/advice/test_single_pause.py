"""What starts up once in a recording without steps is no time that training loses."""

from __future__ import annotations

from pathlib import Path

from stepscope.advice import Finding, advise, worded
from stepscope.run import open_run
from tests.sources.test_kineto import Trace


def told(directory: Path, pauses_us: list[int], kernel_us: int = 900, *, steps: bool = False) -> dict[str, Finding]:
    """Findings about kernels that each come so long after the one before, launched just then."""
    trace, now = Trace(), 0
    for number, pause in enumerate([0, *pauses_us], start=1):
        start = now
        now += pause
        trace.launch("k", now - 2 if pause else 0, now, kernel_us, number)
        now += kernel_us
        if steps:
            trace.add("user_annotation", f"ProfilerStep#{number}", start, now - start)
    trace.read(directory)
    return {finding.rule: finding for finding in advise(open_run([directory]))}


def test_start_up_claims_no_saving(tmp_path: Path) -> None:
    found = told(tmp_path, [12_850_000, *[10] * 100])

    assert set(found) == {"single-pause"}
    assert worded(found["single-pause"]).summary == "Rank 0 is idle once for 12.85 s: 99% of the recording."
    assert found["single-pause"].saving_ns == 0


def test_what_comes_back_beside_it_is_claimed_alone(tmp_path: Path) -> None:
    found = told(tmp_path, [12_850_000, *[300] * 100])

    assert found["idle-time"].saving_ns == 30_000_000


def test_several_pauses_of_start_up_are_all_left_out(tmp_path: Path) -> None:
    found = told(tmp_path, [8_000_000, 3_000_000, 1_000_000, *[10] * 100])

    assert set(found) == {"single-pause"}
    assert found["single-pause"].evidence["pauses"] == 3


def test_pauses_that_are_alike_come_back(tmp_path: Path) -> None:
    found = told(tmp_path, [1_000_000] * 3)

    assert set(found) == {"idle-time"}


def test_marked_steps_have_no_single_pause(tmp_path: Path) -> None:
    assert "single-pause" not in told(tmp_path, [12_850_000, *[10] * 20], steps=True)
