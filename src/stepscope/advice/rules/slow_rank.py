"""One or several ranks hold all others up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import polars as pl

from stepscope.advice.finding import Finding, Per, per_of
from stepscope.advice.occurrence import late_steps
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.advice.replayed import replay_error
from stepscope.advice.rules.expert_blame import blamed_on_experts
from stepscope.advice.rules.slow_rank_reasons import INSTEAD, OF_KIND, parameters_of
from stepscope.advice.rules.slow_rank_times import COMPUTED, highest, is_once, ranged, when
from stepscope.advice.rules.slow_rank_words import MESSAGES
from stepscope.analysis.job.slow_experts import TOKENS
from stepscope.analysis.methods.units import RANK, RANKS
from stepscope.analysis.rank_lists import listed

_SHOWN_CHARACTERS = 60

_NOT_EVIDENCE = ("rank", "cost_ns", "cost_ratio", "saving_low_ns", "saving_high_ns", "unrecorded_ranks")


@rule(
    "slow-rank",
    MESSAGES,
    accuses=True,
    whole_job=True,
    claim=Claim(Turn.SEEN_LATE, time_in="kind"),
    dimension="overall",
    computed=COMPUTED,
    shows=("slow_ranks", "slow_rank_causes", "kernel_patterns", "rank_kernels", "host_patterns", "rank_host_calls"),
)
def slow_rank(
    slow_ranks: pl.DataFrame,
    breakdown: pl.DataFrame,
    slow_rank_causes: pl.DataFrame | None = None,
    slow_experts: pl.DataFrame | None = None,
) -> Iterator[Finding]:
    """Report each rank, or unit of ranks, in `slow_ranks`, with the recorded reason (`slow_rank_causes`).

    The saving is the time per step that the job loses because of it (`cost_ns`): its share if several ranks are slow.
    Fixing one alone may save nothing if others are slow, or if ranks that were not recorded may be. Ranks whose experts
    have more work (`slow_experts`) are left to `expert-load`.
    """
    if breakdown.is_empty():
        return
    worst: int | None = None
    alike = dict(slow_ranks["ranks"].value_counts().iter_rows())
    everyone, per, windows = (
        breakdown["rank"].unique().sort().to_list(),
        per_of(breakdown),
        breakdown["step"].n_unique(),
    )
    causes = {}
    if slow_rank_causes is not None:
        causes = {(row["rank"], row["kind"]): row for row in slow_rank_causes.iter_rows(named=True)}
    for row in slow_ranks.iter_rows(named=True):
        kind, rank, cost_ns, unrecorded = row["kind"], row["rank"], row["cost_ns"], row["unrecorded_ranks"]
        worst = rank if worst is None else worst
        beside = alike[row["ranks"]] - 1
        others = slow_ranks.height - 1 - beside
        less = row["alone_ns"] < cost_ns
        hidden = row["calls"] and not row["times_last"] and rank != worst
        if row["pattern"] == "rotating":
            yield _rotating(row, slow_ranks.height - 1, per)
            continue
        experts = blamed_on_experts(row, slow_experts)
        if experts is not None and experts.left_ratio <= 0:
            continue
        kept = 1.0 if experts is None else experts.left_ratio
        reason = causes.get((rank, kind), {})
        message, words = _worded(kind, reason)
        ranks = [rank, *(one for one in listed(row["ranks"]) if one != rank)]
        ratio = cost_ns / row["cost_ratio"] if row["cost_ratio"] else 0.0
        rest = [one for one in everyone if one not in ranks] if 2 * len(ranks) > len(everyone) else []
        yield Finding(
            rule="slow-rank",
            message=message,
            parameters={
                **words,
                **when(row, per),
                **{name: row[name] for name in ("excess_ns", "typical_ns")},
                "unit": f"{row['unit_kind']} {row['unit']}" if row["unit_kind"] not in (RANK, RANKS) else None,
                "collectives": row["calls"],
                "excess_ratio": row["excess_ns"] / ratio if ratio and not is_once(row) else None,
                "own_ns": row["typical_ns"] + row["excess_ns"],
                "times_last": row["times_last"] if row["calls"] else None,
                "masked_by": worst if hidden else None,
                "others": (others or None) if less else None,
                "beside": (beside or None) if less else None,
                "rest": rest or None,
                "compared": None if rest else len(everyone) - 1,
                "expert_load": None if experts is None else experts.load_ratio,
                "unrecorded": unrecorded or None,
                "recorded": row["counted_steps"] if row["counted_steps"] < windows else None,
                "error_ratio": replay_error(row),
            },
            saving_ns=round(cost_ns * kept),
            saving_ratio=row["cost_ratio"] * kept,
            saving_low_ns=round(row["saving_low_ns"] * kept),
            saving_high_ns=row["saving_high_ns"],
            replayed=row["error_ratio"] is not None,
            per=per,
            evidence={**{name: row[name] for name in row if name not in _NOT_EVIDENCE}, **_evidence(reason)},
            most=highest(row),
            where=late_steps(row),
        ).on(ranks)


def _rotating(row: dict[str, Any], others: int, per: Per) -> Finding:
    """Another rank is late each time: a finding about all."""
    return Finding(
        rule="slow-rank",
        message="rotating",
        parameters={
            "slow_count": row["steps_late"],
            "ranks": listed(row["ranks"]),
            "kind": row["kind"],
            "excess_ns": row["excess_ns"],
            "others": others or None,
            "beside": None,
            **ranged(row),
            "error_ratio": replay_error(row),
        },
        saving_ns=row["cost_ns"],
        saving_ratio=row["cost_ratio"],
        saving_low_ns=row["saving_low_ns"],
        saving_high_ns=row["saving_high_ns"],
        replayed=row["error_ratio"] is not None,
        per=per,
        confidence="possible",
        evidence={name: row[name] for name in row if name not in _NOT_EVIDENCE},
    )


def _worded(kind: str, reason: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The message for a reason, and the parameters that only it has."""
    if not reason:
        return kind, {}
    name = INSTEAD.get(kind, {}).get(reason["reason"], reason["reason"])
    key = f"{kind}/{name}"
    if name not in OF_KIND.get(kind, {}):
        return kind, {}
    known = {
        **{
            column: reason[column] for column in ("factor", "named_ns", "place", "longest_ns", "level", "typical_level")
        },
        **{column: reason[column] for column in ("calls", "typical_calls")},
        "names": [_short(one) for one in reason["names"]],
        "since": None if reason["since_step"] is None else [reason["since_step"]],
        "longest": None if reason["longest_step"] is None else [reason["longest_step"]],
        "equal_shapes": 1 if reason["sized_by"] == "shapes" else None,
        "equal_grids": 1 if reason["sized_by"] == "grid" else None,
        "equal_tokens": 1 if reason["sized_by"] == TOKENS else None,
        "unsized": 1 if _is_unsized(reason) else None,
    }
    return key, {name: known[name] for name in sorted(parameters_of(MESSAGES[key]) - parameters_of(MESSAGES[kind]))}


def _is_unsized(reason: dict[str, Any]) -> bool:
    """Whether the rank may have more work instead of being slower; grids of all kernels are not equal by chance."""
    return reason["sized_by"] is None or (reason["sized_by"] == "grid" and reason["reason"] != "alike")


def _short(name: str) -> str:
    """A kernel's name without its return type, template arguments and parameters; a built-in function's own name."""
    if built_in := re.match(r"<built-in (?:function|method) (\w+)", name):
        return built_in[1]
    plain = re.sub(r"^void |\(.*$", "", re.sub(r"<.*>", "", name)) if "<" in name[1:] else name
    if len(plain) <= _SHOWN_CHARACTERS:
        return plain
    half = _SHOWN_CHARACTERS // 2
    return f"{plain[:half]}...{plain[-half:]}"


def _evidence(reason: dict[str, Any]) -> dict[str, Any]:
    """What is known of a recorded reason."""
    known = {name: value for name, value in reason.items() if name not in ("rank", "kind") and value not in (None, [])}
    return {"recorded_cause": known} if known else {}
