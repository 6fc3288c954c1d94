"""How transfers use their transports: rates, small and unaligned ones, contention, packets sent again."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from stepscope.advice import advise
from stepscope.advice.finding import Finding
from stepscope.run import Run
from stepscope.tables import COLLECTIVES, COMMUNICATION_TASKS, KERNELS, LINKS, RANKS, STEPS, TRANSPORTS

MS, GIGA = 1_000_000, 1_000_000_000

Tables = dict[str, pl.DataFrame]


def rank_of(calls: list[dict[str, Any]], *, computing: list[tuple[int, int]] = (), end: int = 100 * MS, device: int = 0,
            host: str = "h", **more: pl.DataFrame) -> Tables:  # fmt: skip
    """A rank on an NPU with one step: its calls, and matrix products at some times."""
    call = {"operation": "all_reduce", "group": "g", "on_device": True, "step": 1, "group_size": 2}
    rows = [{**call, "sequence": at, "name": f"hcom_allReduce__690_{at}_1", **one} for at, one in enumerate(calls)]
    kernel = {"kind": "compute", "name": "aclnnMatmul", "type": "MatMulV3", "step": 1}
    kernels = [{**kernel, "start_ns": a, "duration_ns": b - a} for a, b in [*computing, (0, MS // 10)]]
    bounds = {"start_ns": [0], "end_ns": [end], "window_start_ns": [0], "window_end_ns": [end]}
    who = {"framework": ["pytorch"], "device_kind": ["npu"], "host": [host], "device": [device]}
    return {
        "collectives": COLLECTIVES.conform(pl.DataFrame(rows).with_row_index("collective")),
        "kernels": KERNELS.conform(pl.DataFrame(kernels).with_row_index("kernel")),
        "steps": STEPS.conform(pl.DataFrame({"step": [1], **bounds, "window": ["device"]})),
        "ranks": RANKS.conform(pl.DataFrame(who)),
        **more,
    }


def call(start: int, length: int, size: int = 32 * 2**20, **more: Any) -> dict[str, Any]:
    return {"start_ns": start, "duration_ns": length, "size_bytes": size, **more}


def moved(*rows: tuple[int, str, int, int]) -> pl.DataFrame:
    """What calls (by number) move over transports: bytes and time."""
    names = [f"hcom_allReduce__690_{at}_1" for at, *_ in rows]
    columns = {"transport": [row[1] for row in rows], "size_bytes": [row[2] for row in rows]}
    return TRANSPORTS.frame(
        step=[1] * len(rows), group=["g"] * len(rows), name=names, duration_ns=[row[3] for row in rows], **columns
    )


def of_rule(tables: dict[int, Tables], rule: str) -> list[Finding]:
    return [one for one in advise(Run.from_frames(tables), strict=True) if one.rule == rule]


def test_rates_count_each_transfer_once() -> None:
    """HCCS and PCIe are parts of SDMA; a rank that states only these has their sum."""
    whole = moved((0, "SDMA", 3000, 100), (0, "HCCS", 2000, 50), (0, "PCIE", 1000, 50), (1, "RDMA", 700, 70))
    parts = moved((0, "HCCS", 2000, 50), (0, "PCIE", 1000, 50))
    calls = [call(0, 100), call(200, 100)]

    run = Run.from_frames({0: rank_of(calls, transports=whole), 1: rank_of(calls, transports=parts)})

    names = ("sdma_bytes", "sdma_ns", "sdma_bytes_per_s", "rdma_bytes", "rdma_bytes_per_s")
    rows = run.analyse("rank_bandwidths").select(names).rows()
    assert rows == [(3000, 100, 3e10, 700, 1e10), (3000, 100, 3e10, 0, None)]


def test_rates_of_ranks_with_links_alone_are_of_what_they_send() -> None:
    ends = {"source": [0, 1, 0], "destination": [1, 0, 0], "transport": ["HCCS", "HCCS", "LOCAL"]}
    links = LINKS.frame(step=[1] * 3, group=["g"] * 3, size_bytes=[500, 900, 7], duration_ns=[10, 10, 1], **ends)

    found = Run.from_frames({0: rank_of([call(0, 100)], links=links)}).analyse("rank_bandwidths")

    assert found.select("sdma_bytes", "sdma_bytes_per_s").rows() == [(500, 5e10)]


SMALL = [(0, "SDMA", 100_000, 50_000), (1, "SDMA", 100_000, 50_000), (2, "SDMA", 32_000_000, 100_000)]


@pytest.mark.parametrize(("large_ns", "count"), [(100_000, 1), (100_000_000, 0)])
def test_small_transfers_are_told_if_they_take_some_of_the_time(large_ns: int, count: int) -> None:
    transports = moved(*SMALL[:2], (2, "SDMA", 32_000_000, large_ns))
    calls = [call(at * MS, 90_000) for at in range(3)]

    found = of_rule({0: rank_of(calls, transports=transports)}, "small-packets")

    assert [(one.severity, one.saving_ns) for one in found] == [("low", 0)] * count
    if found:
        assert (found[0].parameters["small"], found[0].parameters["calls"]) == (2, 3)


def latent(small_ns: int) -> dict[int, Tables]:
    """Two ranks with forty awaited calls of 1 MB and three of 100 MB, which take 1 ms each."""
    small = [call(at * MS, small_ns, 1_000_000) for at in range(40)]
    large = [call((50 + 2 * at) * MS, MS, 100_000_000) for at in range(3)]
    computing = [(one["start_ns"] + one["duration_ns"], one["start_ns"] + MS) for one in small]
    return {rank: rank_of([*small, *large], computing=computing) for rank in range(2)}


def test_what_small_calls_take_longer_than_large_ones_is_saved_as_far_as_it_is_awaited() -> None:
    (finding,) = of_rule(latent(60_000), "small-packets")

    assert finding.message == "latency"
    assert finding.saving_ns == 39 * (60_000 - 10_000)  # 1 MB takes 10 us at 100 GB/s; computing covers the first call
    assert (finding.saving_low_ns, finding.replayed) == (0, True)
    assert of_rule(latent(15_000), "small-packets") == []


def contending(beside_ns: int, rate: float = 22.0) -> dict[int, Tables]:
    """Six calls beside a matrix product, and six alone that take 1 ms."""
    beside = [call(10 * at * MS, beside_ns) for at in range(6)]
    alone = [call((60 + 3 * at) * MS, MS) for at in range(6)]
    computing = [(one["start_ns"], one["start_ns"] + beside_ns - 10) for one in beside]
    sent = moved(*((at, "SDMA", 32 * 2**20, int(32 * 2**20 / rate)) for at in range(12)))
    return {rank: rank_of([*beside, *alone], computing=computing, transports=sent) for rank in range(2)}


def test_calls_beside_matrix_products_are_compared_with_calls_alone() -> None:
    (row,) = Run.from_frames(contending(2 * MS)).analyse("contended_calls").to_dicts()

    assert [row[name] for name in ("beside", "alone", "transmit_ns", "alone_ns")] == [6, 6, 2 * MS, MS]
    assert (row["is_slower"], row["excess_ns"]) == (True, 6 * MS)
    (finding,) = of_rule(contending(2 * MS), "bandwidth-contention")
    assert (finding.message, finding.severity, finding.confidence) == ("slower", "low", "possible")


def test_a_replay_says_what_shorter_calls_save() -> None:
    (contended,) = Run.from_frames(contending(2 * MS)).analyse("call_savings").filter(item="contended").to_dicts()
    (sent,) = (
        Run.from_frames(resent(5 * GIGA, rdma_ns=5 * GIGA)).analyse("call_savings").filter(item="retransmitted")
    ).to_dicts()

    assert contended["saving_ns"] == 6 * 10  # computing covers the rest
    assert (sent["saving_ns"], sent["error_ratio"]) == (5 * GIGA - MS, 0.0)


@pytest.mark.parametrize(("rate", "count"), [(22.0, 0), (11.0, 1)])
def test_as_fast_as_alone_is_told_only_below_what_sdma_reaches(rate: float, count: int) -> None:
    found = of_rule(contending(MS, rate), "bandwidth-contention")

    assert [(one.message, one.parameters["alone_rate"]) for one in found] == [("below", pytest.approx(11e9))] * count


def test_contention_of_a_single_rank_is_found() -> None:
    stated = {0: contending(2 * MS)[0]}
    stated[0]["collectives"] = stated[0]["collectives"].with_columns(wait_ns=0, transmit_ns="duration_ns")

    assert [one.message for one in of_rule(stated, "bandwidth-contention")] == ["slower"]


def tasks(*rows: tuple[str, str, int, int]) -> pl.DataFrame:
    """Tasks of a call: name, link, bytes, time."""
    columns = {"name": [row[0] for row in rows], "link": [row[1] for row in rows]}
    return COMMUNICATION_TASKS.frame(
        start_ns=list(range(len(rows))),
        duration_ns=[row[3] for row in rows],
        call=["hcom_allReduce__690_0_1"] * len(rows),
        transport=["SDMA"] * len(rows),
        size_bytes=[row[2] for row in rows],
        **columns,
    )


def test_unaligned_tasks_are_compared_with_aligned_ones_of_like_size() -> None:
    aligned = [("Memcpy", "HCCS", 1024, 10)] * 10
    others = [("Memcpy", "ON_CHIP", 1001, 9), ("Memcpy", "HCCS", 500, 9), ("Notify_Wait", "HCCS", 1001, 9)]
    unaligned = [("Memcpy", "HCCS", 1536 + 1, 30)] * 2

    one = Run.from_frames({0: rank_of([call(0, 100)], communication_tasks=tasks(*aligned, *others, *unaligned))})

    (row,) = one.analyse("unaligned_transfers").to_dicts()
    assert (row["tasks"], row["unaligned"], row["unaligned_ns"]) == (12, 2, 60)
    assert row["excess_ns"] == 60 - 30  # 2 x 1537 bytes at 102.4 bytes a ns


def alignment(unaligned_ns: int, aligned: int) -> list[Finding]:
    """An uncovered call of half the step, whose tasks are half unaligned."""
    rows = [("Memcpy", "HCCS", 2**20, 1000)] * aligned + [("Memcpy", "HCCS", 2**20 + 8, unaligned_ns)] * 20
    whole = rank_of([call(MS, 50 * MS, wait_ns=0, transmit_ns=50 * MS)], communication_tasks=tasks(*rows))
    return of_rule({0: whole}, "byte-alignment")


def test_slower_unaligned_tasks_save_their_share_of_the_uncovered_call() -> None:
    (slow,) = alignment(2000, 20)

    assert (slow.message, slow.severity) == ("slow", "high")
    assert slow.saving_ns == pytest.approx(50 * MS / 3, rel=0.01)
    assert alignment(1000, 20) == []  # as fast as aligned ones
    assert [(one.message, one.severity, one.saving_ns) for one in alignment(1000, 0)] == [("unknown", "low", 0)]


def resent(length: int, *, rdma_ns: int | None, hosts: tuple[str, str] = ("a", "b"), **more: Any) -> dict[int, Tables]:
    """Calls of 1 ms between two hosts, of which the third takes long."""
    starts = [10 * MS, 20 * MS, 30 * MS, 40 * MS + length]
    calls = [call(start, MS) for start in starts]
    calls[2] = call(starts[2], length, **more)
    times = [MS, MS, rdma_ns, MS]
    rows = [(at, "RDMA", 10**7, time) for at, time in enumerate(times) if time is not None]
    sent = {} if rdma_ns is None else {"transports": moved(*rows)}
    return {rank: rank_of(calls, end=60 * MS + length, host=host, **sent) for rank, host in enumerate(hosts)}


def test_seconds_over_rdma_are_packets_sent_again() -> None:
    (finding,) = of_rule(resent(5 * GIGA, rdma_ns=5 * GIGA), "retransmission")

    assert (finding.message, finding.severity, finding.where["steps"]) == ("long_rdma", "high", [1])
    assert (finding.saving_ns, finding.replayed) == (5 * GIGA - MS, True)
    assert finding.span_ns == (30 * MS, 30 * MS + 5 * GIGA)
    assert of_rule(resent(3 * GIGA, rdma_ns=3 * GIGA), "retransmission") == []
    assert of_rule(resent(5 * GIGA, rdma_ns=MS), "retransmission") == []  # something else took the time


def test_without_transports_only_calls_between_hosts_may_be_sent_again() -> None:
    (finding,) = of_rule(resent(5 * GIGA, rdma_ns=None), "retransmission")

    assert (finding.message, finding.confidence) == ("long", "possible")
    assert of_rule(resent(5 * GIGA, rdma_ns=None, hosts=("a", "a")), "retransmission") == []


def test_a_call_that_is_marked_as_retried_is_at_least_medium() -> None:
    (finding,) = of_rule(resent(2 * MS, rdma_ns=2 * MS, retried=True), "retransmission")

    assert (finding.message, finding.severity, finding.confidence) == ("retried", "medium", "certain")
