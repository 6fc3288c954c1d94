"""What a job would take if some work took another time: by rank, kind, operator, link, size."""

from __future__ import annotations

import re

import polars as pl
import pytest

from stepscope.analysis.methods.scenario import faster, scaled, sizes_of, without
from stepscope.errors import StepscopeError, Unavailable
from stepscope.run import Run
from stepscope.tables import COLLECTIVES, GROUPS, KERNELS, LINKS, RANKS, STEPS
from tests.analysis.jobs import MS, TRANSFER, job

PAIRS = {"a": (0, 1), "b": (2, 3), "c": (4, 5)}
COMPUTE, CALL, SLOW = 10 * MS, 2 * MS, 5 * MS


def paired(slow_ns: int = SLOW, *, links: bool = False) -> Run:
    """Six ranks on three hosts that compute and then call in pairs; the calls of ranks 0 and 1 take longer."""
    frames = {}
    for group, pair in PAIRS.items():
        length = slow_ns if group == "a" else CALL
        for rank in pair:
            times = {"step": 1, "start_ns": 0, "end_ns": COMPUTE + length}
            call = {"collective": 0, "sequence": 0, "group": group, "operation": "all_reduce", "name": "sum", "step": 1}
            link = {"step": 1, "group": group, "operation": "all_reduce", "source": rank, "transport": "RDMA"}
            tables = {
                "ranks": RANKS.conform(pl.DataFrame({"host": [f"node-{rank // 2}"], "device_kind": ["cuda"]})),
                "groups": GROUPS.conform(
                    pl.DataFrame({"group": [group], "name": [f"pair {group}"], "members": [pair]})
                ),
                "steps": STEPS.conform(
                    pl.DataFrame(
                        [{**times, "window_start_ns": 0, "window_end_ns": COMPUTE + length, "window": "device"}]
                    )
                ),
                "kernels": KERNELS.conform(
                    pl.DataFrame(
                        [
                            {
                                "kernel": 0,
                                "start_ns": 0,
                                "duration_ns": COMPUTE,
                                "kind": "compute",
                                "name": "gemm",
                                "step": 1,
                            }
                        ]
                    )
                ),
                "collectives": COLLECTIVES.conform(
                    pl.DataFrame(
                        [{**call, "start_ns": COMPUTE, "duration_ns": length, "size_bytes": 1000, "on_device": True}]
                    )
                ),
            }
            if links:
                other = sum(pair) - rank
                tables["links"] = LINKS.conform(
                    pl.DataFrame([{**link, "destination": other, "size_bytes": 1000, "duration_ns": length}])
                )
            frames[rank] = tables
    return Run.from_frames(frames)


def saved(run: Run, **changes: object) -> list[int]:
    return run.analyse("what_if", **changes)["saving_ns"].to_list()


def test_without_changes_the_replay_is_the_recording() -> None:
    found = job(compute={1: 1.3}).analyse("what_if")

    assert found["replayed_ns"].to_list() == found["recorded_ns"].to_list() == found["changed_ns"].to_list()
    assert found["less_ns"].to_list() == [0] * 5


@pytest.mark.parametrize("without_", ["rank=1", "rank=1,kind=computing", "rank=0-1", "op=gemm,rank=1", "rank=0;rank=1"])
def test_a_slow_rank_as_fast_as_its_peers_saves_what_it_takes_longer(without_: str) -> None:
    assert saved(job(compute={1: 1.3}, jitter=0), without=without_) == [6 * MS] * 5


def test_what_is_not_slow_saves_nothing() -> None:
    run = job(compute={1: 1.3}, jitter=0)

    assert saved(run, without="rank=2") == saved(run, without="rank=1,kind=dispatch") == [0] * 5
    assert saved(run, without="rank=1,step=2") == [0, 6 * MS, 0, 0, 0]
    assert saved(run, ideal=True) == [6 * MS] * 5


def test_work_is_scaled_by_what_it_is() -> None:
    run = job(jitter=0)

    assert saved(run, scale="op=GEMM,0.5") == saved(run, scale="kind=computing,50%") == [10 * MS] * 5
    assert saved(run, scale="rank=3,kind=computing,2x") == [-20 * MS] * 5
    assert saved(run, scale="op=all_reduce,0.5") == saved(run, bandwidth="2x") == [4 * TRANSFER // 2] * 5
    assert saved(run, bandwidth=2) == saved(run, bandwidth="size=1kB,2x") == [4 * TRANSFER // 2] * 5


def test_all_changes_are_made_together() -> None:
    run = job(compute={1: 1.3}, jitter=0)

    assert saved(run, without="rank=1", bandwidth="2x") == [6 * MS + 2 * TRANSFER] * 5


@pytest.mark.parametrize(
    "named", ["link=0-1", "link=1,0", "kind=communication,host=node-0", "group=pair a", "group=0, 1", "group=0-1"]
)
@pytest.mark.parametrize("links", [False, True])
def test_a_slow_link_takes_as_long_as_calls_of_that_size_elsewhere(named: str, links: bool) -> None:
    assert saved(paired(links=links), without=named) == [SLOW - CALL]


def test_a_network_interface_is_what_leaves_a_host() -> None:
    with pytest.raises(StepscopeError, match="no calls with other hosts"):
        saved(paired(), without="nic=0")
    assert saved(job(jitter=0), scale="nic=0,0.5") == [4 * TRANSFER // 2] * 5


def test_the_link_of_a_healthy_pair_saves_nothing() -> None:
    assert saved(paired(), without="link=2-3") == [0]
    assert saved(paired(), scale="link=0-1,0.5") == [SLOW // 2]
    assert saved(paired(links=True), without="transport=rdma") == [SLOW - CALL]


def test_the_usual_speed_of_a_call_of_all_ranks_is_unknown() -> None:
    with pytest.raises(StepscopeError, match="usual speed is unknown"):
        saved(job(), without="link=0-1")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"without": "rank=9"}, "no rank 9. There are ranks 0-7"),
        ({"without": "rank=x"}, "'x' is not a number"),
        ({"without": "step=9"}, "no step 9. There are steps 1-5"),
        ({"without": "host=hots"}, "no host `hots`. There is host"),
        ({"without": "kind=dispach"}, "no kind `dispach`. Did you mean dispatch? There are communication, "),
        ({"without": "group=tp"}, "no group `tp`. There is dp"),
        ({"without": "stage=1"}, "no stage was recorded"),
        ({"without": "transport=RDMA"}, "no transport was recorded"),
        ({"without": "link=0-9"}, "give two ranks or hosts, e.g. link=0-1. There are ranks 0-7"),
        ({"without": "size=2MB"}, "There are calls of 1.00 kB"),
        ({"without": "size=big"}, "size `big` is not understood"),
        ({"scale": "op=attention,2"}, "no kernel, call or operator has this in its name. There are gemm, all_reduce"),
        ({"scale": "op=gemm,kind=communication,2"}, "nothing in this job is all of that at once"),
        ({"scale": "op=gemm"}, "give which work and a factor"),
        ({"scale": "op=gemm,-0.1"}, "0 or more"),
        ({"scale": "op=gemm,nan"}, "0 or more"),
        ({"bandwidth": "fast"}, "give a factor, e.g. 2x"),
        ({"bandwidth": "kind=computing,2"}, "only communication has a bandwidth"),
        ({"without": "rank"}, "`rank` is not understood. Give one or several of rank=..., host=..."),
        ({"without": ";"}, "Give one or several of"),
        ({"without": "rank=1,rank=2"}, "Separate changes by `;`"),
    ],
)
def test_what_is_not_understood_is_an_error_that_lists_what_there_is(changes, message: str) -> None:
    with pytest.raises(StepscopeError, match=re.escape(message)):
        job(steps=5).analyse("what_if", **changes)


def test_one_rank_has_no_peers_but_its_work_can_be_scaled() -> None:
    run = job(ranks=1, jitter=0)

    with pytest.raises(Unavailable, match="no other rank to compare with"):
        saved(run, ideal=True)
    assert saved(run, scale="op=gemm,0.5") == [10 * MS] * 5


def test_what_can_be_named_is_listed() -> None:
    found = {word: (named, count) for word, named, count in paired().analyse("work_names").iter_rows()}

    assert found["rank"] == ("0-5", 6)
    assert found["host"] == ("node-0, node-1, node-2", 3)
    assert found["link"] == ("0-1, 2-3, 4-5", 3)
    assert found["op"] == ("gemm, sum", 2)
    assert "stage" not in found


def test_words_of_changes() -> None:
    assert without("rank=0,3-5,kind=dispatch; host=a")[0].where == {"rank": "0,3-5", "kind": "dispatch"}
    assert scaled("op=a,b,0.7")[0].where == {"op": "a,b"}
    assert faster("transport=RDMA,2x")[0].factor == 0.5
    assert sizes_of("1MiB-", "") == (1024**2, float("inf"))
