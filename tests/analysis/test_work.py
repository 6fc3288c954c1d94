"""Cutting what hosts and devices did into pieces of work."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.run import Run
from stepscope.tables import COLLECTIVES, KERNELS, OPERATORS, RANKS, SLICES, STEPS

US = 1000
END = 1000
"""Length of the one step, us."""


def times(start: int, end: int) -> dict[str, int]:
    return {"start_ns": start * US, "duration_ns": (end - start) * US, "step": 1}


def kernel(start: int, end: int, launch: tuple[int, int] | None = None, **facts: object) -> dict[str, object]:
    launched = launch or (None, None)
    at = {
        f"launch_{side}_ns": None if us is None else us * US
        for side, us in zip(("start", "end"), launched, strict=True)
    }
    return {**times(start, end), "kind": "compute", "name": "gemm", "stream": 7, **at, **facts}


def call(start: int, end: int, **facts: object) -> dict[str, object]:
    own = {"group": "dp", "sequence": 0, "operation": "all_reduce", "name": "sum", "on_device": True}
    return {**times(start, end), **own, **facts}


def host(start: int, end: int, name: str, category: str = "runtime") -> dict[str, object]:
    return {**times(start, end), "category": category, "name": name}


def operator(start: int, end: int) -> dict[str, object]:
    return {**times(start, end), "name": "aten::mm", "thread": "1"}


def one_step(start: int) -> pl.DataFrame:
    columns = {"start_ns": [start * US], "end_ns": [END * US], "window": ["device"]}
    window = {"window_start_ns": [start * US], "window_end_ns": [END * US]}
    return STEPS.conform(pl.DataFrame({"step": [1], **columns, **window}))


def pieces(
    kernels=(), calls=(), slices=(), operators=(), lane: str | None = None, waited: bool = False
) -> list[tuple[object, ...]]:
    """Lane and kind (or `waited`), start and end in us of the pieces of a rank with one step of `END` us."""
    tables = {"kernel": (KERNELS, kernels), "collective": (COLLECTIVES, calls), "slice": (SLICES, slices)}
    frames = {
        table.name: table.conform(pl.DataFrame(rows, infer_schema_length=None).with_row_index(number))
        for number, (table, rows) in tables.items()
        if rows
    }
    if operators:
        frames["operators"] = OPERATORS.conform(pl.DataFrame(operators).with_row_index("slice"))
    frames |= {"steps": one_step(0), "ranks": RANKS.conform(pl.DataFrame({"host": ["h"]}))}
    found = Run.from_frames({0: frames}).analyse("work")
    assert found["work"].to_list() == list(range(found.height))
    shown = found if lane is None else found.filter(lane=lane)
    return shown.select(*(["waited"] if waited else ["lane", "kind"]), *_us("start_ns", "end_ns")).rows()


def _us(*names: str) -> list[pl.Expr]:
    return [pl.col(name) // US for name in names]


@pytest.mark.parametrize(("overlap_ns", "end"), [(999, 500), (1001, 501)])
def test_work_that_overlaps_the_next_by_no_more_than_rounding_ends_where_that_begins(overlap_ns, end) -> None:
    first = kernel(20, 500, (5, 10)) | {"duration_ns": 480 * US + overlap_ns}
    kernels = [first, kernel(500, 600, (10, 15), stream=9)]

    assert pieces(kernels, lane="stream 7") == [("stream 7", "computing", 20, end)]


def test_device_work_is_on_its_stream_and_the_hosts_time_is_cut_at_its_launches() -> None:
    kernels = [kernel(20, 80, (5, 10)), kernel(50, 90, (40, 45), stream=9, kind="memory")]

    assert pieces(kernels, operators=[operator(0, 1)]) == [
        ("host", "dispatch", 0, 10),
        ("host", "dispatch", 10, 45),
        ("stream 7", "computing", 20, 80),
        ("host", "dispatch", 45, 1000),
        ("stream 9", "memory", 50, 90),
    ]


def test_a_launch_that_returns_after_its_kernel_has_begun_ends_when_that_begins() -> None:
    assert pieces([kernel(20, 80, (15, 40))])[0] == ("host", "dispatch", 0, 20)


def test_a_kernel_that_began_before_its_launch_has_an_unknown_one() -> None:
    found = pieces([kernel(20, 80, (30, 40))])

    assert found == [("stream 7", "computing", 20, 80)]


def test_a_call_is_on_the_stream_of_its_kernel_once_and_of_a_group_where_none_is_known() -> None:
    own = kernel(100, 200, (50, 55), kind="communication", stream=20)

    assert pieces([kernel(0, 10), own], [call(100, 200)], lane="stream 20") == [
        ("stream 20", "communication", 100, 200)
    ]
    assert pieces([kernel(0, 10)], [call(100, 200)], lane="group dp") == [("group dp", "communication", 100, 200)]
    assert pieces([kernel(0, 10)], [call(100, 200, stream=3)])[1] == ("stream 3", "communication", 100, 200)


def test_a_marked_wait_for_the_device_is_the_hosts_only_after_the_last_work_that_ended_in_it() -> None:
    kernels = [kernel(20, 400, (5, 10)), kernel(20, 300, (5, 10), stream=9)]
    found = pieces(kernels, slices=[host(30, 420, "cudaStreamSynchronize")], lane="host")

    assert found == [("host", "dispatch", 0, 10), ("host", "dispatch", 10, 30), ("host", "waiting", 400, 420),
                     ("host", "dispatch", 420, 1000)]  # fmt: skip


@pytest.mark.parametrize(
    "name", ["cudaEventSynchronize", "cudaDeviceSynchronize", "hipStreamSynchronize", "aten::item"]
)
def test_every_call_that_waits_for_the_device_is_a_wait(name: str) -> None:
    category = "operator" if name.startswith("aten") else "runtime"

    assert ("host", "waiting", 400, 420) in pieces([kernel(20, 400, (5, 10))], slices=[host(30, 420, name, category)])


def test_a_wait_in_which_no_device_work_ended_is_the_hosts_own() -> None:
    """Nothing shows what it waited for, so it cannot become shorter by anything that becomes shorter."""
    assert ("host", "dispatch", 500, 600) in pieces(
        [kernel(20, 400, (5, 10))], slices=[host(500, 600, "cudaStreamSynchronize")]
    )


@pytest.mark.parametrize(
    ("name", "category", "kind"),
    [
        ("generation 2", "gc", "garbage_collection"),
        ("compile: forward", "annotation", "compile"),
        ("checkpoint: save", "annotation", "checkpoint"),
        ("enumerate(DataLoader)#_Single.__next__", "annotation", "data_loading"),
    ],
)
def test_what_the_host_is_marked_to_do_is_told_apart(name: str, category: str, kind: str) -> None:
    found = pieces(
        [kernel(20, 40, (5, 10))], slices=[host(100, 300, name, category)], operators=[operator(0, 1)], lane="host"
    )

    assert found[1:] == [("host", "dispatch", 10, 100), ("host", kind, 100, 300), ("host", "dispatch", 300, 1000)]


QUEUED = [kernel(20, 900, (5, 10)), kernel(900, 990, (10, 200))]
"""The second launch takes 190 us, 700 us before its kernel begins."""


def test_a_long_launch_whose_kernel_waits_for_many_others_is_held_back_by_a_full_queue() -> None:
    device_ended = [kernel(12, 150, (5, 10), stream=9), *QUEUED]

    found = pieces(device_ended, operators=[operator(0, 1)], lane="host")

    assert found[:2] == [("host", "dispatch", 0, 10), ("host", "waiting", 150, 200)]


def test_a_long_launch_whose_kernel_begins_at_once_is_the_hosts_own_work() -> None:
    slow = [kernel(12, 150, (5, 10), stream=9), kernel(205, 900, (10, 200))]

    assert ("host", "dispatch", 10, 200) in pieces(slow, operators=[operator(0, 1)])


def test_without_operators_and_waits_a_host_waits_wherever_its_device_works() -> None:
    found = pieces([kernel(20, 400, (5, 10)), kernel(420, 500, (405, 410))], lane="host")

    assert found == [("host", "dispatch", 0, 10), ("host", "dispatch", 400, 410), ("host", "dispatch", 500, 1000)]


@pytest.mark.parametrize("operators", [(), [operator(0, 1)]])
def test_where_no_wait_was_recorded_a_host_waited_if_it_launched_just_after_all_had_ended(operators) -> None:
    def second(launched_us: int, *more: dict[str, object]) -> tuple[object, ...]:
        kernels = [kernel(20, 400, (5, 10)), kernel(470, 480, (launched_us - 5, launched_us)), *more]
        return pieces(kernels, operators=operators, lane="host", waited=True)[1]

    assert second(420) == (True, 400, 420)
    assert second(421) == (False, 10 if operators else 400, 421)
    assert not second(420, kernel(390, 450, (5, 10), stream=9))[0]
    assert not second(420, kernel(430, 450, (5, 10), stream=9))[0]
    assert second(420, kernel(20, 405, (5, 10), stream=9)) == (True, 405, 420)


def test_on_a_cpu_the_host_computes_and_waits_until_just_after_its_calls() -> None:
    found = pieces(
        calls=[call(300, 500, on_device=False)],
        operators=[operator(0, 300), {**operator(310, 520), "name": "gloo:all_reduce"}, operator(600, 800)],
    )

    assert found == [
        ("host", "computing", 0, 300),
        ("communication", "communication", 300, 500),
        ("host", "waiting", 500, 500),
        ("host", "waiting", 500, 520),
        ("host", "dispatch", 520, 600),
        ("host", "computing", 600, 800),
        ("host", "dispatch", 800, 1000),
    ]


def test_work_before_the_first_step_is_in_no_step() -> None:
    kernels = [{**kernel(10, 20, (2, 4)), "step": None}, kernel(110, 200, (102, 104))]
    frames = {
        "kernels": KERNELS.conform(pl.DataFrame(kernels).with_row_index("kernel")),
        "steps": one_step(100),
        "ranks": RANKS.conform(pl.DataFrame({"host": ["h"]})),
    }
    found = Run.from_frames({0: frames}).analyse("work")

    assert found.select("lane", "step").rows() == [("stream 7", None), ("host", 1), ("stream 7", 1), ("host", 1)]
