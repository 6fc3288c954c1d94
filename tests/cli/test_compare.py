"""`stepscope compare`: what it prints, its exit codes, and Markdown that nothing in a recording breaks."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from calling import EXAMPLE, document, printed

from stepscope.report.markdown import LONGEST, MOST, escaped

HOSTILE = "a|b`c`<img src=x> @team #12 [x](http://evil) \n## *big* www.x.y GH-7 $x$"


def trace(folder: Path, name: str, factor: float, steps: int = 5, kernel: str = "gemm") -> Path:
    """A trace of a rank with a device whose steps are `factor` times as long."""
    events = []
    for step in range(steps):
        start, length = step * 100_000 * factor, (90_000 + 100 * step) * factor
        events += [
            {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": start,
             "dur": 100_000 * factor, "pid": 1, "tid": 1},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": start + 5, "dur": 5, "pid": 1,
             "tid": 1, "args": {"correlation": step + 1}},
            {"ph": "X", "cat": "kernel", "name": kernel, "ts": start + 20, "dur": length, "pid": 0, "tid": 7,
             "args": {"correlation": step + 1, "stream": 7, "device": 0}},
        ]  # fmt: skip
    path = folder / name
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


def test_a_slower_run_is_shown_and_fails_a_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, new = trace(tmp_path, "base.json", 1.0), trace(tmp_path, "new.json", 1.2)

    text = printed(capsys, "compare", base, new)
    assert "The step is 1.20 times slower" in text
    assert "uniformly 1.20 times slower" in text or "Calls of equal shapes are 1.20 times slower in gemm" in text
    assert "slower by 20.0%; allowed are 10.0%; beyond noise" in printed(
        capsys, "compare", base, new, "--fail-if-slower", "10", code=3
    )
    printed(capsys, "compare", base, new, "--fail-if-slower", "30")
    printed(capsys, "compare", new, base, "--fail-if-slower", "0")
    assert "percentage" in printed(capsys, "compare", base, new, "--fail-if-slower=-1", code=2)


def test_settings_that_one_side_did_not_record_are_not_other_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, new, third = (trace(tmp_path, f"{name}.json", 1.0) for name in ("base", "new", "third"))
    for path, size in ((new, 4), (third, 8)):
        path.write_text(
            json.dumps({**json.loads(path.read_text()), "distributedInfo": {"rank": 0, "world_size": size}})
        )

    assert "Not the same work" not in printed(capsys, "compare", base, new)
    assert "Not the same work, so compare with care: ranks of the job: 4 and 8." in printed(
        capsys, "compare", new, third
    )


def test_a_run_with_itself_is_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "compare", EXAMPLE, EXAMPLE)

    assert {row["verdict"] for row in found["tables"]["time_differences"]} == {"same"}
    assert {**found["base"], "label": "new"} == found["new"]
    assert found["summary"][0].startswith("The step takes the same time")


def test_the_slow_rank_of_one_run_is_compared_with_a_typical_one(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "compare", EXAMPLE)

    assert found["new"]["ranks"] == [2]
    (typical,) = found["base"]["ranks"]
    assert (found["base"]["label"], found["base"]["role"]) == (f"rank {typical}", "typical")
    assert (found["new"]["label"], found["new"]["role"]) == ("rank 2", "slow")
    assert found["summary"][0].startswith("Own work of rank 2 (slow) takes ")
    assert found["summary"][1].startswith(f"In that time rank {typical} (typical) waits: ")


def test_ranks_and_steps_of_one_run_stand_in_titles_in_place_of_base_and_new(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ranks = printed(capsys, "compare", EXAMPLE, "--base-ranks", "2", "--ranks", "0")
    steps = printed(capsys, "compare", EXAMPLE, "--base-steps", "4-5", "--steps", "6-8", "--markdown")

    for text, names in ((ranks, ("rank 2", "rank 0")), (steps, ("steps 4-5", "steps 6-8"))):
        assert all(name in text for name in names)
        assert not re.search(r"\b(base|new)\b", text)
    assert "longer in a step than that of rank 0" in ranks
    assert "Differences are steps 6-8 less steps 4-5." in steps


def test_the_base_of_one_run_is_compared_with_what_is_left_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    steps = document(capsys, "compare", EXAMPLE, "--base-steps", "4-5")["tables"]["compared_sides"]
    ranks = document(capsys, "compare", EXAMPLE, "--base-ranks", "2")["tables"]["compared_sides"]

    assert [side["counted_steps"] for side in steps] == ["4-5", "6-8"]
    assert [side["ranks"] for side in ranks] == ["2", "0-1,3"]


def test_markdown_shows_names_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, new = (trace(tmp_path, f"{n}.json", 1 + n / 5, kernel=HOSTILE) for n in range(2))
    text = printed(capsys, "compare", base, new, "--markdown")

    assert len(text) < MOST
    for line in text.splitlines():
        if line.startswith("| ") and "img" in line:
            assert line.replace("\\|", "").count("|") == line.count(" | ") + 2 - line.count("\\|") * 0
    for live in ("<img", "@team", "`c`", "](http", "\n## *", "www.x"):
        assert live not in text
    assert len(escaped("x" * 10**6)) == LONGEST


def test_bad_calls_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = trace(tmp_path, "base.json", 1.0)

    assert "one rank only" in printed(capsys, "compare", base, code=2)
    assert "by nothing" in printed(capsys, "compare", base, base, "--by", "nothing", code=2)
    assert "conflicting" in printed(capsys, "compare", base, base, "--markdown", "--json", code=2)
    assert "no such file" in printed(capsys, "compare", base, tmp_path / "none", code=2)
