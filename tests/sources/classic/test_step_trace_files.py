"""The step trace of every generation: steps, their points and calls, the average, the operators at the points."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from device_files import (
    CALL,
    MATMUL,
    STEP,
    TICK_NS,
    TRACE_HEADER,
    Read,
    call_cells,
    lines,
    starts,
    trace_row,
    trace_text,
    write,
)

OLD_CALLS = "stream_520_parallel_0_start_point,stream_520_parallel_0_end_point,stream_520_parallel_0"


TRACE = "step_trace_raw_0_detail_time.csv"


def read_trace(directory: Path, *rows: object, header: str = TRACE_HEADER, **texts: str) -> Read:
    """A step trace of these rows, read with other files by kind."""
    return Read(write(directory, step_trace=lines(header, *rows), **texts))


def step_rows(steps: int = 3) -> list[list[Any]]:
    """Rows of the first steps."""
    return [trace_row(at + 1, start) for at, start in enumerate(starts(steps))]


def test_steps_and_their_points_are_read_in_ns(tmp_path: Path) -> None:
    read = Read(write(tmp_path, step_trace=trace_text()))

    columns = ["step", "start_ns", "end_ns", "forward_start_ns", "backward_end_ns", "window", "recorded"]
    assert read.table("steps").select(columns).rows() == [
        (1, 10_000_000, 12_000_000, 10_000_000, 11_500_000, "stated", None),
        (2, 12_000_000, 14_000_000, 12_100_000, 13_500_000, "stated", None),
        (3, 14_000_000, 16_000_000, 14_100_000, 15_500_000, "stated", None),
    ]
    assert read.table("issues").is_empty()


def test_times_since_the_epoch_are_exact(tmp_path: Path) -> None:
    start = 179_000_000_123_456_789
    rows = [trace_row(1, start), trace_row(2, start + STEP), trace_row("-", start + STEP)]

    read = read_trace(tmp_path, *rows)

    assert read.table("steps")["start_ns"].to_list() == [start * TICK_NS, (start + STEP) * TICK_NS]


def test_inference_has_no_end_of_backward(tmp_path: Path) -> None:
    header = "step_num,start_point,end_point,total,fp_point,iteration_interval,fp"
    rows = [(1, 1000, 3000, 2000, 1000, 0, 2000), (2, 3000, 5000, 2000, 3500, 500, 1500)]

    read = read_trace(tmp_path, *rows, ("-", 3000, 5000, 2000, 3500, 500, 1500), header=header)

    assert read.table("steps").select("forward_start_ns", "backward_end_ns").rows() == [(10_000, None), (35_000, None)]
    assert read.table("issues").is_empty()


def test_calls_name_stream_operation_and_step(tmp_path: Path) -> None:
    names = [CALL, "stream_37_1_Receive-op663", "stream_12_2_AllGather-op5"]
    header = ",".join([TRACE_HEADER, *(f"{name},{name}_start_point,{name}_end_point" for name in names)])
    rows = [trace_row(at + 1, start, *call_cells(start) * 3) for at, start in enumerate(starts(2))]

    average = trace_row("-", starts()[1], *call_cells(starts()[1]) * 3)

    read = read_trace(tmp_path, *rows, average, header=header)

    calls = read.table("collectives").filter(step=2)
    columns = ["name", "operation", "stream", "group", "sequence", "start_ns", "duration_ns", "on_device"]
    start_ns = (starts()[1] + 100_000) * TICK_NS
    assert calls.select(columns).rows() == [
        (CALL, "all_reduce", 11, "AllReduce-op9", 1, start_ns, 200_000, True),
        (names[1], "recv", 37, "Receive-op663 of rank 0", 1, start_ns, 200_000, True),
        (names[2], "all_gather", 12, "AllGather-op5", 1, start_ns, 200_000, True),
    ]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_calls_of_1_0_may_have_their_columns_in_any_order(tmp_path: Path, order: tuple[int, ...]) -> None:
    header = ",".join([TRACE_HEADER, *(OLD_CALLS.split(",")[at] for at in order)])
    start = starts()[0]
    cells = (start + 5, start + 25, 20)
    row = trace_row(1, start, *(cells[at] for at in order))

    read = read_trace(tmp_path, row, ["-", *row[1:]], header=header)

    calls = read.table("collectives").select("stream", "operation", "start_ns", "duration_ns")
    assert calls.rows() == [(520, "parallel", (start + 5) * TICK_NS, 200)]


@pytest.mark.parametrize("absent", [(0, 0, 0), (0, STEP, STEP)])
def test_a_step_without_a_call_has_none(tmp_path: Path, absent: tuple[int, int, int]) -> None:
    header = f"{TRACE_HEADER},{CALL},{CALL}_start_point,{CALL}_end_point"
    first, second = starts(2)
    cells = absent if not absent[1] else (0, second + STEP, second + STEP)
    rows = [trace_row(1, first, *call_cells(first)), trace_row(2, second, *cells)]

    read = read_trace(tmp_path, *rows, trace_row("-", second, *call_cells(second)), header=header)

    assert read.table("collectives")["step"].to_list() == [1]
    assert read.told("error") == []


def test_a_call_that_ends_before_it_starts_is_left_out_and_told(tmp_path: Path) -> None:
    text = trace_text().replace("1100000,1120000", "1100000,1020000")

    read = Read(write(tmp_path, step_trace=text))

    assert read.table("collectives")["step"].to_list() == [2, 3]
    assert read.told() == [(TRACE, "communication: 1 of 3 rows end before they start and are left out")]


@pytest.mark.parametrize(("interval", "doubted"), [(20_000 // 3, False), (10_000, False), (77_000, True)])
def test_an_average_of_all_steps_or_all_but_the_first_is_no_surprise(
    tmp_path: Path, interval: int, doubted: bool
) -> None:
    rows = step_rows()
    average = trace_row("-", starts()[1])
    if interval == 20_000 // 3:
        average[6:8] = [interval, 140_000 + 10_000 // 3]
    elif doubted:
        average[6] = interval

    read = read_trace(tmp_path, *rows, average)

    assert bool([problem for _, problem in read.told("note") if "average" in problem]) == doubted
    assert read.table("steps").height == 3


def test_a_single_step_may_be_marked_like_the_average(tmp_path: Path) -> None:
    read = read_trace(tmp_path, *[trace_row("-", starts()[0])] * 2)

    assert read.table("steps")["step"].to_list() == [1]
    assert read.table("issues").is_empty()


ZEROS = [0] * 8
"""An average of a profile of one step, by MindSpore 1.0."""


def averaged(name: object, kind: str, steps: int) -> list[object]:
    """A row that is the average of so many steps: all zeros, lengths alone, or the means of all columns."""
    rows = [trace_row(at + 1, start)[1:] for at, start in enumerate(starts(steps))]
    means = [sum(column) // steps for column in zip(*rows, strict=True)]  # type: ignore[arg-type]
    lengths = [0, 0, means[2], 0, 0, *means[5:]]
    return [name, *{"zeros": ZEROS, "lengths": lengths, "means": means}[kind]]


@pytest.mark.parametrize("steps", [1, 2, 3, 5])
@pytest.mark.parametrize("kind", ["zeros", "lengths", "means"])
@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("name", ["-", "0", "next", "average", "0.0"])
def test_the_average_is_known_by_what_it_is(tmp_path: Path, name: str, is_first: bool, kind: str, steps: int) -> None:
    average = averaged(str(steps + 1) if name == "next" else name, kind, steps)

    read = read_trace(tmp_path, *([average, *step_rows(steps)] if is_first else [*step_rows(steps), average]))

    found = read.table("steps").select("step", "start_ns").rows()
    assert found == [(at + 1, start * TICK_NS) for at, start in enumerate(starts(steps))]
    assert [text for _, text in read.told("warning") + read.told()] == []


@pytest.mark.parametrize("start", [0, 1_000_000])
def test_a_first_step_that_is_numbered_0_is_a_step(tmp_path: Path, start: int) -> None:
    rows = [[at, start + at * STEP, start + (at + 1) * STEP, STEP] for at in range(3)]
    header = "step_num,start_point,end_point,total"

    read = read_trace(tmp_path, *rows, header=header)

    assert read.table("steps").select("step", "start_ns").rows() == [
        (at, (start + at * STEP) * TICK_NS) for at in range(3)
    ]


def mean_of(name: object, steps: int, *, without_first: bool) -> list[object]:
    """The average of a profile of so many steps."""
    rows = step_rows(steps)[int(without_first) :]
    return [name, *(sum(column) // len(rows) for column in list(zip(*rows, strict=True))[1:])]


@pytest.mark.parametrize("without_first", [True, False])
@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("left", [(0, 1), (0, 3), (2, 6), (3, 4), (5, 8), (7, 8)])
def test_the_average_of_steps_that_are_not_in_the_file_is_no_step(
    tmp_path: Path, left: tuple[int, int], is_first: bool, without_first: bool
) -> None:
    rows = step_rows(8)[slice(*left)]
    average = mean_of(9, 8, without_first=without_first)

    read = read_trace(tmp_path, *([average, *rows] if is_first else [*rows, average]))

    assert read.table("steps")["step"].to_list() == [row[0] for row in rows]


@pytest.mark.parametrize("numbers", [(1, 2, 3), (0, 1, 2), (6, 7, 8), (1, 2, 4), (1, 5, 6)])
def test_steps_without_an_average_all_count(tmp_path: Path, numbers: tuple[int, ...]) -> None:
    rows = [trace_row(number, starts(9)[number]) for number in numbers]

    assert read_trace(tmp_path, *rows).table("steps")["step"].to_list() == list(numbers)


def test_an_average_whose_start_alone_is_zero_is_no_step(tmp_path: Path) -> None:
    rows = [trace_row(at + 1, 500_000_000 + start) for at, start in enumerate(starts())]
    average = [4, 0, STEP, STEP, *rows[1][4:]]

    read = read_trace(tmp_path, *rows, average)

    assert read.table("steps")["step"].to_list() == [1, 2, 3]


def test_an_average_without_points_does_not_make_ms_of_kernels_us(tmp_path: Path) -> None:
    start = starts()[0] * 1000
    row = [1, start, start + STEP, STEP, start, start + 150_000, 0, 150_000, 50_000]
    at_ms = start * TICK_NS / 1e6
    timeline = lines("op_name, stream_id, start_time(ms), duration(ms)", (MATMUL, 4, at_ms + 0.5, 0.3))

    read = read_trace(tmp_path, row, ["0", *ZEROS], timeline=timeline)

    kernels = read.table("kernels").select("start_ns", "duration_ns", "step")
    assert kernels.rows() == [(start * TICK_NS + 500_000, 300_000, 1)]
    assert "start_time" not in str(read.table("issues"))


def test_lengths_are_those_of_the_points(tmp_path: Path) -> None:
    rows = step_rows()
    rows[1][8] = 12_345

    read = read_trace(tmp_path, *rows, trace_row("-", starts()[1]))

    assert (TRACE, "tail of 1 of 3 steps does not match their points, which are used") in read.told("note")


def test_points_outside_of_their_step_are_unknown(tmp_path: Path) -> None:
    rows = step_rows()
    rows[1][4], rows[2][5] = 7, 0

    read = read_trace(tmp_path, *rows, trace_row("-", starts()[1]))

    assert read.table("steps")["forward_start_ns"].to_list() == [10_000_000, None, 14_100_000]
    assert read.table("steps")["backward_end_ns"].null_count() >= 1
    problem = "1 of 3 steps have a fp_point outside the step; it is treated as unknown"
    assert read.told("warning") == [(TRACE, problem)]


def test_steps_that_are_counted_by_graph_are_told_apart(tmp_path: Path) -> None:
    rows = [[*trace_row(1, start), graph] for start, graph in zip(starts(), (1, 2, 1), strict=True)]

    read = read_trace(tmp_path, *rows, ["-", *rows[1][1:]], header=f"{TRACE_HEADER},model_id")

    assert read.table("steps").select("step", "graph").rows() == [(1, 1), (2, 2), (3, 1)]
    assert (TRACE, "repeats step numbers; steps are renumbered in order of their start") in read.told("note")


def test_a_trace_without_average_may_be_cut(tmp_path: Path) -> None:
    read = read_trace(tmp_path, *step_rows())

    assert read.table("steps").height == 3
    assert read.told("warning") == [(TRACE, "does not end with the average row, so steps may be missing")]


GRAPH_POINTS = [
    (1, "forward_start", "a"),
    (1, "backward_end", "b"),
    (12, "forward_start", "c"),
    (12, "backward_end", "d"),
]


@pytest.mark.parametrize(
    ("content", "stated"),
    [
        ({"fp_start": "a", "bp_end": "b"}, {"forward_start_operator": "a", "backward_end_operator": "b"}),
        ({"fp_start": "a"}, {"forward_start_operator": "a"}),
        (
            {"model_1": {"fp_start": "a", "bp_end": "b"}, "model_12": {"fp_start": "c", "bp_end": "d"}},
            {f"{graph}:{point}_operator": name for graph, point, name in GRAPH_POINTS},
        ),
    ],
)
def test_operators_at_the_points_are_stated(tmp_path: Path, content: object, stated: dict[str, str]) -> None:
    read = Read(write(tmp_path, step_points=json.dumps(content)))

    assert read.stated() == stated


def test_point_info_without_a_rank_is_that_of_every_rank(tmp_path: Path) -> None:
    write(tmp_path, step_trace=trace_text())
    (tmp_path / "step_trace_point_info.json").write_text('{"fp_start": "a", "bp_end": "b"}')

    assert Read(tmp_path).stated()["forward_start_operator"] == "a"


class TestTotals:
    """`cluster_analyse`: rows of steps, and an average that is not kept."""

    HEADER = "computation_time,communication_alone_time"

    PIPELINE = (
        "computing_and_free_ns",
        "communication_not_overlapped_ns",
        "stage_ns",
        "bubble_ns",
        "communication_not_overlapped_exclude_receive_ns",
    )

    def totals(self, tmp_path: Path, *rows: object, **more: str) -> pl.DataFrame:
        return Read(write(tmp_path, cluster_steps=lines(self.HEADER, *rows), **more)).table("step_totals")

    def test_the_step_trace_tells_the_average(self, tmp_path: Path) -> None:
        rows = self.totals(tmp_path, (1.5, 0.5), (1.6, 0.4), (1.7, 0.3), (9, 9), step_trace=trace_text())

        assert rows.select("step", *self.PIPELINE[:2]).rows() == [
            (1, 1_500_000, 500_000),
            (2, 1_600_000, 400_000),
            (3, 1_700_000, 300_000),
        ]

    @pytest.mark.parametrize(
        ("rows", "computing_ns"),
        [
            ([(1.5, 0.5), (1.6, 0.4), (1.7, 0.3), (1.6501, 0.35)], [1_500_000, 1_600_000, 1_700_000]),
            ([(1.5, 0.5), (1.6, 0.4), (1.7, 0.3), (1.8, 0.2)], [1_500_000, 1_600_000, 1_700_000, 1_800_000]),
            ([(1.65, 0.35), (1.5, 0.5), (1.6, 0.4), (1.7, 0.3)], [1_500_000, 1_600_000, 1_700_000]),
            ([(1.5, 0.5)], [1_500_000]),
            ([(651.9051, 1293.1231)], [651_905_100]),
            ([(651.9051, 1293.1231), (0, 0)], [651_905_100]),
        ],
    )
    def test_without_one_its_figures_do(self, tmp_path: Path, rows: list[object], computing_ns: list[int]) -> None:
        assert self.totals(tmp_path, *rows)["computing_and_free_ns"].to_list() == computing_ns

    def test_other_steps_than_those_of_the_trace_are_told(self, tmp_path: Path) -> None:
        read = Read(write(tmp_path, cluster_steps=lines(self.HEADER, (1.5, 0.5)), step_trace=trace_text()))

        assert "has 1 steps but the step trace has 3; they are numbered from 1" in [t for _, t in read.told("warning")]

    @pytest.mark.parametrize(
        "header",
        [
            f"{HEADER},stage_time,receive_alone_time,collective_communication_alone_time",
            "computation,communication_alone_time,stage_time,receive_alone_time,collective_communication_time",
            "Computation Time(ms),Communication Alone(ms),Stage(ms),Receive Alone(ms),Collective(ms)",
            "computing,communication_not_overlapped,stage,recv,communication_except_receive",
            "a,b,c,d,e",
            "",
        ],
    )
    def test_columns_of_pipelines_are_known_by_their_words_or_places(self, tmp_path: Path, header: str) -> None:
        row = "651.9051,1293.1231,1577.1234,368.7766,227.1234"

        read = Read(write(tmp_path, cluster_steps=lines(*([header] if header else []), row)))

        found = read.table("step_totals").select(self.PIPELINE).rows()
        assert found == [(651_905_100, 1_293_123_100, 1_577_123_400, 368_776_600, 227_123_400)]
        assert read.told() == []

    def test_columns_may_stand_in_another_order_beside_strangers(self, tmp_path: Path) -> None:
        text = lines("step,communication_alone_time,computation", (1, 1293.1, 651.9))

        read = Read(write(tmp_path, cluster_steps=text))

        assert read.table("step_totals").select(self.PIPELINE[:2]).rows() == [(651_900_000, 1_293_100_000)]
        assert read.told() == []

    @pytest.mark.parametrize(
        ("rows", "step_trace"),
        [
            ([(0, 150_000, 50_000), *[(10_000, 140_000, 50_000)] * 2], trace_text()),
            ([(0, 150_000, 50_000), *[(10_000, 140_000, 50_000)] * 2], None),
            ([(0.0, 1.5, 0.5), *[(0.1, 1.4, 0.5)] * 2], trace_text()),
            ([(0.0, 1.5, 0.5), *[(0.1, 1.4, 0.5)] * 2], None),
            ([(0, 1500, 500), *[(100, 1400, 500)] * 2], trace_text()),
        ],
    )
    def test_phases_of_steps_are_kept_in_the_unit_that_fits(
        self, tmp_path: Path, rows: list[object], step_trace: str | None
    ) -> None:
        text = lines("iteration_interval, fp_and_bp, tail", *rows, *([] if step_trace else [rows[-1]]))

        read = Read(write(tmp_path, cluster_steps=text, step_trace=step_trace))

        found = read.table("step_totals").select("step", "interval_ns", "forward_backward_ns", "tail_ns")
        assert found.rows()[:2] == [(1, 0, 1_500_000, 500_000), (2, 100_000, 1_400_000, 500_000)]
        assert read.told() == []

    def test_without_any_column_that_is_known_the_file_is_refused_by_name(self, tmp_path: Path) -> None:
        read = Read(write(tmp_path, cluster_steps="a,b,c,d\n1,2,3,4\n", step_trace=trace_text()))

        assert [name for name, _ in read.told()] == ["ascend_cluster_analyse_data-parallel_1_1_0.csv"]
