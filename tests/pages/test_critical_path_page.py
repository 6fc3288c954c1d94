"""The command that shows what decides how long a step takes: shares, the chain in words, all pieces, who can wait."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pytest

from stepscope.cli.output import Output
from stepscope.pages.answering import Request, answer, document
from stepscope.pages.critical_path import PAGE
from stepscope.pages.replayed import replay_notes
from stepscope.pages.showing import ShownSection, shown_sections
from stepscope.run import Run
from stepscope.tables import GROUPS
from tests.analysis.jobs import MS, job
from tests.cli.calling import EXAMPLE, printed


def shown(run: Run, **options: object) -> Sequence[ShownSection]:
    return list(shown_sections(answer(run, PAGE, Request(options=options))))


def slow() -> Run:
    """Rank 1 computes 26 of 35.002 ms."""
    return job(ranks=4, steps=3, compute={1: 1.3}, jitter=0.0)


def test_shares_of_the_path_come_first_and_sum_to_all_of_it() -> None:
    totals = shown(slow())[0].tables[0]

    assert totals.heading == "What decides the length of a step, mean of 3 steps (35.00 ms)"
    first = totals.rows.row(0, named=True)
    assert (first["rank"], first["kind"], first["name"], first["duration_ns"]) == (1, "computing", "gemm", 26 * MS)
    assert first["share_ratio"] == pytest.approx(26 / 35.002, abs=1e-3)
    assert totals.rows["share_ratio"].sum() == pytest.approx(1)


def test_the_chain_is_put_into_words() -> None:
    assert shown(slow())[0].sentences == [
        "The chain of step 2, the median (35.00 ms): "
        "rank 1 for 35.00 ms (26.00 ms computing, 8.00 ms communication and 1.00 ms other work)."
    ]


def test_the_parts_of_ranks_sum_to_the_step() -> None:
    ranks = shown(job(ranks=4, steps=3, gap_ns={1: MS}, jitter=0.01))[1]

    rows = ranks.tables[0].rows
    assert ranks.tables[0].heading == "Ranks on the critical path, mean of 3 steps"
    assert rows["path_ratio"].sum() == pytest.approx(1)
    assert ranks.sentences[0].startswith("Slack is by how much a rank could be later with its own work")


def test_each_step_has_its_own_path() -> None:
    run = job(ranks=4, steps=4, once_ns={("compute", 2, 3): 9 * MS, ("compute", 3, 0): 9 * MS}, jitter=0.0)
    path = run.analyse("critical_path").filter(pl.col("kind") == "computing")

    longest = path.sort("duration_ns").group_by("step").agg(pl.col("rank").last()).sort("step")
    assert longest.rows()[1:3] == [(2, 3), (3, 0)]
    lengths = run.analyse("critical_path").group_by("step").agg(length=(pl.col("duration_ns") + pl.col("gap_ns")).sum())
    assert lengths.sort("step")["length"].to_list() == run.analyse("replay")["replayed_ns"].to_list()


def test_the_pieces_are_listed_on_demand() -> None:
    table = shown(slow(), list=True)[0].tables[0]

    assert table.heading.startswith("The critical path, piece by piece")
    assert table.rows["start_ns"][:4].to_list() == [0, MS, MS + 2000, MS + 2000 + 6_500_000]
    found = document(answer(slow(), PAGE, Request()))
    assert list(found["tables"]) == ["critical_path", "slack"]
    assert [note.partition(" ")[0] for note in found["notes"]] == ["The", "Without"]


def test_of_a_chosen_rank_shares_are_of_the_whole_path() -> None:
    run = job(ranks=4, steps=4, once_ns={("compute", 2, 3): 9 * MS}, jitter=0.0).select(ranks=[3])
    section = next(shown_sections(answer(run, PAGE, Request())))

    assert 0 < section.tables[0].rows["share_ratio"].sum() < 0.5
    assert "rank 0 for" in section.sentences[0]


def test_of_a_chosen_step_shares_and_chain_are_of_that_step() -> None:
    run = job(ranks=4, steps=4, once_ns={("compute", 2, 3): 9 * MS}, jitter=0.0)
    section = next(shown_sections(answer(run, PAGE, Request(steps="2"))))

    assert section.tables[0].rows["share_ratio"].sum() == pytest.approx(1)
    assert section.sentences[0].startswith("The chain (38.00 ms): rank 3 for ")


@pytest.mark.parametrize(
    ("errors", "words"),
    [
        ([0.0, 0.012], "Without changes, the replay is within 1.20% of the recording."),
        ([0.2], "Careful: without changes, the replay takes 20.0% longer than the recording. Clocks may disagree"),
        ([0.0, 0.0, -0.06], "takes 6.0% less than the recording in the worst {step}. "),
        ([0.1, 0.0], "takes 5.0% longer than the recording on average. "),
    ],
)
def test_a_replay_that_is_far_off_says_so(errors: list[float], words: str) -> None:
    assert words in next(replay_notes(slow(), errors))


def test_ranks_of_one_host_without_calls_do_not_wait_for_another() -> None:
    frames = {
        rank.rank: {name: rank.table(name).drop("rank").collect() for name in rank.rows if name != "collectives"}
        for rank in slow().ranks
    }
    assert list(replay_notes(Run.from_frames(frames), [0.0]))[1].startswith("No calls between ranks could be matched")


def test_members_that_were_not_recorded_are_stated() -> None:
    frames = {rank.rank: {name: rank.table(name).drop("rank").collect() for name in rank.rows} for rank in slow().ranks}
    for tables in frames.values():
        tables["groups"] = GROUPS.conform(pl.DataFrame({"group": ["dp"], "members": [list(range(8))]}))

    assert list(replay_notes(Run.from_frames(frames), [0.0]))[1].startswith("100% of the calls have members that were")


def test_it_fits_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Output, "room", 80)
    lines = printed(capsys, "critical-path", EXAMPLE).splitlines()

    assert max(map(len, lines)) <= 80
    assert sum(line.startswith("The chain of step") for line in lines) == 1


def test_ranks_that_are_not_on_the_path_are_told_without_it() -> None:
    chosen = answer(slow(), PAGE, Request(ranks="3"))

    assert chosen.tables["critical_path"].is_empty()
    assert not document(chosen).get("notes") or all("chain" not in note for note in document(chosen)["notes"])
    assert [table.rows["path_ns"].to_list() for table in list(shown_sections(chosen))[1].tables] == [[0]]
