"""The classic timeline: its rows, its limit, its summary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from export_samples import BASE, MS, exported, make_export, read, torch_frames

from stepscope.export.classic.timeline import write_timeline
from stepscope.export.rank_export import RankExport

DISPLAY, SUMMARY = "cpu_timeline_display_1.json", "cpu_timeline_summary_1.json"


def events_of(export: RankExport, pid: int, tid: int | str) -> list[dict[str, Any]]:
    """Complete events of one row."""
    found = json.loads(read(export, DISPLAY))
    return [e for e in found if e["ph"] == "X" and e["pid"] == pid and e["tid"] == tid]


def test_each_kind_of_event_has_its_row(tmp_path: Path) -> None:
    export = exported(make_export(tmp_path), write_timeline)

    assert [event["name"] for event in events_of(export, 0, 100000)] == ["4", "5", "6"]
    scopes = events_of(export, 0, 100001)
    assert {(event["name"], event["scope_level"]) for event in scopes} == {
        ("Default", 0),
        ("Gradients", 0),
        ("Net_0", 1),
        ("AddmmBackward0", 1),
        ("aten::linear", 2),
    }
    assert [event["dur"] for event in events_of(export, 0, "HostCpuOps0")][:2] == [2500, 2000]
    assert {event["name"] for event in events_of(export, 11000, 100003)} == {"data", "forward", "backward", "optimizer"}
    assert len(events_of(export, 10000, "0")) == 3
    # Operators from 2.1 to 4.6 and from 6 to 8 ms, the reduction from 7 to 8 ms.
    merged = [(event["ts"], event["dur"]) for event in events_of(export, 12000, 7999)][:2]
    assert merged == [(BASE / 1000 + 2100, 2500), (BASE / 1000 + 6000, 2000)]
    assert [event["dur"] for event in events_of(export, 12000, 8001)] == [1000] * 3
    assert not events_of(export, 12000, 8000)
    # The end of a step and the beginning of the next are one gap.
    assert [event["dur"] for event in events_of(export, 12000, 8002)][:3] == [2100, 1400, 4100]


def test_times_are_exact_to_the_nanosecond(tmp_path: Path) -> None:
    frames = torch_frames()
    shifted = frames["steps"].with_columns(start_ns=frames["steps"]["start_ns"] + 1)
    export = exported(make_export(tmp_path, {**frames, "steps": shifted}), write_timeline)

    assert f'"ts":{BASE // 1000}.001,"dur":9999.999' in read(export, DISPLAY)


def test_the_summary_counts(tmp_path: Path) -> None:
    export = exported(make_export(tmp_path), write_timeline)

    assert json.loads(read(export, SUMMARY)) == {
        "total_time": 13.5,
        "num_of_streams": 1,
        "num_of_ops": 4,
        "op_exe_times": 12,
        "max_scope_name_num": 3,
    }


def test_a_timeline_at_its_limit_is_whole_json_below_it(tmp_path: Path) -> None:
    export = make_export(tmp_path)
    export.timeline_limit_bytes = 5000

    write_timeline(export)

    text = read(export, DISPLAY)
    assert 4000 < len(text) <= 5000
    assert json.loads(text)
    assert "timeline_limit" in export.left_out[f"{DISPLAY} (events)"]


def test_a_limit_too_small_for_any_event_leaves_an_empty_list(tmp_path: Path) -> None:
    export = make_export(tmp_path)
    export.timeline_limit_bytes = 10

    write_timeline(export)

    assert json.loads(read(export, DISPLAY)) == []


def test_pretty_indents_and_says_the_same(tmp_path: Path) -> None:
    plain, pretty = make_export(tmp_path / "a"), make_export(tmp_path / "b")
    pretty.pretty = True

    write_timeline(plain)
    write_timeline(pretty)

    assert "\n    {" in read(pretty, DISPLAY)
    assert json.loads(read(pretty, DISPLAY)) == json.loads(read(plain, DISPLAY))


def test_marks_alone_make_a_timeline(tmp_path: Path) -> None:
    frames = torch_frames()
    export = exported(make_export(tmp_path, {"steps": frames["steps"], "ranks": frames["ranks"]}), write_timeline)

    assert len(events_of(export, 0, 100000)) == 3
    assert len(events_of(export, 11000, 100003)) == 12
    assert max(event["ts"] + event["dur"] for event in events_of(export, 0, 100000)) == (BASE + 30 * MS) / 1000
