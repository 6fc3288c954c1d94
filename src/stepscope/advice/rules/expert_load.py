"""The experts of some ranks have far more work than those of others in their group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.advice.finding import Finding, Per, per_of, place
from stepscope.advice.messages import Message, Text
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.advice.replayed import OFF, replay_error
from stepscope.advice.rules.expert_blame import blamed_on_experts
from stepscope.analysis.rank_lists import listed
from stepscope.limits import limit

_GROUP = Text(
    "[, group {group}][ (and {more:count more group|more groups})]"
    "[. Only recorded ranks are compared: {missing:count member is|members are} missing].",
    "[，组 {group}][（另有 {more} 个组）][。仅比较了已记录的 rank：缺少 {missing} 个成员]。",
)
_ACTION = Text(
    "Strengthen what balances the router (auxiliary loss, or a bias for each expert), limit the capacity of experts, "
    "or place experts on ranks by their load.",
    "加强路由的均衡手段（辅助损失或每个专家的偏置），限制专家容量，或按负载在各 rank 上摆放专家。",
)
_RECORD = Text(
    "Record shapes to see the tokens of each rank. If they are uneven, strengthen what balances the router, "
    "limit the capacity of experts, or place experts on ranks by their load.",
    "记录形状以查看每个 rank 的词元数。若不均匀，加强路由的均衡手段、限制专家容量，或按负载在各 rank 上摆放专家。",
)
_BASIS = (
    Text(
        "nothing if the tokens cannot be spread more evenly"
        "[; less or more if the {missing:one missing member has|missing members have} more or less work]",
        "若词元无法更均匀则为零[；若缺少的 {missing} 个成员工作量更多或更少，则更少或更多]",
    )
    + OFF
)


MESSAGES = {
    "tokens": Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one has|have} {excess_ratio:percent} more tokens for {ranks:one its|their} experts "
            "than the mean of {members} ranks",
            "{ranks:ranks} 的专家处理的词元比 {members} 个 rank 的均值多 {excess_ratio:percent}",
        )
        + _GROUP,
        cause=Text(
            "The router sends tokens unevenly: {max_load} against {mean_load} on average and {min_load} on rank "
            "{min_rank}[{elements:one  (elements that all-to-all calls bring)}]. In each layer, all ranks of the group "
            "wait for the one with most.",
            "路由分配的词元不均匀：最多 {max_load}，平均 {mean_load}，rank {min_rank} 只有 {min_load}"
            "[{elements:one （全交换通信收到的元素）}]。"
            "每一层中，同组的所有 rank 都要等待最多的那个。",
        ),
        action=_ACTION,
        basis=_BASIS,
    ),
    "layers": Message(
        summary=Text(
            "In each layer another rank has most tokens for its experts: {excess_ratio:percent} more than the mean of "
            "{members} ranks",
            "每一层中词元最多的 rank 各不相同：比 {members} 个 rank 的均值多 {excess_ratio:percent}",
        )
        + _GROUP,
        cause=Text(
            "The router sends tokens unevenly: {max_ranks} ranks have most in some of {calls:count call|calls} of "
            "experts, so their sums hide it ({sum_ratio:percent} more on the rank with most). In each layer, all ranks "
            "of the group wait for the one with most[{elements:one  (by elements that all-to-all calls bring)}].",
            "路由分配的词元不均匀：{calls} 次专家计算中，有 {max_ranks} 个 rank 轮流最多，总和掩盖了这一点（总和最多的"
            " rank 只多 {sum_ratio:percent}）。每一层中，同组的所有 rank 都要等待最多的那个"
            "[{elements:one （按全交换通信收到的元素）}]。",
        ),
        action=_ACTION,
        basis=_BASIS,
    ),
    "layers-time": Message(
        summary=Text(
            "In each layer another rank takes longest for its experts: {excess_ratio:percent} more than the mean of "
            "{members} ranks",
            "每一层中专家耗时最长的 rank 各不相同：比 {members} 个 rank 的均值长 {excess_ratio:percent}",
        )
        + _GROUP,
        cause=Text(
            "{max_ranks} ranks take longest in some of {calls:count call|calls} of experts, and all ranks of the group "
            "wait for them. Numbers of tokens were not recorded; that it is another rank each time suggests the "
            "router, not one slow rank.",
            "{calls} 次专家计算中，有 {max_ranks} 个 rank 轮流最慢，同组的所有 rank 都要等待。没有记录词元数；"
            "每次是不同的 rank，更可能是路由而不是某个慢 rank。",
        ),
        action=_RECORD,
        basis=_BASIS,
    ),
    "time": Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one takes|take} {excess_ratio:percent} longer for {ranks:one its|their} experts "
            "than the mean of {members} ranks",
            "{ranks:ranks} 的专家耗时比 {members} 个 rank 的均值长 {excess_ratio:percent}",
        )
        + _GROUP,
        cause=Text(
            "Numbers of tokens were not recorded: its experts may get more tokens, or the rank may be slower.",
            "没有记录词元数：可能是它的专家得到的词元更多，也可能是它更慢。",
        ),
        action=_RECORD,
        basis=_BASIS,
    ),
}


@dataclass(frozen=True)
class Limits:
    """What is worth a finding."""

    uneven_ratio: float = limit(
        1.25,
        "of the mean load of its group, on the rank with most",
        "the capacity factor of Switch Transformers (Fedus et al., 2021), beyond which tokens are dropped",
    )
    hidden_factor: float = limit(
        2.0,
        "times what the rank with most has more in sum, that the one with most in each call has",
        "chosen by us: then most of the unevenness is no single rank's",
    )


@rule(
    "expert-load",
    MESSAGES,
    whole_job=True,
    claim=Claim(Turn.SEEN_LATE, time="computing"),
    dimension="computation",
    computed=Text(
        "Compares the load of the ranks of each group of experts, counted in tokens or elements where "
        "recorded, else by computing time, with their mean, in sum and in each call. The saving is what "
        "a replay with an even load saves: at most that, and at most what slow ranks cost because of "
        "their experts.",
        "将每个专家组中各 rank 的负载与平均值比较，既看总和也看每次调用；有词元数或元素数时按其统计，否则"
        "按计算时间。节省为负载均衡的重放所得，并且不超过慢 rank 因其专家造成的代价。",
    ),
    shows=("expert_groups", "expert_load"),
)
def expert_load(
    expert_groups: pl.DataFrame,
    breakdown: pl.DataFrame | None = None,
    expert_costs: pl.DataFrame | None = None,
    slow_ranks: pl.DataFrame | None = None,
    slow_experts: pl.DataFrame | None = None,
    limits: Limits = Limits(),
) -> Iterator[Finding]:
    """Report the group of experts whose uneven load costs most, else the most uneven one, and how many more are uneven.
    Nothing is said if it is unknown which ranks are a group. If another rank has most in each call, none is accused.

    Where slow ranks are slow because of their experts (`slow_experts`), the saving is what an even load leaves of their
    cost, and at most what a replay with even experts saves. Where another rank has most in each call, it is what a
    replay saves in which all uneven groups are even, unless ranks compute slowly, which it would mend too; else none is
    claimed.
    """
    costs, alone = _costs(slow_ranks, slow_experts)
    in_calls = pl.col("call_imbalance_ratio").fill_null(1.0)
    known = (
        expert_groups.filter(pl.col("group_by") != "none")
        .with_columns(
            cost_ns=pl.col("group").replace_strict({group: ns for group, (ns, _) in costs.items()}, default=0.0),
            most=pl.max_horizontal("imbalance_ratio", in_calls),
        )
        .with_columns(
            moves=(pl.col("cost_ns") == 0)
            & (in_calls >= limits.uneven_ratio)
            & (in_calls - 1 >= limits.hidden_factor * (pl.col("imbalance_ratio") - 1))
        )
    )
    uneven = known.filter((pl.col("most") >= limits.uneven_ratio) | (pl.col("cost_ns") > 0)).sort(
        -pl.col("cost_ns"), -pl.col("most"), maintain_order=True
    )
    if uneven.is_empty():
        return
    row = uneven.row(0, named=True)
    cost = None
    if expert_costs is not None:
        same = expert_costs.filter(pl.col("group").eq_missing(row["group"]) & (pl.col("ranks") == row["ranks"]))
        cost = next(same.iter_rows(named=True), None)
    parameters = {
        "members": len(listed(row["ranks"])),
        "group": row["group_name"],
        "more": uneven.height - 1 or None,
        "missing": row["missing_ranks"] or None,
        "error_ratio": replay_error(cost) if cost else None,
    }
    evidence = {"kind": "experts"} | {name: row[name] for name in ("imbalance_ratio", "load_by", "ranks")}
    per = per_of(breakdown, otherwise="step")
    if row["moves"]:
        yield _moving(row, cost, parameters, evidence, per, is_certain=not _compute_slowly(slow_ranks))
        return
    by_time = row["load_by"] == "time"
    figures = {} if by_time else {"max_load": row["max_load"], "min_load": row["min_load"], "min_rank": row["min_rank"]}
    elements = 1 if row["load_by"] == "received" else None
    means = {} if by_time else {"mean_load": round(row["mean_load"]), "elements": elements}
    replayed = cost["saving_ns"] if cost else 0
    saving, step_ns = sum(ns for ns, _ in costs.values()), max((step for _, step in costs.values()), default=0.0)
    if replayed and len(costs) == 1:  # of several groups or slow ranks, each may hide the others
        saving = replayed if alone else min(saving, replayed)
    yield Finding(
        rule="expert-load",
        message="time" if by_time else "tokens",
        parameters={
            "ranks": [row["max_rank"]],
            "excess_ratio": row["imbalance_ratio"] - 1,
            **parameters,
            **figures,
            **means,
        },
        saving_ns=round(saving),
        saving_ratio=saving / step_ns if step_ns else 0.0,
        saving_low_ns=0,
        saving_high_ns=round(max(replayed, saving) * _if_others_idle(row)),
        replayed=cost is not None,
        per=per,
        where=place([row["max_rank"]]),
        evidence=evidence,
        confidence="likely" if by_time else "certain",
    )


def _moving(
    row: dict[str, Any],
    cost: dict[str, Any] | None,
    parameters: dict[str, Any],
    evidence: dict[str, Any],
    per: Per,
    *,
    is_certain: bool,
) -> Finding:
    """Another rank has most load in each call: a finding about all."""
    by_time = row["load_by"] == "time"
    replayed = cost["together_ns"] if cost else 0
    saving = replayed if is_certain else 0
    sums = {} if by_time else {"sum_ratio": row["imbalance_ratio"] - 1}
    elements = {} if by_time else {"elements": 1 if row["load_by"] == "received" else None}
    ratio, calls = row["call_imbalance_ratio"], row["calls"]
    return Finding(
        rule="expert-load",
        message="layers-time" if by_time else "layers",
        parameters={
            **{"excess_ratio": ratio - 1, "max_ranks": row["max_ranks"], "calls": calls},
            **parameters,
            **sums,
            **elements,
        },
        saving_ns=saving,
        saving_ratio=saving / cost["step_ns"] if cost and cost["step_ns"] else 0.0,
        saving_low_ns=0,
        saving_high_ns=replayed,
        replayed=True,
        per=per,
        evidence={**evidence, "call_imbalance_ratio": ratio},
    )


def _compute_slowly(slow_ranks: pl.DataFrame | None) -> bool:
    return slow_ranks is not None and "computing" in slow_ranks["kind"].to_list()


def _if_others_idle(row: dict[str, Any]) -> float:
    """How many times as much an even load saves if members that were not recorded have as little as the least."""
    recorded, missing = len(listed(row["ranks"])), row["missing_ranks"] or 0
    beyond = row["max_load"] - row["mean_load"]
    mean = (row["mean_load"] * recorded + row["min_load"] * missing) / (recorded + missing)
    return (row["max_load"] - mean) / beyond if beyond > 0 else 1.0


def _costs(
    slow_ranks: pl.DataFrame | None, slow_experts: pl.DataFrame | None
) -> tuple[dict[str, tuple[float, float]], bool]:
    """What an even load saves of the cost of slow ranks, by group, and the mean step; and whether no rank is slow for
    another reason."""
    found: dict[str, tuple[float, float]] = {}
    alone = True
    for row in () if slow_ranks is None else slow_ranks.iter_rows(named=True):
        blame = blamed_on_experts(row, slow_experts)
        if blame is None or not blame.groups or not row["cost_ratio"] or blame.left_ratio > 0:
            alone = False
        if blame is None or not row["cost_ratio"]:
            continue
        for group in blame.groups:
            part = row["cost_ns"] * blame.levelled_ratio / len(blame.groups)
            found[group] = (found.get(group, (0.0, 0.0))[0] + part, row["cost_ns"] / row["cost_ratio"])
    return found, alone
