"""Which dimension each rank is in, what shows it, and what contradicts it."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from stepscope import Run
from stepscope.analysis.methods.call_patterns import Limits
from stepscope.analysis.methods.memberships import memberships, stages_of
from stepscope.errors import StepscopeError, Unavailable
from stepscope.tables import COLLECTIVES, GROUPS, RANKS, SLICES, STEPS

MEGATRON = {"tensor_model_parallel_size": 2, "pipeline_model_parallel_size": 2, "data_parallel_size": 2}
MB = 1 << 20


def job(world: int, sizes: Any = None, groups: dict[str, list[list[int]]] | None = None, **tables: Any) -> Run:
    """A job in memory: recorded sizes of all ranks (or by rank), groups by name, calls by rank."""
    frames = {}
    for rank in range(world):
        own = sizes.get(rank) if isinstance(sizes, dict) and rank in sizes else sizes
        text = None if own is None else json.dumps(own)
        frames[rank] = {"ranks": RANKS.frame(rank=[rank], world_size=[world], parallelism=[text])}
        mine = [(name, one) for name, lists in (groups or {}).items() for one in lists if rank in one]
        if mine:
            keys, members = [f"{name} {one}" for name, one in mine], [one for _, one in mine]
            frames[rank]["groups"] = GROUPS.frame(group=keys, name=[name for name, _ in mine], members=members)
        for name, by_rank in tables.items():
            if rank in by_rank:
                frames[rank][name] = by_rank[rank]
    return Run.from_frames(frames)


def places(run: Run, name: str, **options: Any) -> list[int | None]:
    return run.analyse("parallel_layout", **options)[name].to_list()


def sizes(run: Run, **options: Any) -> dict[str, tuple[int | None, str | None]]:
    """Size of each dimension, and what shows it."""
    rows = run.analyse("parallel_dimensions", **options).select("dimension", "size", "by").rows()
    return {name: (size, by) for name, size, by in rows}


def conflicts(run: Run, **options: Any) -> list[tuple[Any, ...]]:
    return run.analyse("layout_conflicts", **options).rows()


def test_recorded_sizes_place_ranks_in_the_usual_order() -> None:
    run = job(8, MEGATRON)

    assert places(run, "tp") == [0, 1, 0, 1, 0, 1, 0, 1]
    assert places(run, "dp") == [0, 0, 1, 1, 0, 0, 1, 1]
    assert places(run, "pp") == [0, 0, 0, 0, 1, 1, 1, 1]
    assert places(run, "dp_ranks")[:3] == ["0, 2", "1, 3", "0, 2"]
    assert sizes(run) == {
        "tp": (2, "recorded sizes"),
        "cp": (1, "recorded sizes"),
        "ep": (None, None),
        "dp": (2, "recorded sizes"),
        "pp": (2, "recorded sizes"),
    }
    assert conflicts(run) == []


def test_given_sizes_place_ranks_in_their_order_and_data_parallelism_takes_the_rest() -> None:
    run = job(8)

    assert places(run, "pp", layout="tp=2,pp=2") == [0, 0, 0, 0, 1, 1, 1, 1]
    assert places(run, "pp", layout="tp=2,pp=2,order=tp-pp-dp") == [0, 0, 1, 1, 0, 0, 1, 1]
    assert places(run, "dp", layout="tp=2,pp=2,order=tp-pp-dp") == [0, 0, 0, 0, 1, 1, 1, 1]
    assert sizes(run, layout="tp=2,pp=2")["dp"] == (2, "given")
    assert sizes(run)["tp"] == (None, None)


def test_experts_divide_ranks_of_data_parallelism() -> None:
    assert places(job(8), "ep", layout="tp=2,dp=4,ep=2") == [0, 0, 1, 1, 0, 0, 1, 1]
    assert places(job(8), "ep", layout="tp=2,dp=4,ep=4,etp=1") == [0, 1, 2, 3, 0, 1, 2, 3]
    assert places(job(8), "dp", layout="tp=2,dp=4,ep=2") == [0, 0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize(
    "text",
    ["", "tp", "tp=0", "tp=x", "xp=2", "tp=2,tp=2", "tp=3", "tp=2,dp=2", "ep=3", "tp=2,order=tp-tp", "tp=2,order=a-b"],
)
def test_a_given_layout_that_cannot_be_is_an_error(text: str) -> None:
    with pytest.raises(StepscopeError, match="layout"):
        job(8).analyse("parallel_layout", layout=text)


def test_names_of_groups_go_before_sizes_and_show_the_order_of_ranks() -> None:
    """Data-parallel groups of neighbours in a job with pipelines inside them."""
    run = job(8, MEGATRON, {"dp": [[0, 4], [1, 5], [2, 6], [3, 7]]})

    assert sizes(run)["dp"] == (2, "group names")
    assert places(run, "pp") == [0, 0, 1, 1, 0, 0, 1, 1]
    assert conflicts(run) == []


@pytest.mark.parametrize(
    ("recorded", "groups", "expected"),
    [
        ({**MEGATRON, "data_parallel_size": 4}, None, ("world", None, "recorded sizes", 16, 8, None)),
        (
            {5: {"tp": 4}, **dict.fromkeys((0, 1, 2, 3, 4, 6, 7), MEGATRON)},
            None,
            ("ranks", None, "recorded sizes", None, None, "5"),
        ),
        (MEGATRON, {"tp": [[0, 1, 2, 3], [4, 5, 6, 7]]}, ("size", "tp", "recorded sizes", 2, 4, "0-3")),
        (None, {"tp": [[0, 1], [1, 2]]}, ("uneven", "tp", "group names", None, None, "1")),
        (None, {"tp": [[0, 1, 2], [3, 4]]}, ("uneven", "tp", "group names", 3, 2, "3, 4")),
    ],
)
def test_contradictions_are_reported(recorded: Any, groups: Any, expected: tuple[Any, ...]) -> None:
    assert expected in conflicts(job(8, recorded, groups))


def test_sizes_that_do_not_fit_are_not_used() -> None:
    run = job(8, {**MEGATRON, "data_parallel_size": 4})

    assert sizes(run)["tp"] == (None, None)


def test_a_given_layout_against_groups_and_sizes() -> None:
    groups = {"tp": [[0, 1], [2, 3], [4, 5], [6, 7]], "": [[0, 3]]}
    run = job(8, {"tp": 2, "pp": 2}, groups)

    found = conflicts(run, layout="tp=4,pp=1")

    assert found == [
        ("size", "tp", "given", 4, 2, "0, 1"),
        ("unused", None, "given", None, None, None),
    ]
    assert conflicts(run, layout="tp=2,pp=2") == [("crossed", None, "given", None, None, "0, 3")]
    assert sizes(run, layout="tp=4,pp=1") == sizes(run)
    assert conflicts(job(8, {"tp": 2, "pp": 2}), layout="tp=4,pp=1") == [
        ("replaced", "tp", "recorded sizes", 2, 4, None),
        ("replaced", "pp", "recorded sizes", 2, 1, None),
    ]


def test_no_layout_is_put_together_from_what_is_given_and_what_is_recorded() -> None:
    run = job(8, None, {"dp": [list(range(8))]})

    assert sizes(run, layout="tp=2,dp=4") == sizes(run)
    assert [size for size, _ in sizes(run).values()] == [1, 1, None, 8, 1]
    assert [kind for kind, *_ in conflicts(run, layout="tp=2,dp=4")] == ["size", "unused"]


def test_mindspore_states_stages_only_unless_it_is_data_parallel() -> None:
    staged = job(4, {"parallel_mode": "semi_auto_parallel", "stage_num": 2})
    data = job(4, {"parallel_mode": "data_parallel", "stage_num": 1})

    assert {name: size for name, (size, _) in sizes(staged).items()} == {
        **dict.fromkeys(("tp", "cp", "ep", "dp")),
        "pp": 2,
    }
    assert places(staged, "pp") == [0, 0, 1, 1]
    assert [size for size, _ in sizes(data).values()] == [1, 1, 1, 4, 1]


def test_the_stage_of_a_rank_is_no_number_of_stages() -> None:
    run = job(4, {"pipeline_stage": 2, "stage_num": 4})

    assert sizes(run)["pp"] == (4, "recorded sizes")


def test_a_given_layout_replaces_the_recorded_stages() -> None:
    ranks = job(8, MEGATRON)

    given = [
        stages_of(ranks.table("ranks").collect(), None, ranks.analyse("parallel_layout", layout=text))
        for text in ("tp=8", "pp=4,tp=2")
    ]

    assert given == [{}, {rank: rank // 2 for rank in range(8)}]


def test_units_and_stages_follow_the_same_layout() -> None:
    run = job(8)
    ranks, layout = run.table("ranks").collect(), run.analyse("parallel_layout", layout="tp=2,pp=2")

    assert stages_of(ranks, None, layout) == {0: 0, 1: 0, 2: 0, 3: 0, 4: 1, 5: 1, 6: 1, 7: 1}
    recorded = memberships(job(8, MEGATRON).table("ranks").collect())
    assert memberships(ranks, None, layout).equals(recorded)
    assert memberships(ranks).is_empty()


def test_other_questions_know_the_stages_of_a_given_layout() -> None:
    given = job(8).with_options({"parallel_layout": {"layout": "tp=2,pp=2"}})

    assert given.analyse("pipeline_places")["stage"].to_list() == [0, 0, 0, 0, 1, 1, 1, 1]
    with pytest.raises(Unavailable):
        job(8).analyse("pipeline_places")


def steps(world: int, count: int = 2) -> dict[int, pl.DataFrame]:
    """Steps of 1000 ns on each rank."""
    at = list(range(count))
    starts, ends = [1000 * step for step in at], [1000 * step + 1000 for step in at]
    window = {"window_start_ns": starts, "window_end_ns": ends, "window": ["device"] * count}
    frame = STEPS.frame(step=at, start_ns=starts, end_ns=ends, **window)
    return dict.fromkeys(range(world), frame)


def calls(
    world: int, lists: dict[str, tuple[list[list[int]], str, list[int]]], size: int = MB, count: int = 2
) -> dict[int, pl.DataFrame]:
    """Calls of groups by name: members, operation, times in the step."""
    found = {}
    for rank in range(world):
        rows = sorted(
            (1000 * step + at, f"{name} {one}", operation)
            for step in range(count)
            for name, (groups, operation, times) in lists.items()
            for one in groups
            if rank in one
            for at in times
        )
        found[rank] = COLLECTIVES.frame(
            collective=list(range(len(rows))),
            sequence=list(range(len(rows))),
            group=[group for _, group, _ in rows],
            operation=[operation for *_, operation in rows],
            name=[""] * len(rows),
            size_bytes=[size] * len(rows),
            start_ns=[at for at, *_ in rows],
            duration_ns=[1] * len(rows),
            on_device=[True] * len(rows),
            step=[at // 1000 for at, *_ in rows],
        )
    return found


PAIRS, ACROSS = [[0, 1], [2, 3]], [[0, 2], [1, 3]]
OFTEN, LATE = list(range(50, 950, 50)), [600, 800]


def test_the_pattern_of_calls_shows_tensor_and_data_parallelism() -> None:
    lists = {"1": (PAIRS, "all_reduce", OFTEN), "2": (ACROSS, "all_reduce", LATE)}

    found = sizes(job(4, None, {"1": PAIRS, "2": ACROSS}, collectives=calls(4, lists), steps=steps(4)))

    assert found == {
        **dict.fromkeys(("tp", "dp"), (2, "communication")),
        **dict.fromkeys(("cp", "pp"), (1, "communication")),
        "ep": (None, None),
    }


@pytest.mark.parametrize(
    "lists",
    [
        {"1": (PAIRS, "all_reduce", OFTEN)},  # no other groups: tensor parallelism, or data parallelism with weights
        {
            "1": (PAIRS, "all_reduce", OFTEN),
            "2": (ACROSS, "all_gather", OFTEN),
        },  # weights are gathered
        {"1": (ACROSS, "all_reduce", OFTEN), "2": (PAIRS, "all_reduce", LATE)},  # no neighbours
        {"1": (PAIRS, "all_reduce", [100, 600]), "2": (ACROSS, "all_reduce", LATE)},  # hardly more calls
        {"1": (PAIRS, "all_to_all", OFTEN)},  # even parts: of experts, or of sequences
        {"1": ([[0, 1]], "all_reduce", OFTEN), "2": (ACROSS, "all_reduce", LATE)},  # not all ranks
    ],
)
def test_what_is_ambiguous_is_unknown(lists: dict[str, tuple[list[list[int]], str, list[int]]]) -> None:
    groups = {name: members for name, (members, *_) in lists.items()}

    run = job(4, None, groups, collectives=calls(4, lists), steps=steps(4))

    assert set(sizes(run).values()) == {(None, None)}


def test_small_calls_show_nothing() -> None:
    lists = {"1": (PAIRS, "all_reduce", OFTEN), "2": (ACROSS, "all_reduce", LATE)}

    run = job(4, None, {"1": PAIRS, "2": ACROSS}, collectives=calls(4, lists, size=8), steps=steps(4))

    assert set(sizes(run).values()) == {(None, None)}
    assert places(run, "tp", limits=Limits(small_bytes=8)) == [0, 1, 0, 1]


def test_a_single_group_that_sums_after_the_forward_pass_is_data_parallel() -> None:
    groups = [list(range(4))]

    late, early = (
        sizes(job(4, None, {"": groups}, collectives=calls(4, {"": (groups, "all_reduce", times)}), steps=steps(4)))
        for times in (LATE, OFTEN)
    )

    assert late["dp"] == (4, "communication")
    assert late["tp"] == (1, "communication")
    assert early["dp"] == (None, None)


def transfers(chains: list[list[int]], *, ring: bool = False) -> dict[int, pl.DataFrame]:
    """Sends and receives of pipelines, forward and backward; or of rings, in which all send first."""
    found = {}
    for chain in chains:
        for place, rank in enumerate(chain):
            before, after = chain[place - 1], chain[(place + 1) % len(chain)]
            if ring:
                rows = [("send", after), ("recv", before)]
            else:
                forward = [("recv", before)] * (place > 0) + [("send", after)] * (place < len(chain) - 1)
                rows = forward + [("recv" if way == "send" else "send", peer) for way, peer in reversed(forward)]
            found[rank] = COLLECTIVES.frame(
                collective=list(range(len(rows))),
                sequence=list(range(len(rows))),
                group=["p2p"] * len(rows),
                operation=[way for way, _ in rows],
                name=[""] * len(rows),
                peer=[peer for _, peer in rows],
                start_ns=list(range(100 * place, 100 * place + len(rows))),
                duration_ns=[1] * len(rows),
                on_device=[True] * len(rows),
                step=[0] * len(rows),
            )
    return found


def test_chains_that_pass_on_what_they_got_are_pipelines_and_rings_are_not() -> None:
    chains = [[0, 2, 4], [1, 3, 5]]

    pipelines = job(6, collectives=transfers(chains), steps=steps(6))
    rings = job(6, collectives=transfers(chains, ring=True), steps=steps(6))

    assert places(pipelines, "pp") == [0, 0, 1, 1, 2, 2]
    assert sizes(pipelines)["pp"] == (3, "communication")
    assert sizes(rings)["pp"] == (None, None)


def test_sides_that_are_named_by_their_place_in_the_group_show_pipelines() -> None:
    """What else is ambiguous leaves the pipeline known."""
    chains = [[0, 2, 4], [1, 3, 5]]
    frames = transfers(chains)
    for chain in chains:
        for rank in chain:
            place = pl.col("peer").replace_strict({one: at for at, one in enumerate(chain)}, return_dtype=pl.Int32)
            frames[rank] = frames[rank].with_columns(place, group=pl.lit(f"2 {chain}"))
    run = job(6, None, {"1": [[0, 1], [2, 3], [4, 5]], "2": chains}, collectives=frames, steps=steps(6))

    assert {name: size for name, (size, _) in sizes(run).items()} == {
        **dict.fromkeys(("tp", "cp", "ep", "dp")),
        "pp": 3,
    }
    assert places(run, "pp") == [0, 0, 1, 1, 2, 2]


def test_marks_of_the_framework_show_data_parallelism_of_all_ranks() -> None:
    """On a job with a straggler, the other ranks enter their sums early in the step."""
    world = [list(range(4))]
    marked = SLICES.frame(
        slice=[0], start_ns=[0], duration_ns=[10], category=["annotation"], name=["DistributedDataParallel.forward"]
    )

    def known(groups: dict[str, list[list[int]]], slices: pl.DataFrame) -> tuple[int | None, str | None]:
        lists = {name: (of_name, "all_reduce", OFTEN) for name, of_name in groups.items()}
        tables = {"collectives": calls(4, lists), "steps": steps(4), "slices": dict.fromkeys(range(4), slices)}
        return sizes(job(4, None, groups, **tables))["dp"]

    assert known({"": world}, marked) == (4, "marks")
    assert known({"": world}, marked.clear()) == (None, None)
    assert known({"": world, "1": PAIRS}, marked) == (None, None)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("pp=2", []),
        ("pp=8", [("transfers", "pp", "given", 8, 2, "0, 4")]),
        ("tp=2,pp=4", [("transfers", "pp", "given", 4, 2, "0, 4")]),
        ("dp=8", [("transfers", "pp", "given", 1, 2, "0, 4")]),
        ("pp=2,order=pp-dp", [("transfers", "pp", "given", 2, 2, "0, 4")]),
    ],
)
def test_transfers_contradict_given_pipelines(given: str, expected: list[tuple[Any, ...]]) -> None:
    run = job(8, collectives=transfers([[rank, rank + 4] for rank in range(4)]))

    assert conflicts(run, layout=given) == expected


def test_longer_given_pipelines_are_contradicted_by_transfers_that_lack() -> None:
    run = job(4, collectives=transfers([[0, 1], [2, 3]]))

    assert conflicts(run, layout="pp=4") == [("transfers", "pp", "given", 4, 2, None)]


def test_transfers_around_a_ring_contradict_no_given_layout() -> None:
    run = job(4, collectives=transfers([[0, 1], [2, 3]], ring=True))

    assert conflicts(run, layout="cp=2,dp=2") == conflicts(run, layout="dp=4") == []
