"""What the benchmark of the web server makes and reads."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, cast

import pytest

pytest.importorskip("aiohttp")
sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

from web_inputs import cluster, long_timeline, many_operators
from web_load import Load
from web_page import Tab


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A part of a job of four ranks."""
    profiler = tmp_path / "small" / "profiler"
    profiler.mkdir(parents=True)
    for rank in range(4):
        (profiler / f"profiler_info_{rank}.json").write_text(json.dumps({"rank_id": str(rank), "rank_size": 4}))
        (profiler / f"step_trace_raw_{rank}_detail_time.csv").write_text(f"step_num\n{rank}\n")
        (profiler / f"hccl_raw_{rank}.csv").write_text(f'step_num,link_info\n1,"{{""{rank}-1"": 3}}"\n')
        (profiler / f"ascend_cluster_analyse_data-parallel_1_4_{rank}.csv").write_text("computation_time\n")
    (profiler / "aicore_intermediate_0_detail.csv").write_text(
        "full_kernel_name,task_duration,execution_frequency,task_type\na/Conv-op1,0.5,2,AI_CORE\nb/Add-op2,0.25,4,AI_CORE\n"
    )
    (profiler / "framework_raw_0.csv").write_text(
        "task_id,stream_id,block_dim,full_kernel_name,op_name,kernel_name,kernel_type\n"
        "1,1,0,a/Conv-op1,a/Conv-op1,Conv-op1,Conv\n2,1,0,b/Add-op2,b/Add-op2,Add-op2,Add\n"
    )
    (profiler / "flops_0.txt").write_text("full_kernel_name,MFLOPs\na/Conv-op1,7\nb/Add-op2,8\n")
    (profiler / "output_timeline_data_0.txt").write_text("op_name\n")
    events = [
        {"name": "n", "ph": "M"},
        {"name": "a", "ph": "X", "tid": 1, "ts": 10.0, "dur": 2.0},
        {"name": "1", "ph": "X", "tid": 100000, "ts": 10.0, "dur": 3.0},
    ]
    (profiler / "ascend_timeline_display_0.json").write_text(json.dumps(events))
    return tmp_path / "small"


def test_ranks_of_a_cluster_are_like_those_of_the_small_job(small: Path, tmp_path: Path) -> None:
    profiler = cluster(small, tmp_path / "cluster", 10) / "profiler"
    assert json.loads((profiler / "profiler_info_9.json").read_bytes()) == {"rank_id": "9", "rank_size": 10}
    assert (profiler / "step_trace_raw_7_detail_time.csv").read_text() == "step_num\n3\n"
    assert '""6-5""' in (profiler / "hccl_raw_6.csv").read_text()
    assert (profiler / "ascend_cluster_analyse_data-parallel_1_10_9.csv").exists()
    assert not list(profiler.glob("*_1_4_*"))


def test_operators_are_as_many_as_asked_for_and_their_types_add_up(small: Path, tmp_path: Path) -> None:
    profiler = many_operators(small, tmp_path / "operators", 5) / "profiler"
    names = [line.split(",")[0] for line in (profiler / "aicore_intermediate_0_detail.csv").read_text().splitlines()]
    assert names[1:] == ["a/Conv-op0", "b/Add-op1", "a/Conv-op2", "b/Add-op3", "a/Conv-op4"]
    assert (profiler / "flops_0.txt").read_text().splitlines()[5] == "a/Conv-op4,7"
    totals = (profiler / "aicore_intermediate_0_type.csv").read_text().splitlines()
    assert totals[1:] == ["Add,2.000000,8,0.40000000", "Conv,3.000000,6,0.60000000"]


def test_a_timeline_has_as_many_events_as_asked_for_one_after_the_other(small: Path, tmp_path: Path) -> None:
    profiler = long_timeline(small, tmp_path / "timeline", 5) / "profiler"
    events = json.loads((profiler / "ascend_timeline_display_0.json").read_bytes())
    assert [event.get("ts") for event in events] == [None, 10.0, 10.0, 200_010.0, 200_010.0]
    assert [event["name"] for event in events] == ["n", "a", "1", "a", "2"]
    assert not (profiler / "step_trace_raw_0_detail_time.csv").exists()


def tab() -> Tab:
    found = Tab(cast(Any, None), "http://here", "/runs/a/ops")
    found._socket, found._listener = cast(Any, type("Socket", (), {"closed": False})), "listener"
    return found


def test_a_page_is_whole_when_no_part_of_it_is_being_loaded() -> None:
    page = tab()
    page._read('{"props":{"id":"ops","data-state":"loading"}},{"props":{"id":"advice","data-state":"filled"}}')
    assert page._loading == {"ops"}
    page._read('42["update",{"7":{"props":{"id":"ops","data-state":"filled"}}}]')
    assert not page._loading


def test_links_are_told_from_those_that_change_what_a_page_shows() -> None:
    page = tab()
    page._read(r'"<a href=\"/runs/a/ops?sort=x&amp;rank=1#ops\" data-go>sort</a> <a href=\"/runs/b\">other</a>"')
    assert page.links == {"/runs/a/ops?sort=x&rank=1", "/runs/b"}
    assert page.is_change("/runs/a/ops?sort=x&rank=1")
    assert not page.is_change("/runs/b")


def test_the_figures_of_a_load_are_percentiles_of_all_clicks() -> None:
    found = Load(opened=[0.1] * 90, clicked=[2.0] * 10, cpu_s=5.0)
    found.failures["/x: status 500"] = 3
    text = "\n".join(found.lines())
    assert "100 clicks (90 pages opened, 10 clicks within a page), 3 errors" in text
    assert "p50 0.100 s, p95 2.000 s" in text
    assert "50 ms a click" in text
    assert "error, 3 times: /x: status 500" in text
