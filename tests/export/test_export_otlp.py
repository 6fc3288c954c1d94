"""Ranges and samples of a run as OpenTelemetry's spans and metrics."""

from __future__ import annotations

import gzip
import json
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from otlp_files import as_protobuf_json, attributes, lines, traces

from builders import EPOCH_NS, MS, make_run
from stepscope.analysis.methods import batches
from stepscope.errors import StepscopeError
from stepscope.export.otlp import line_files, linked_calls, ranges, sending, write_otlp
from stepscope.export.otlp.writing import CATEGORIES, DEFAULT_CATEGORIES
from stepscope.run import Run, open_runs
from stepscope.tables import COUNTERS, INPUT_PIPELINE, KERNELS, MEMORY_CURVE, OPERATORS, RANKS, SLICES, STEPS, THREADS

REAL = (
    "pytorch/dlrm_8rank_v100",
    "pytorch/cpu_gloo_4rank_straggler_r2",
    "ascend/text_8rank",
    "mindspore/synthetic_dp4",
)


def slices(*rows: tuple[Any, ...]) -> pl.DataFrame:
    """Slices: number, category, name, start, duration, parent, correlation, step."""
    number, category, name, start, duration, parent, correlation, step = zip(*rows, strict=True)
    on_device = [one in ("kernel", "memory", "communication") for one in category]
    return SLICES.frame(
        slice=number,
        category=category,
        name=name,
        start_ns=start,
        duration_ns=duration,
        parent=pl.Series(parent, dtype=pl.Int64),
        correlation=pl.Series(correlation, dtype=pl.Int64),
        step=pl.Series(step, dtype=pl.Int32),
        process=["9" if not one else "0" for one in on_device],
        thread=["12" if not one else "7" for one in on_device],
        device=pl.Series([0 if one else None for one in on_device], dtype=pl.Int32),
        stream=pl.Series([7 if one else None for one in on_device], dtype=pl.Int32),
    )


def trained() -> Run:
    """Two steps: a Python call with an operator in it that launches a kernel, which ends in the next step."""
    at = EPOCH_NS
    rows = slices(
        (0, "python", "train.py(3): step", at, 90, None, None, 1),
        (1, "operator", "aten::linear", at + 10, 50, 0, None, 1),
        (2, "python", "inner", at + 12, 40, 1, None, 1),
        (3, "operator", "aten::mm", at + 15, 30, 2, None, 1),
        (4, "runtime", "cudaLaunchKernel", at + 20, 5, 3, 77, 1),
        (5, "kernel", "gemm", at + 100, 20, None, 77, 2),
        (6, "kernel", "unlaunched", at + 121, 5, None, 78, 2),
        (7, "other", "PyTorch Profiler (0)", at - 10, 300, None, None, None),
    )
    operators = OPERATORS.frame(
        slice=[1, 3], start_ns=[at + 10, at + 15], duration_ns=[50, 30], name=["aten::linear", "aten::mm"],
        input_shapes=[None, "[[2, 3], [3, 4]]"], input_types=[None, '["float", "float"]'], step=[1, 1],
    )  # fmt: skip
    kernels = KERNELS.frame(
        kernel=[0, 1], start_ns=[at + 100, at + 121], duration_ns=[20, 5], kind=["compute"] * 2,
        name=["gemm", "unlaunched"], stream=[7, 7], device=[0, 0], grid=["[8, 1, 1]", None], step=[2, 2],
    )  # fmt: skip
    bounds = {"start_ns": [at, at + 95], "end_ns": [at + 95, at + 200]}
    windows = {f"window_{name}": values for name, values in bounds.items()}
    facts = RANKS.frame(
        rank=[0], host=["node7"], process=[9], framework=["pytorch"], world_size=[1], start_ns=[at], end_ns=[at + 300]
    )
    tables = {
        "ranks": facts,
        "steps": STEPS.frame(step=[1, 2], window=["host"] * 2, **bounds, **windows),
        "slices": rows,
        "operators": operators,
        "kernels": kernels,
        "threads": THREADS.frame(process=["9", "0"], thread=["12", "7"], thread_name=["main", "stream 7"]),
    }
    return Run.from_frames({0: tables})


def test_a_step_is_a_trace_and_ranges_are_below_what_encloses_them(tmp_path: Path) -> None:
    made = write_otlp(trained(), tmp_path / "out")
    read = traces(made.files)
    roots = [span for span in read.spans.values() if "parentSpanId" not in span]
    assert [root["name"] for root in roots] == ["step 1", "step 2"]
    assert len({root["traceId"] for root in roots}) == 2
    outer, inner, kernel = (read.named(name) for name in ("aten::linear", "aten::mm", "gemm"))
    assert read.parent(outer)["name"] == "step 1"
    assert read.parent(inner) == outer  # the Python call between them is left out
    assert read.parent(kernel)["name"] == "step 2"
    assert read.linked(kernel) == [("launch", inner)]  # it is in another trace
    assert read.linked(read.named("unlaunched")) == []
    assert made.left_out == {
        "other ranges": "1 ranges: this category was not chosen",
        "python ranges": "2 ranges: this category was not chosen",
        "runtime ranges": "1 ranges: this category was not chosen",
    }
    assert made.notes == [
        "4 ranges are spans, in 2 traces: one for each step of a rank, and for what is outside all steps."
    ]


def test_spans_say_what_is_known_of_a_range(tmp_path: Path) -> None:
    read = traces(write_otlp(trained(), tmp_path / "out").files)
    operator, kernel = read.named("aten::mm"), read.named("gemm")
    assert operator["startTimeUnixNano"] == str(EPOCH_NS + 15)
    assert operator["endTimeUnixNano"] == str(EPOCH_NS + 45)
    assert operator["told"] == {
        "stepscope.category": "operator",
        "stepscope.step": 1,
        "stepscope.process": "9",
        "thread.id": 12,
        "thread.name": "main",
        "stepscope.input_shapes": "[[2, 3], [3, 4]]",
        "stepscope.input_types": '["float", "float"]',
    }
    assert kernel["told"] == {
        "stepscope.category": "kernel",
        "stepscope.step": 2,
        "stepscope.process": "0",
        "stepscope.device": 0,
        "stepscope.stream": 7,
        "stepscope.track": "stream 7",
        "stepscope.grid": "[8, 1, 1]",
    }
    assert kernel["about"] == {
        "service.name": "frames",
        "service.instance.id": "rank 0",
        "host.name": "node7",
        "process.pid": 9,
        "stepscope.rank": 0,
        "stepscope.world_size": 1,
        "stepscope.framework": "pytorch",
        "stepscope.times_since_epoch": True,
        "stepscope.clock_offset_ns": 0,
    }


def test_all_categories_can_be_chosen(tmp_path: Path) -> None:
    made = write_otlp(trained(), tmp_path / "out", categories=CATEGORIES)
    read = traces(made.files)
    launch = read.named("cudaLaunchKernel")
    assert read.parent(launch) == read.named("aten::mm")
    assert read.parent(read.named("aten::mm"))["name"] == "inner"
    assert read.linked(read.named("gemm")) == [("launch", launch)]
    outside = read.parent(read.named("PyTorch Profiler (0)"))
    assert (outside["name"], outside["startTimeUnixNano"]) == ("outside steps", str(EPOCH_NS - 10))
    assert sum(read.counts.values()) == 8
    assert not any(name.endswith("ranges") for name in made.left_out)


def test_categories_are_those_of_the_table() -> None:
    (column,) = (column for column in SLICES.columns if column.name == "category")
    assert {*column.doc.split("`")[1::2]} == {*CATEGORIES}
    assert {*DEFAULT_CATEGORIES} < {*CATEGORIES}


def test_a_choice_of_categories_must_have_ranges(tmp_path: Path) -> None:
    with pytest.raises(StepscopeError, match=r"no category 'kernels'.*kernel"):
        write_otlp(trained(), tmp_path / "out", categories=["kernels"])
    with pytest.raises(StepscopeError, match=r"no ranges of gc\. It has kernel, operator, other, python, runtime"):
        write_otlp(trained(), tmp_path / "out", categories=["gc"])
    for size in (0, -1, float("nan"), float("inf")):
        with pytest.raises(StepscopeError, match="file_mb is"):
            write_otlp(trained(), tmp_path / "out", file_mb=size)
    with pytest.raises(StepscopeError, match="no category of ranges is chosen"):
        write_otlp(trained(), tmp_path / "out", categories=[])
    assert not (tmp_path / "out").exists()


def test_ids_are_the_same_for_a_selection(tmp_path: Path) -> None:
    run = make_run(3, 3)
    every = traces(write_otlp(run, tmp_path / "all").files)
    again = traces(write_otlp(make_run(3, 3), tmp_path / "again").files)
    some = traces(write_otlp(run.select(ranks="1", steps="2"), tmp_path / "some").files)
    assert list(every.spans) == list(again.spans)
    assert {*some.spans} < {*every.spans}
    assert len(some.spans) == 3
    first, second = ((tmp_path / name / "traces-rank-0.jsonl").read_bytes() for name in ("all", "again"))
    assert first == second


def test_members_of_a_call_are_linked_with_the_last_to_enter(tmp_path: Path) -> None:
    run = make_run(4, 2, late={2: 5 * MS})
    read = traces(write_otlp(run, tmp_path / "out").files)
    calls = [span for span in read.spans.values() if span["name"] == "all_reduce"]
    assert len(calls) == 8
    for call in calls:
        rank, step = call["about"]["stepscope.rank"], call["told"]["stepscope.step"]
        others = [
            (why, one["about"]["stepscope.rank"], one["told"]["stepscope.step"]) for why, one in read.linked(call)
        ]
        assert others == [("collective", other, step) for other in ((0, 1, 3) if rank == 2 else (2,))]
        assert call["told"]["stepscope.group"] == "world"
        assert call["told"]["stepscope.sequence"] == step - 1
        assert call["told"]["stepscope.size_bytes"] == 1 << 20
        assert call["told"]["stepscope.wait_ns"] == (0 if rank == 2 else 5 * MS)
        assert (call["told"]["stepscope.members"], call["told"]["stepscope.operation"]) == (4, "all_reduce")


def test_links_of_one_span_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linked_calls, "MOST_LINKS", 2)
    read = traces(write_otlp(make_run(5, 1, late={4: MS}), tmp_path / "out").files)
    last = read.named("all_reduce", 4)
    assert [one["about"]["stepscope.rank"] for _, one in read.linked(last)] == [0, 1]
    assert last["droppedLinksCount"] == 2


def test_calls_without_any_other_row_are_spans_of_their_own(tmp_path: Path) -> None:
    run = make_run(2, 2)
    frames = {
        rank.rank: {name: rank.table(name).collect() for name in ("ranks", "steps", "collectives")}
        for rank in run.ranks
    }
    read = traces(write_otlp(Run.from_frames(frames), tmp_path / "out").files)
    assert read.counts == {(0, "communication"): 2, (1, "communication"): 2}
    assert all(read.linked(span) for span in read.spans.values() if span["told"]["stepscope.category"] != "step")


def test_a_call_whose_range_is_in_a_step_that_is_not_chosen_is_left_out(tmp_path: Path) -> None:
    run = make_run(1, 2)
    tables = {name: run.table(name).collect() for name in ("steps", "kernels", "collectives")}
    is_call = pl.col("kind") == "communication"
    later = pl.when(is_call & (pl.col("step") == 2)).then(pl.lit(1, pl.Int32)).otherwise("step")
    tables["kernels"] = tables["kernels"].with_columns(step=later)
    job = Run.from_frames({0: tables})
    assert traces(write_otlp(job, tmp_path / "all").files).counts == {(0, "kernel"): 2, (0, "communication"): 2}
    some = traces(write_otlp(job.select(steps="2"), tmp_path / "some").files)
    assert some.counts == {(0, "kernel"): 1}


def test_calls_that_are_alike_are_each_one_span(tmp_path: Path) -> None:
    run = make_run(1, 1)
    tables = {name: run.table(name).collect() for name in ("steps", "kernels", "collectives")}
    for name, number in (("kernels", "kernel"), ("collectives", "collective")):
        twice = pl.concat([tables[name], tables[name]])
        tables[name] = twice.with_columns(pl.int_range(twice.height, dtype=pl.Int64).alias(number))
    read = traces(write_otlp(Run.from_frames({0: tables}), tmp_path / "out").files)
    assert read.counts == {(0, "communication"): 2, (0, "kernel"): 2}
    calls = [span for span in read.spans.values() if span["name"] == "all_reduce"]
    assert [call["told"]["stepscope.group"] for call in calls] == ["world", "world"]


def test_times_before_1970_move_all_ranks_together(tmp_path: Path) -> None:
    rows = slices((0, "operator", "early", -1_500_000_000, 10, None, None, None))
    later = slices((0, "operator", "later", 5, 10, None, None, None))
    made = write_otlp(Run.from_frames({0: {"slices": rows}, 1: {"slices": later}}), tmp_path / "out")
    read = traces(made.files)
    assert read.named("early")["startTimeUnixNano"] == "500000000"
    assert read.named("later", 1)["startTimeUnixNano"] == "2000000005"
    assert read.named("later", 1)["about"]["stepscope.time_shift_ns"] == 2_000_000_000
    assert "All times are 2 s later than recorded, as OTLP has no times before 1970." in made.notes


def test_ranks_are_on_one_clock(tmp_path: Path) -> None:
    run, off = make_run(4, 5), 50 * MS
    frames: dict[int, dict[str, pl.DataFrame]] = {}
    for rank in run.ranks:
        late = pl.selectors.ends_with("start_ns", "end_ns") + (off if rank.rank == 3 else 0)
        tables = {name: rank.table(name).collect() for name in ("ranks", "steps", "kernels", "collectives")}
        tables["ranks"] = tables["ranks"].with_columns(host=pl.lit(f"node{rank.rank}"))
        frames[rank.rank] = {name: rows.with_columns(late) for name, rows in tables.items()}
    made = write_otlp(Run.from_frames(frames), tmp_path / "out")
    read = traces(made.files)
    starts = {
        (span["startTimeUnixNano"], span["endTimeUnixNano"])
        for span in read.spans.values()
        if span["name"] in ("step 2", "gemm") and span["told"]["stepscope.step"] == 2
    }
    assert len(starts) == 2
    offsets = {
        span["about"]["stepscope.rank"]: span["about"]["stepscope.clock_offset_ns"] for span in read.spans.values()
    }
    assert offsets == {0: 0, 1: 0, 2: 0, 3: off}
    assert any("clocks of rank 3 are corrected" in note for note in made.notes)


def test_times_and_texts_beyond_all_bounds_are_told(tmp_path: Path) -> None:
    most = (1 << 63) - 1
    rows = slices(
        (0, "operator", 'a\x00b\n\x1b[31m\u2028"\\', 0, -7, None, None, 1),
        (1, "operator", "名" * 1_000_000, most, most, None, None, 1),
        (2, "operator", "", 5, 0, 99, None, 1),
        (3, "python", "round", 1, 2, 4, None, 1),
        (4, "python", "and round", 1, 2, 3, None, 1),
        (5, "operator", "in a circle", 1, 1, 3, None, 1),
    )
    made = write_otlp(Run.from_frames({0: {"slices": rows}}), tmp_path / "out")
    read = traces(made.files)
    negative, long = read.named('a\x00b\n\x1b[31m\u2028"\\'), read.named("名" * 4096)
    assert (negative["endTimeUnixNano"], negative["told"]["stepscope.duration_ns"]) == ("0", -7)
    assert (long["endTimeUnixNano"], long["told"]["stepscope.name_characters"]) == (str(2 * most), 1_000_000)
    assert {read.parent(read.named(name))["name"] for name in ("", "in a circle")} == {"step 1"}
    assert made.left_out["negative durations"] == "1 were written as 0; `stepscope.duration_ns` has them"
    assert made.left_out["cut texts"] == "1 were cut to 4096 characters"


def test_ten_thousand_threads(tmp_path: Path) -> None:
    number = 10_000
    rows = SLICES.frame(
        slice=range(number), category=["operator"] * number, name=["op"] * number, start_ns=range(number),
        duration_ns=[1] * number, thread=[str(one) for one in range(number)], process=["9"] * number,
    )  # fmt: skip
    read = traces(write_otlp(Run.from_frames({0: {"slices": rows}}), tmp_path / "out").files)
    ranged = [span["told"] for span in read.spans.values() if "parentSpanId" in span]
    assert {told["thread.id"] for told in ranged} == {*range(number)}


def test_samples_are_gauges(tmp_path: Path) -> None:
    counters = COUNTERS.frame(
        time_ns=[5, 6, 7], name=["clock_mhz"] * 3, device=[0, 0, None], value=[800.5, float("nan"), 900.0]
    )
    curve = MEMORY_CURVE.frame(
        time_ns=[5, 6], component=[None, "PTA"], allocated_bytes=[1, 2], reserved_bytes=[None, 4]
    )
    made = write_otlp(Run.from_frames({3: {"counters": counters, "memory_curve": curve}}), tmp_path / "out")
    assert [file.name for file in made.files] == ["metrics-rank-3.jsonl"]
    (line,) = lines(made.files, "metrics")
    found = line["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]
    points = {
        one["name"]: [
            (point["timeUnixNano"], point.get("asDouble", point.get("asInt")), attributes(point["attributes"]))
            for point in one["gauge"]["dataPoints"]
        ]
        for one in found
    }
    assert points == {
        "stepscope.counter.clock_mhz": [("5", 800.5, {"stepscope.device": 0}), ("7", 900.0, {})],
        "stepscope.memory.allocated": [("5", "1", {}), ("6", "2", {"stepscope.component": "PTA"})],
        "stepscope.memory.reserved": [("6", "4", {"stepscope.component": "PTA"})],
    }
    assert made.left_out["samples that are no finite numbers"] == "1 were left out"


def test_nothing_to_write_is_an_error_that_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(StepscopeError, match="has neither ranges, steps nor samples"):
        write_otlp(Run.from_frames({0: {}}), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_files_are_split_and_lines_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_files, "LINE_BYTES", 2_000)
    monkeypatch.setattr(batches, "BATCH_ROWS", 7)
    monkeypatch.setattr(ranges, "_PART_ROWS", 5)
    run = make_run(2, 20)
    made = write_otlp(run, tmp_path / "out", file_mb=0.01)
    names = [file.name for file in made.files]
    assert names[:2] == ["traces-rank-0.jsonl", "traces-rank-0-2.jsonl"]
    assert all(file.stat().st_size <= 10_000 for file in made.files)
    split = traces(made.files)
    whole = traces(write_otlp(run, tmp_path / "whole").files)
    assert split.spans == whole.spans


@pytest.mark.parametrize("name", REAL)
def test_real_recordings_have_a_span_for_each_range(shared: Path, tmp_path: Path, name: str) -> None:
    (run,) = open_runs([shared / "data" / name])
    if "pytorch" in name:  # which have the most ranges
        run = run.select(ranks="0-1", steps="4" if "gloo" in name else None)
    counts: Counter[tuple[int, str]] = Counter()
    if run.has("slices"):
        rows = run.table("slices").group_by("rank", "category").len().collect()
        counts.update({(rank, category): number for rank, category, number in rows.iter_rows()})
    if not any(category in ranges.DEVICE for _, category in counts):
        for table, category in (("kernels", "kernel"), ("collectives", "communication")):
            if run.has(table) and "gloo" not in name:  # whose calls are annotations
                alone = run.table(table).group_by("rank").len().collect().iter_rows()
                counts.update({(rank, category): number for rank, number in alone})
    every = traces(write_otlp(run, tmp_path / "all", categories=CATEGORIES).files)
    assert every.counts == counts
    made = write_otlp(run, tmp_path / "out")
    read = traces(made.files)
    assert read.counts == {key: number for key, number in counts.items() if key[1] in DEFAULT_CATEGORIES}
    assert sum("links" in span for span in read.spans.values()) >= run.table("collectives").collect().height // 2
    left = Counter[str]()
    for (_, category), number in counts.items():
        left[category] += number if category not in DEFAULT_CATEGORIES else 0
    told = {key: why for key, why in made.left_out.items() if key.endswith(" ranges")}
    assert told == {f"{key} ranges": f"{n} ranges: this category was not chosen" for key, n in left.items() if n}


def test_tables_without_a_place_are_named(tmp_path: Path) -> None:
    queue = INPUT_PIPELINE.frame(time_ns=[5], operator=["BatchOp_1"], queue_size=[1])
    run = trained()
    frames = {name: run.table(name).collect() for name in run.ranks[0].rows}

    made = write_otlp(Run.from_frames({0: {**frames, "input_pipeline": queue}}), tmp_path / "out")

    assert made.left_out["input_pipeline"] == "the format has no place for them"


@pytest.mark.parametrize("name", [REAL[0], REAL[2]])
def test_lines_are_the_messages_of_the_protocol(shared: Path, tmp_path: Path, name: str) -> None:
    json_format = pytest.importorskip("google.protobuf.json_format")
    trace = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    metric = pytest.importorskip("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")
    (run,) = open_runs([shared / "data" / name])
    made = write_otlp(run.select(ranks="0"), tmp_path / "out")
    spans = 0
    for line in lines(made.files, "traces"):
        message = trace.ExportTraceServiceRequest()
        json_format.Parse(json.dumps(as_protobuf_json(line)), message)
        spans += len(message.resource_spans[0].scope_spans[0].spans)
    assert spans == len(traces(made.files).spans)
    for line in lines(made.files, "metrics"):
        json_format.Parse(json.dumps(line), metric.ExportMetricsServiceRequest())


class Collector:
    """A server that takes requests, or answers them otherwise.

    Args:
        answers: Status and body of each answer; the last one of all further requests.
    """

    def __init__(self, *answers: tuple[int, bytes]) -> None:
        self.taken: list[tuple[str, dict[str, str], Any]] = []
        collector = self
        left = list(answers or [(200, b"{}")])

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = gzip.decompress(self.rfile.read(int(self.headers["Content-Length"])))
                collector.taken.append((self.path, dict(self.headers), json.loads(body)))
                status, told = left.pop(0) if len(left) > 1 else left[0]
                self.send_response(status)
                self.send_header("Content-Length", str(len(told)))
                self.end_headers()
                self.wfile.write(told)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)

    def __enter__(self) -> Collector:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Requests are repeated at once."""
    monkeypatch.setattr(sending, "PAUSES_S", (0.0, 0.0))
    yield


def test_all_lines_are_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b")
    rejecting = json.dumps({"partialSuccess": {"rejectedSpans": "2", "errorMessage": "full"}}).encode()
    with Collector((200, rejecting), (200, b"")) as collector:
        made = write_otlp(make_run(2, 1), tmp_path / "out", endpoint=collector.url + "/v1/traces")
    assert [path for path, *_ in collector.taken] == ["/v1/traces"] * 2
    assert [line for *_, line in collector.taken] == list(lines(made.files, "traces"))
    assert collector.taken[0][1]["api-key"] == "a b"
    assert collector.taken[0][1]["Content-Type"] == "application/json"
    assert f"2 requests were sent to {collector.url}/v1/traces." in made.notes
    assert made.left_out[f"{collector.url}/v1/traces"].endswith("did not take 2 spans or samples")


@pytest.mark.usefixtures("hurried")
def test_requests_are_repeated_where_the_protocol_allows_it(tmp_path: Path) -> None:
    with Collector((503, b""), (429, b""), (200, b"")) as collector:
        write_otlp(make_run(1, 1), tmp_path / "out", endpoint=collector.url)
    assert len(collector.taken) == 3


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize(
    ("status", "requests", "words"),
    [
        (400, 1, "the answer is 400 Bad Request. 0 requests were taken before; the files in .*out are complete"),
        (302, 1, "the answer is a redirect"),
        (503, 3, "the answer is 503"),
    ],
)
def test_what_is_not_taken_is_an_error_and_the_files_stay(
    tmp_path: Path, status: int, requests: int, words: str
) -> None:
    with Collector((status, b"")) as collector, pytest.raises(StepscopeError, match=words):
        write_otlp(make_run(2, 1), tmp_path / "out", endpoint=collector.url)
    assert len(collector.taken) == requests
    assert len(traces(sorted((tmp_path / "out").iterdir())).spans) == 6


@pytest.mark.usefixtures("hurried")
def test_an_endpoint_that_is_none_is_said(tmp_path: Path) -> None:
    with pytest.raises(StepscopeError, match="is not a URL"):
        write_otlp(make_run(1, 1), tmp_path / "out", endpoint="localhost:4318")
    assert not (tmp_path / "out").exists()
    with Collector() as collector:
        pass
    with pytest.raises(StepscopeError, match="no answer"):
        write_otlp(make_run(1, 1), tmp_path / "out", endpoint=collector.url)
