"""The experts of some ranks have far more work than those of others in their group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.finding import Finding, per_of, place
from stepscope.advice.messages import Message, Text
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.advice.replayed import OFF, replay_error
from stepscope.advice.rules.expert_blame import blamed_on_experts
from stepscope.analysis.rank_lists import listed
from stepscope.limits import limit

_GROUP = Text(
    "[, group {group}][ (and {more:count more group|more groups})].", "[，组 {group}][（另有 {more} 个组）]。"
)
_ACTION = Text(
    "Strengthen what balances the router (auxiliary loss, or a bias for each expert), limit the capacity of experts, "
    "or place experts on ranks by their load.",
    "加强路由的均衡手段（辅助损失或每个专家的偏置），限制专家容量，或按负载在各 rank 上摆放专家。",
)
_BASIS = Text("nothing if the tokens cannot be spread more evenly", "若词元无法更均匀则为零") + OFF

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
        action=Text(
            "Record shapes to see the tokens of each rank. If they are uneven, strengthen what balances the router, "
            "limit the capacity of experts, or place experts on ranks by their load.",
            "记录形状以查看每个 rank 的词元数。若不均匀，加强路由的均衡手段、限制专家容量，或按负载在各 rank 上"
            "摆放专家。",
        ),
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


@rule("expert-load", MESSAGES, whole_job=True, claim=Claim(Turn.SEEN_LATE, time="computing"))
def expert_load(
    expert_groups: pl.DataFrame,
    breakdown: pl.DataFrame | None = None,
    expert_costs: pl.DataFrame | None = None,
    slow_ranks: pl.DataFrame | None = None,
    slow_experts: pl.DataFrame | None = None,
    limits: Limits = Limits(),
) -> Iterator[Finding]:
    """Report the group of experts whose uneven load costs most, else the most uneven one, and how many more are uneven.
    Nothing is said if it is unknown which ranks are a group.

    Where slow ranks are slow because of their experts (`slow_experts`), the saving is what an even load leaves of their
    cost, and at most what a replay with even experts saves; else none is claimed.
    """
    costs, alone = _costs(slow_ranks, slow_experts)
    known = expert_groups.filter(pl.col("group_by") != "none").with_columns(
        cost_ns=pl.col("group").replace_strict({group: ns for group, (ns, _) in costs.items()}, default=0.0)
    )
    uneven = known.filter((pl.col("imbalance_ratio") >= limits.uneven_ratio) | (pl.col("cost_ns") > 0)).sort(
        -pl.col("cost_ns"), maintain_order=True
    )
    if uneven.is_empty():
        return
    row = uneven.row(0, named=True)
    by_time = row["load_by"] == "time"
    figures = {} if by_time else {"max_load": row["max_load"], "min_load": row["min_load"], "min_rank": row["min_rank"]}
    elements = 1 if row["load_by"] == "received" else None
    means = {} if by_time else {"mean_load": round(row["mean_load"]), "elements": elements}
    cost = None
    if expert_costs is not None:
        same = expert_costs.filter(pl.col("group").eq_missing(row["group"]) & (pl.col("ranks") == row["ranks"]))
        cost = next(same.iter_rows(named=True), None)
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
            "members": len(listed(row["ranks"])),
            "group": row["group_name"],
            "more": uneven.height - 1 or None,
            **figures,
            **means,
            "error_ratio": replay_error(cost) if cost else None,
        },
        saving_ns=round(saving),
        saving_ratio=saving / step_ns if step_ns else 0.0,
        saving_low_ns=0,
        saving_high_ns=max(replayed, round(saving)),
        per=per_of(breakdown, otherwise="step"),
        where=place([row["max_rank"]]),
        evidence={"kind": "experts", **{name: row[name] for name in ("imbalance_ratio", "load_by", "ranks")}},
    )


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
