"""The verdict leads with what costs most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from stepscope.advice import Finding
from stepscope.advice.limit_sets import VerdictLimits
from stepscope.analysis.job.time_by_rank import Limits as Lengths
from stepscope.analysis.job.time_by_rank import time_by_rank
from stepscope.report.answers import Answers
from stepscope.report.sentences import Line, Sentence
from stepscope.report.verdict import LONG_NAMED, NAMED, WITHOUT_STEPS, sentences, verdict

RATES = {"bandwidth": 1e9, "typical_bandwidth": 3e9}


def breakdown(*parts_ms: tuple[int, int, int]) -> pl.DataFrame:
    """One row a step of computing, exposed communication and idle time in ms."""
    ns = [[part * 10**6 for part in parts] for parts in parts_ms]
    return pl.DataFrame(
        {
            "rank": [0] * len(ns),
            "step": range(len(ns)),
            "window_ns": [sum(parts) for parts in ns],
            "computing_ns": [parts[0] for parts in ns],
            "communication_not_overlapped_ns": [parts[1] for parts in ns],
            "memory_not_overlapped_ns": [0] * len(ns),
            "free_ns": [parts[2] for parts in ns],
        }
    )


def finding(rule: str, message: str, saving_ms: float, **parameters: Any) -> Finding:
    return Finding(rule, message, parameters, round(saving_ms * 1e6), saving_ms / 100)


def slow_rank(rank: int, saving_ms: float) -> Finding:
    unknown = dict.fromkeys(("worst_rank", "unit", "when", "slow_since", "slow_until"))
    return finding("slow-rank", "computing", saving_ms, ranks=[rank], **unknown)


def idle(saving_ms: float) -> Finding:
    """A finding that accuses nobody."""
    lost = {"idle_ns": saving_ms * 1e6, "step_ns": 10**8, "ratio": saving_ms / 100}
    unknown = dict.fromkeys(("lost_ns", "recorded_ns", "when", "mostly", "left_out", "functions_each"))
    return finding("idle-time", "python", saving_ms, job_ranks=3, functions=[], **lost, **unknown)


def queue(saving_ms: float) -> Finding:
    found = {"ranks": [0], "worst_rank": None, "empty": 1, "batches": 2, "empty_ratio": 0.5, "operators": []}
    return finding("host-queue", "empty", saving_ms, **found)


def busy() -> Finding:
    found = {"ranks": [0], "worst_rank": None, "busy_ratio": 0.9, "process_processors": None, "processors": None}
    return finding("cpu-busy", "busy", 0, **found)


def told(*parts: tuple[int, int, int], findings: Sequence[Finding] = (), **tables: pl.DataFrame) -> str:
    """The verdict on steps that split so."""
    return verdict(Answers({"breakdown": breakdown(*parts), **tables}, list(findings)))


STEADY = {"when": None, "slow_since": None, "slow_until": None}
COMPUTING, IDLE = (100, 0, 0), (10, 0, 90)
LONG, SHORT = (80, 20, 9000), (80, 20, 0)


def test_the_greatest_finding_leads_and_culprits_follow() -> None:
    assert told((60, 0, 40), findings=[slow_rank(7, 7), idle(47)]) == (
        "The median rank runs Python code outside any operator: 47.0 ms of a 100 ms step (47%). "
        "Rank 7 computes slowly (7.00 ms per step, 7%). "
        "The average step takes 100.00 ms: 60% computing, 40% idle."
    )


def test_culprits_come_with_their_cost_the_dearest_first() -> None:
    link = finding(
        "slow-link", "slow", 3, rank_a=0, rank_b=1, bandwidth_ratio=0.35, transport="", cost_ns=0, **RATES, **STEADY
    )
    group = finding(
        "slow-group", "slow", 2, group="dp", ranks="0, 1", source=None, slowdown_factor=2.0, cost_ns=0, **STEADY
    )

    text = told(COMPUTING, findings=[group, slow_rank(6, 2.5), link, slow_rank(2, 5)])

    assert text.startswith(
        "Rank 2 computes slowly (5.00 ms per step, 5%); "
        "link 0-1 has 35% of the typical bandwidth (3.00 ms per step, 3%); "
        "rank 6 computes slowly (2.50 ms per step, 2%); "
        "group dp (ranks 0, 1) takes 2.0x as long to transmit as comparable groups (2.00 ms per step, 2%). "
    )


@pytest.mark.parametrize(("more", "said"), [(1, "; 1 more is slow."), (2, "; 2 more are slow.")])
def test_of_many_culprits_the_rest_is_counted(more: int, said: str) -> None:
    assert said in told(COMPUTING, findings=[slow_rank(n, 5) for n in range(NAMED + more)])


def test_a_single_long_step_is_named_with_its_share_of_the_time() -> None:
    text = told(SHORT, SHORT, LONG)

    assert "Nothing stands out" not in text
    assert "Step 2 takes 9.10 s, 91 times the median step (98% of the time)." in text
    assert text.endswith(
        "The average step takes 3.10 s (median 100.00 ms): 3% computing, 1% exposed communication "
        "(waiting for other ranks included), 97% idle."
    )


def test_a_first_step_that_starts_things_up_is_named_and_left_out_of_the_shares() -> None:
    assert told(LONG, SHORT, SHORT) == (
        "Nothing stands out. Step 0 takes 9.10 s, 91 times the median step, as the first one starts things up "
        "(98% of the time). The average step without step 0 takes 100.00 ms: 80% computing, "
        "20% exposed communication (waiting for other ranks included)."
    )


@pytest.mark.parametrize(("ms", "steps", "starts_up"), [(9000, [0], False), (900, [0], True), (9000, [1], True)])
def test_a_first_step_that_a_finding_fills_does_not_start_things_up(ms: int, steps: list[int], starts_up: bool) -> None:
    filled = replace(idle(5), span_ns=(7, 7 + ms * 10**6), where={"steps": steps})

    assert ("starts things up" in told(LONG, SHORT, SHORT, findings=[filled])) == starts_up


def test_shares_are_those_of_the_table_of_ranks() -> None:
    stalled = breakdown(*[(30, 0, 2), (30, 0, 2), (30, 0, 2), (30, 0, 62)] * 10)

    text = verdict(Answers({"breakdown": stalled}, []))

    (row,) = time_by_rank(stalled).to_dicts()
    assert (
        f"{row['computing_ns'] / row['window_ns']:.0%} computing, {row['free_ns'] / row['window_ns']:.0%} idle" in text
    )
    assert "64% computing, 36% idle" in text


def test_much_idle_time_is_never_nothing() -> None:
    causes = pl.DataFrame({"rank": [0, 0], "step": [0, 0], "cause": ["python", "dependency"], "idle_ns": [10, 20]})

    text = told((40, 0, 60), idle=causes)

    assert text.startswith("No single thing to change stands out, but ranks are idle 60% of the time")
    assert "mostly with the cause `dependency`." in text


def test_shares_are_told_even_where_every_step_differs() -> None:
    text = told((100, 0, 0), (0, 100, 0), (0, 0, 100))

    assert "33% computing, 33% exposed communication (waiting for other ranks included), 33% idle" in text


def test_without_steps_the_findings_are_told_and_why_no_step_is() -> None:
    answers = Answers({}, [busy(), queue(2)], {"breakdown": "there are no steps"})

    assert verdict(answers) == (
        "Rank 0 makes batches too slowly: 1 of 2 batches (50%) found the host queue empty. "
        "Rank 0 runs on a busy host: 90% of its CPU is in use. How a step splits is unknown: there are no steps."
    )


@pytest.mark.parametrize("reason", ["the recording has no steps", "there are no steps"])
def test_without_steps_and_findings_the_reason_is_all(reason: str) -> None:
    assert verdict(Answers({}, [], {"breakdown": reason})) == f"No step could be analysed: {reason}."


@pytest.mark.parametrize(
    ("steps", "why"), [(0, "没有带时间的训练步"), (3, "记录的工作不完整（详见 --json 中的 `unavailable`）")]
)
def test_in_chinese_the_reason_is_chinese_as_well(steps: int, why: str) -> None:
    answers = Answers({}, [], {"breakdown": "the recording has no steps"}, unknown_steps=steps)

    assert verdict(answers, "zh") == f"无法分析任何一步：{why}。"
    assert verdict(replace(answers, findings=[queue(2)]), "zh").endswith(f"一步的时间构成未知：{why}。")


def keys(*findings: Finding, parts: tuple[int, int, int] = (100, 0, 0), **known: Any) -> list[str]:
    """The sentences of a verdict, by their keys; parts of one sentence with a plus between them."""
    tables = {"breakdown": breakdown(parts, parts), **known.pop("tables", {})}
    return [_key(line) for line in sentences(Answers(tables, list(findings), **known))]


def _key(line: Line) -> str:
    return line.key if isinstance(line, Sentence) else "+".join(part.key for part in line)


def causes(**idle_ns: int) -> pl.DataFrame:
    rows = [{"rank": 0, "step": 0, "cause": cause, "idle_ns": length} for cause, length in idle_ns.items()]
    return pl.DataFrame(rows, schema={"rank": pl.Int64, "step": pl.Int64, "cause": pl.String, "idle_ns": pl.Int64})


MUCH_IDLE = {"verdict": VerdictLimits(much_idle_ratio=0.2)}
MANY_UNKNOWN = {"verdict": VerdictLimits(many_unknown_ratio=0.5)}
UNKNOWN_CAUSE, KNOWN_CAUSE = {"idle": causes(not_recorded=9, python=1)}, {"idle": causes(not_recorded=1, python=9)}
COUNTED = Sentence("whole_recording", per="recording")


@pytest.mark.parametrize(
    ("findings", "known", "said"),
    [
        # the greatest finding is not stated twice if it accuses
        ([slow_rank(0, 9), idle(5)], {}, ["accused", "average"]),
        ([slow_rank(0, 5), idle(9)], {}, ["found", "accused", "average"]),
        ([idle(9), idle(5)], {}, ["found", "average"]),
        # of two findings that save the same the first leads
        ([slow_rank(0, 5), idle(5)], {}, ["accused", "average"]),
        ([idle(5), slow_rank(0, 5)], {}, ["found", "accused", "average"]),
        # five culprits are named
        ([slow_rank(n, 5) for n in range(6)], {}, ["+".join([*["accused"] * 5, "more_accused"]), "average"]),
        # nothing is of ranks if they were compared
        ([], {}, ["nothing", "average"]),
        ([], {"tables": {"slow_ranks": pl.DataFrame()}}, ["nothing_of_ranks", "average"]),
        # with a selection, it names the selected ranks
        ([], {"tables": {"slow_ranks": pl.DataFrame()}, "selected": [0, 2]}, ["nothing", "average"]),
        # half of the time idle is much, unless the limit says otherwise
        ([], {"parts": (51, 0, 49)}, ["nothing", "average"]),
        ([], {"parts": (50, 0, 50)}, ["much_idle", "average"]),
        ([], {"parts": (49, 0, 51)}, ["much_idle", "average"]),
        ([], {"parts": (80, 0, 20), "limits": MUCH_IDLE}, ["much_idle", "average"]),
        ([], {"parts": (81, 0, 19), "limits": MUCH_IDLE}, ["nothing", "average"]),
        # that the cause of much idle time was not recorded is stated with findings, too
        ([idle(5)], {"parts": (50, 0, 50), "tables": UNKNOWN_CAUSE}, ["found", "average", "not_recorded"]),
        ([idle(5)], {"parts": (51, 0, 49), "tables": UNKNOWN_CAUSE}, ["found", "average"]),
        ([idle(5)], {"parts": (50, 0, 50), "tables": KNOWN_CAUSE}, ["found", "average"]),
        ([], {"parts": IDLE, "tables": UNKNOWN_CAUSE}, ["much_idle", "average", "not_recorded"]),
        # what is neither grave nor known to cost anything is a remark
        ([busy()], {}, ["nothing", "average"]),
        ([replace(busy(), least="medium")], {}, ["found", "average"]),
        ([busy(), idle(1)], {}, ["found", "average"]),
        # what times are of stands before them
        ([], {"counted": COUNTED}, ["nothing", "whole_recording", "average"]),
        ([idle(5)], {"counted": COUNTED}, ["found", "whole_recording", "average"]),
        # narrow windows are stated instead of nothing
        ([], {"narrow_step_ns": 5e9}, ["narrow"]),
        ([idle(5)], {"narrow_step_ns": 5e9}, ["found", "narrow"]),
        ([], {"parts": IDLE, "narrow_step_ns": 5e9}, ["much_idle", "narrow"]),
        # a last step that just began is not missed
        ([], {"unknown_steps": 0}, ["nothing", "average"]),
        ([], {"unknown_steps": 1}, ["nothing", "average"]),
        ([], {"unknown_steps": 2}, ["nothing", "average", "some_known"]),
        ([], {"unknown_steps": 3}, ["nothing", "average", "some_known"]),
        ([], {"unknown_steps": 2, "limits": MANY_UNKNOWN}, ["nothing", "average", "some_known"]),
        ([], {"timed_steps": breakdown(*[COMPUTING] * 2)}, ["nothing", "average"]),
    ],
)
def test_what_the_sentences_state(findings: list[Finding], known: dict[str, Any], said: list[str]) -> None:
    assert keys(*findings, **known) == said


def test_findings_are_ordered_by_their_saving_whatever_their_order() -> None:
    (line, _) = sentences(Answers({"breakdown": breakdown(COMPUTING)}, [slow_rank(1, 2), slow_rank(2, 5)]))

    assert [part.finding.parameters["ranks"] for part in line] == [[2], [1]]
    assert [part.parameters for part in line] == [
        {"saving_ns": 5_000_000, "saving_ratio": 0.05},
        {"saving_ns": 2_000_000, "saving_ratio": 0.02},
    ]


@pytest.mark.parametrize("more", [-1, 0, 1, 2])
def test_so_many_culprits_are_named_and_the_rest_is_counted(more: int) -> None:
    (line, _) = sentences(Answers({"breakdown": breakdown(COMPUTING)}, [slow_rank(n, 5) for n in range(NAMED + more)]))

    assert [part.key for part in line].count("accused") == NAMED + min(more, 0)
    assert [part.parameters for part in line if part.key == "more_accused"] == [{"count": more}] * (more > 0)


def test_an_empty_breakdown_is_none() -> None:
    empty = {"breakdown": breakdown(COMPUTING).clear()}

    assert verdict(Answers(empty, [])) == "No step could be analysed: there is no timed work."
    assert [_key(line) for line in sentences(Answers(empty, [idle(1)]))] == ["found", "no_split"]


def test_the_main_cause_of_idle_time_is_that_of_most_over_all_steps() -> None:
    rows = pl.concat([causes(python=3, dispatch=4), causes(python=2)])

    (line, *_) = sentences(Answers({"breakdown": breakdown(IDLE), "idle": rows}, []))

    assert line.parameters == {"idle_ratio": 0.9, "cause": "python", "selected": None}


def test_of_causes_with_as_much_idle_time_the_last_by_name_is_the_main_one() -> None:
    alike = causes(**{f"cause_{letter}": 3 for letter in "qwertyuiopasdfghjkl"}, zero=1)

    (line, *_) = sentences(Answers({"breakdown": breakdown(IDLE), "idle": alike}, []))

    assert line.parameters["cause"] == "cause_y"


@pytest.mark.parametrize("idle_table", [{}, {"idle": causes()}])
def test_idle_time_without_known_causes_has_none(idle_table: dict[str, pl.DataFrame]) -> None:
    (line, *_) = sentences(Answers({"breakdown": breakdown(IDLE), **idle_table}, []))

    assert line == Sentence("much_idle", {"idle_ratio": 0.9, "cause": None, "selected": None})
    assert keys(idle(5), parts=IDLE, tables=idle_table) == ["found", "average"]


def of_steps(*parts: tuple[int, int, int], **known: Any) -> list[Line]:
    return list(sentences(Answers({"breakdown": breakdown(*parts)}, [], **known)))


def test_a_long_step_that_is_not_the_first_is_never_nothing() -> None:
    assert [_key(line) for line in of_steps(SHORT, SHORT, LONG)] == ["much_idle", "long_step", "average"]
    first = of_steps(LONG, SHORT, SHORT)
    assert [_key(line) for line in first] == ["nothing", "long_first_step", "average"]
    (part,) = first[1]
    assert part.parameters == {
        "step": 0,
        "window_ns": 9100 * 10**6,
        "share_ratio": pytest.approx(9100 / 9300),
        "factor": pytest.approx(91),
    }


BUSY = (9100, 0, 0)


def test_a_long_step_beside_little_idle_time_says_enough() -> None:
    assert [_key(line) for line in of_steps(COMPUTING, COMPUTING, BUSY)] == ["long_step", "average"]


def test_what_the_first_step_is_the_recording_decides() -> None:
    outer = pl.DataFrame({"rank": [0], "first_step": [-1], "last_step": [9]})

    lines = of_steps(BUSY, COMPUTING, COMPUTING, outer_steps=outer)

    assert [_key(line) for line in lines] == ["long_step", "average"]


def test_two_long_steps_are_named_and_the_rest_is_counted() -> None:
    def long(count: int) -> list[str]:
        return _key(of_steps(*[COMPUTING] * 20, *[(9000 + n, 0, 0) for n in range(count)])[0]).split("+")

    assert long(LONG_NAMED) == ["long_step"] * LONG_NAMED
    assert long(LONG_NAMED + 1) == [*["long_step"] * LONG_NAMED, "more_long_steps"]
    (line, *_) = of_steps(*[COMPUTING] * 20, *[(9000 + n, 0, 0) for n in range(LONG_NAMED + 3)])
    assert line[-1].parameters == {"count": 3}
    assert [part.parameters["step"] for part in line[:-1]] == [24, 23]


def test_a_step_among_empty_ones_has_no_factor() -> None:
    steps = [(0, 0, 0), (0, 0, 0), (9, 0, 0)]
    ((part,), _) = of_steps(*steps)

    assert part.parameters["factor"] is None
    assert told(*steps).startswith("Step 2 takes 9.00 ms (100% of the time).")


def test_when_a_step_is_long_is_a_limit_of_the_table() -> None:
    limits = {"time_by_rank": Lengths(length_factor=999)}

    assert [_key(line) for line in of_steps(BUSY, COMPUTING, COMPUTING, limits=limits)] == ["nothing", "average"]


def test_iterations_are_called_so() -> None:
    rows = breakdown(SHORT, SHORT, (9100, 0, 0)).with_columns(window=pl.lit("repetition"))
    found = Sentence("iterations", {"count": 3, "operators": 7}, "iteration")

    text = verdict(Answers({"breakdown": rows}, [], counted=found))

    assert text.startswith("Iteration 2 takes 9.10 s, 91 times the median iteration (98% of the time). No steps are ")
    assert "No steps are marked: 3 iterations found by repetition of 7 operators. The average iteration takes" in text


def test_steps_of_which_only_some_can_be_split_are_counted() -> None:
    every = breakdown(*[COMPUTING] * 3)
    (_, line) = sentences(Answers({"breakdown": every[:2]}, [], timed_steps=every))

    assert (line.key, line.parameters["steps"], line.parameters["split_steps"]) == ("some_steps", 3, 2)


@pytest.mark.parametrize(("unknown", "said"), [(4, []), (5, ["some_known"]), (6, ["some_known"])])
def test_from_a_fifth_of_the_steps_unknown_it_is_stated(unknown: int, said: list[str]) -> None:
    lines = of_steps(*[COMPUTING] * 20, unknown_steps=unknown)

    assert [_key(line) for line in lines] == ["nothing", "average", *said]
    if said:
        assert lines[-1].parameters == {"known": 20, "steps": 20 + unknown}


def test_how_many_unknown_steps_are_many_can_be_set() -> None:
    assert [_key(line) for line in of_steps(*[COMPUTING] * 20, unknown_steps=19, limits=MANY_UNKNOWN)][2:] == []


def test_of_several_ranks_each_may_have_begun_a_step() -> None:
    rows = breakdown(*[COMPUTING] * 4).with_columns(rank=pl.Series([0, 0, 1, 1]), step=pl.Series([0, 1, 0, 1]))

    assert len(list(sentences(Answers({"breakdown": rows}, [], unknown_steps=2)))) == 2
    assert len(list(sentences(Answers({"breakdown": rows}, [], unknown_steps=3)))) == 3


def test_without_steps_so_many_findings_are_stated_the_greatest_first() -> None:
    found = [queue(1), idle(3), queue(2)]

    lines = list(sentences(Answers({}, found, {"breakdown": "no steps"})))

    assert [_key(line) for line in lines] == [*["found"] * WITHOUT_STEPS, "no_split"]
    assert [line.finding.saving_ns for line in lines[:-1]] == [3_000_000, 2_000_000]
    assert lines[-1].parameters["reason"].en == "no steps"


def test_without_steps_and_savings_the_more_severe_comes_first() -> None:
    lines = list(sentences(Answers({}, [busy(), replace(queue(0), least="medium")])))

    assert [line.finding.rule for line in lines[:-1]] == ["host-queue", "cpu-busy"]
    assert lines[-1].parameters["reason"].en == "there is no timed work"


def test_what_a_saving_is_of_is_stated_with_it() -> None:
    rows = breakdown(COMPUTING).with_columns(window=pl.lit("recording"))
    found = [replace(idle(47), per="recording"), replace(slow_rank(2, 7), per="recording")]

    text = verdict(Answers({"breakdown": rows}, found))

    assert text.startswith(
        "The median rank runs Python code outside any operator: 47.0 ms of the 100 ms recording (47%)."
    )
    assert "Rank 2 computes slowly (7.00 ms in the recording, 7%)." in text
    assert "step" not in text
    alone = verdict(Answers({}, [replace(idle(47), per="iteration")]))
    assert "a 100 ms iteration" in alone


def test_the_verdict_in_chinese() -> None:
    rows = breakdown((60, 0, 40), (60, 0, 40), (60, 0, 9040))

    text = verdict(Answers({"breakdown": rows}, [slow_rank(7, 7), slow_rank(3, 2), idle(47)]), "zh")

    assert text == (
        "中位 rank 在算子之外运行 Python 代码：每步 100 ms 中有 47.0 ms（47%）。"
        "rank 7 计算慢（每步 7.00 ms，7%）；rank 3 计算慢（每步 2.00 ms，2%）。"
        "第 2 步耗时 9.10 s，是中位数的 91 倍（占全部时间的 98%）。"
        "平均每步耗时 3.10 s（中位数 100.00 ms）：计算 2%、空闲 98%。"
    )
