"""All live parts together, as processes of their own: a job whose rank 2 becomes slow, and the verdict about it."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from stepscope.cli import main
from stepscope.live.show import events
from stepscope.live.show.event_types import RankJoined, VerdictOpened

pytest.importorskip("torch")
pytest.importorskip("grpc")

EXAMPLES = Path(__file__).parents[2] / "examples" / "live"


def demo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("live_demo", EXAMPLES / "demo.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_slow_rank_of_a_running_job_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = demo()
    options = ["--steps=100000", "--slow-rank=2", "--slow-step=80", "--factor=3"]

    with module.job(tmp_path, 4, options) as (manager, training):
        found = module.wait_for_verdict(manager, training, 120)
        log = (tmp_path / "log.txt").read_text("utf-8", "replace")
        assert found is not None, log
        code = main(["live", "status", "--manager", manager])
        shown = capsys.readouterr().out

    assert found["verdict"]["ranks"] == [2]
    assert found["verdict"]["cause"] == "slow_compute"
    assert found["verdict"]["since_step"] >= 70
    assert code == 1
    assert shown.startswith("Rank 2 computes slowly")

    told = list(events.read(tmp_path / "events.jsonl"))
    assert {event.rank for event in told if isinstance(event, RankJoined)} == {0, 1, 2, 3}
    assert [event.verdict.ranks for event in told if isinstance(event, VerdictOpened)][:1] == [[2]]

    records, out = tmp_path / "records" / "demo", tmp_path / "timeline.json"
    assert main(["live", "timeline", str(records), "--steps", "10-20", "-o", str(out)]) == 0
    names = {(event["pid"], event["name"]) for event in json.loads(out.read_text())["traceEvents"]}
    assert {(rank, f"step {step}") for rank in range(4) for step in range(10, 21)} <= names
