"""The job hangs: ranks wait in a call for others that do not come, or that called something else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from typing import Any

import polars as pl

from stepscope.advice.finding import CPU, CUDA, NPU, Confidence, Finding, Platform, place
from stepscope.advice.messages import Message, Text, fields_of
from stepscope.advice.registry import rule
from stepscope.analysis.rank_lists import listed

_CALL = Text(
    "{operation}[ {sequence}] of {group}[ from rank {sender} to rank {receiver}]",
    "{group} 的 {operation}[ {sequence}][（rank {sender} 到 rank {receiver}）]",
)
_WAIT = Text(
    "[: {waiting:ranks} {waiting:one waits|wait} in it][ since {since}][, for at least {waited_ns:duration}].",
    "[：{waiting:ranks} 在其中等待][，自 {since} 起][，至少 {waited_ns:duration}]。",
)
_MISSING = Text("[ {missing:Ranks} never made it at all.]", "[{missing:ranks} 完全没有发起该调用。]")
_ALSO = Text("[ {also:count more call hangs|more calls hang} because of this.]", "[另有 {also} 个调用因此卡住。]")
_PLACE = Text("[; rank {rank} made its call in {place}].", "[；rank {rank} 的调用位于 {place}]。")

_DEVICES = Text(
    "Check links, network interfaces and devices of these ranks (error counters, kernel log[, {log}]), and whether a "
    "kernel in front of the call still runs on one of the devices.",
    "检查这些 rank 的链路、网卡和设备（错误计数、内核日志[、{log}]），以及该调用之前的某个 kernel 是否仍在"
    "某个设备上运行。",
)

_LOGS = {"nccl": "NCCL_DEBUG=INFO", "hccl": "ASCEND_GLOBAL_LOG_LEVEL=1"}
"""What makes a library write more into its log, by `recorded_calls.backend`."""

GLOO = "gloo"
"""The library that moves data over the network of the hosts, also in jobs on devices."""

MESSAGES = {
    "missing": Message(
        summary=Text("{ranks:Ranks} never made the call ", "{ranks:ranks} 没有发起 ") + _CALL + _WAIT,
        cause=Text(
            "The last call that rank {rank} made is {own_operation}[ {own_sequence}] of {own_group}[, in {place}]"
            "[; it {left:one has left|has not left} that call]. What it does since then was not recorded"
            "[{unknown:one , and it may wait in a send or receive, as gloo records none|}].",
            "rank {rank} 的最后一次调用是 {own_group} 的 {own_operation}[ {own_sequence}][，位于 {place}]"
            "[（{left:one 已|尚未}离开该调用）]。此后它在做什么没有记录"
            "[{unknown:one ，也可能在点对点收发中等待：gloo 不记录这类调用|}]。",
        )
        + _ALSO,
        action=Text(
            "See what {ranks:ranks} {ranks:one does|do} now (`py-spy dump --pid PID` on the host; the logs if the "
            "process is gone). Usual reasons: a branch that only some ranks take, fewer batches than the others, a "
            "data loader or a file system that does not answer, an exception, or a process that died.",
            "查看 {ranks:ranks} 当前在做什么（在其主机上运行 `py-spy dump --pid PID`；若进程已退出则查看日志）。"
            "常见原因：只有部分 rank 进入的分支、批次数少于其他 rank、数据加载或文件系统没有响应、异常、进程已退出。",
        ),
    ),
    "other operation": Message(
        summary=Text(
            "{ranks:Ranks} called {operations:list}{odd:one  where others called|, not the same, in the place of} ",
            "{odd:one 其他 rank 调用|在} ",
        )
        + _CALL
        + Text("", " {odd:one 时|处}，{ranks:ranks} 调用了 {operations:list}{odd:one |，互不相同}")
        + _WAIT
        + _MISSING,
        cause=Text(
            "Calls of one group are matched by their order, so these wait for each other[. Others call {next} next: "
            "rank {rank} left out this call, or makes it later]",
            "同一通信组的调用按次序匹配，因此它们互相等待"
            "[。其他 rank 接下来调用 {next}：rank {rank} 漏掉或推迟了这次调用]",
        )
        + _PLACE
        + _ALSO,
        action=Text(
            "Make all ranks of a group make the same calls in the same order: look for a condition on the rank, on "
            "data or on time in front of these calls[: {place}][, {other_place}].",
            "让同一组的所有 rank 以相同次序发起相同的调用：检查这些调用之前依赖 rank、数据或时间的条件"
            "[：{place}][，{other_place}]。",
        ),
    ),
    "other type": Message(
        summary=Text("{ranks:Ranks} {ranks:one gives|give} {own_type} to ", "{ranks:ranks} 传入 {own_type}：")
        + _CALL
        + Text("[, others {type}]", "[，其他 rank 为 {type}]")
        + _WAIT
        + _MISSING,
        cause=Text("All members of a call must give the same data type", "一次调用的所有成员必须使用相同的数据类型")
        + _PLACE
        + _ALSO,
        action=Text(
            "Convert the tensor to the same type on all ranks; check mixed precision, and types of parameters that "
            "were loaded on some ranks only.",
            "在所有 rank 上把张量转换为相同的类型；检查混合精度，以及只在部分 rank 上加载的参数的类型。",
        ),
    ),
    "other size": Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one gives|give} {odd:one another size|different sizes} to ",
            "{ranks:ranks} 传入的大小{odd:one 与其他 rank 不同|互不相同}：",
        )
        + _CALL
        + Text("[ ({own_bytes:size}, others {bytes:size})]", "[（{own_bytes:size}，其他 rank 为 {bytes:size}）]")
        + Text("[ ({least_bytes:size} to {most_bytes:size})]", "[（{least_bytes:size} 至 {most_bytes:size}）]")
        + _WAIT
        + _MISSING,
        cause=Text(
            "All members of this call must give the same number of elements", "该调用的所有成员必须传入相同数量的元素"
        )
        + _PLACE
        + _ALSO,
        action=Text(
            "Pad or cut the tensor to one size on all ranks, or exchange the sizes first. A smaller last batch is the "
            "usual reason: set drop_last=True.",
            "在所有 rank 上把张量补齐或裁剪为同一大小，或先交换大小。常见原因是最后一批较小：设置 drop_last=True。",
        ),
    ),
    "crossed": Message(
        summary=Text(
            "{ranks:Ranks} wait for each other in different calls, one of which is ",
            "{ranks:ranks} 在不同的调用中互相等待，其中之一是 ",
        )
        + _CALL
        + Text("[, since {since}].", "[，自 {since} 起]。"),
        cause=Text(
            "Each waits in a call that another one makes only after the call in which that one waits itself"
            "[; rank {rank} waits in {place}].",
            "每一方等待的调用，对方要在自己等待的调用结束之后才会发起[；rank {rank} 在 {place} 处等待]。",
        )
        + _ALSO,
        action=Text(
            "Make calls of several groups in the same order on all ranks; let one side of each pair receive first "
            "while the other sends, or use batch_isend_irecv.",
            "在所有 rank 上以相同次序发起多个通信组的调用；让每对 rank 一方先接收、另一方先发送，"
            "或使用 batch_isend_irecv。",
        ),
    ),
    "not started": Message(
        summary=Text("{ranks:Ranks} queued, but did not begin, the call ", "{ranks:ranks} 已提交但没有开始 ")
        + _CALL
        + _WAIT,
        cause=Text(
            "Work that {ranks:ranks} queued earlier than the call[ in {place}] has not ended, and no other open call "
            "between ranks is known to hold it up.",
            "{ranks:ranks} 在该调用[（{place}）]之前提交的工作没有结束，且未发现有其他未完成的通信调用使其等待。",
        )
        + _ALSO,
        action=Text(
            "See what {ranks:ranks} {ranks:one works|work} on now: computing or a copy in front of the call that does "
            "not end, or far more work than the other ranks have.",
            "查看 {ranks:ranks} 当前在执行什么：该调用之前的计算或拷贝没有结束，或其工作量远多于其他 rank。",
        ),
    ),
    "no dump": Message(
        summary=Text("It is unknown whether {ranks:ranks} made the call ", "不清楚 {ranks:ranks} 是否发起了 ")
        + _CALL
        + _WAIT,
        cause=Text(
            "There is no dump of {ranks:ranks} here that shows it; all other members made the call.",
            "这里没有能说明 {ranks:ranks} 的转储；其他成员都已发起该调用。",
        )
        + _ALSO,
        action=Text(
            "Add the dumps of {ranks:ranks}; if there are none, see whether the process still runs, and its logs.",
            "补充 {ranks:ranks} 的转储；若没有，检查其进程是否仍在运行以及日志。",
        ),
    ),
    "unfinished": Message(
        summary=Text("All ranks of the group entered ", "通信组的所有 rank 都已进入 ")
        + _CALL
        + Text("[ since {since}], and it does not end", "[（自 {since} 起）]，该调用没有结束")
        + Text("[ ({waited_ns:duration})].", "[（已 {waited_ns:duration}）]。"),
        cause=Text(
            "They called the same, with the same sizes and types, so the transfer itself does not end"
            "[{unknown:one , or a further rank is missing: members of the group were not recorded|}].",
            "它们的调用、大小和类型一致，因此是传输本身没有结束"
            "[{unknown:one ，或缺少另一个 rank：没有记录通信组的成员|}]。",
        )
        + _ALSO,
        action={
            **dict.fromkeys(((None, CUDA), (None, NPU)), _DEVICES),
            (None, None): Text(
                "Check the network between the hosts of these ranks (interfaces, error counters, system log), and "
                "whether all of their processes still run.",
                "检查这些 rank 所在主机之间的网络（网卡、错误计数、系统日志），以及它们的进程是否都在运行。",
            ),
        },
    ),
}
"""By `hangs.kind`."""


def _named_in(message: Message) -> set[str]:
    """The parameters of a message."""
    texts = (text for text in vars(message).values() if text is not None)
    every = (one for text in texts for one in ([text] if isinstance(text, Text) else text.values()))
    return {field.name for text in every for field in fields_of(text.en)}


_OF_MESSAGE = {kind: _named_in(message) for kind, message in MESSAGES.items()}


_CONFIDENCE: dict[str, Confidence] = {
    **dict.fromkeys(("other operation", "other type", "other size", "crossed"), "certain"),
    **dict.fromkeys(("no dump", "unfinished"), "possible"),
}
"""What dumps show as such, and what has several explanations; of all else one is likely."""


@rule(
    "hang",
    MESSAGES,
    whole_job=True,
    urgent=True,
    dimension="overall",
    computed=Text(
        "Compares the last calls that each rank's dump lists, group by group: who entered a call, who "
        "did not, and who called something else. No saving is claimed, as the job does not go on.",
        "逐个通信组比较各 rank 转储中最后的调用：谁进入了调用、谁没有进入、谁调用了别的操作。作业无法继续，"
        "因此不计节省。",
    ),
    shows=("hangs", "unfinished_calls"),
)
def hang(hangs: pl.DataFrame, unfinished_calls: pl.DataFrame) -> Iterator[Finding]:
    """Report each cause in `hangs` once, with the number of further calls that hang because of it.

    No saving is claimed, as the job does not go on.
    """
    rows = hangs.to_dicts()
    causes = [row for row in rows if row["cause_call"] is None]
    by_cause: dict[tuple[str, str | None, str | None, int | None], list[dict[str, Any]]] = {}
    for row in causes:
        alone = row["call"] if row["ranks"] is None else None
        by_cause.setdefault((row["kind"], row["ranks"], row["missing_ranks"], alone), []).append(row)
    for same in by_cause.values():
        first, *others = sorted(same, key=lambda row: (bool(row["held_up_ranks"]), row["since_ns"] or 0, row["call"]))
        numbers = {row["call"] for row in same}
        also = len(others) + sum(row["cause_call"] in numbers for row in rows)
        members = unfinished_calls.filter(pl.col("call") == first["call"]).to_dicts()
        yield _finding(first, members, also)


def _finding(row: dict[str, Any], members: Sequence[dict[str, Any]], also: int) -> Finding:
    waiting = listed(row["waiting_ranks"]) if row["waiting_ranks"] else []
    missing = listed(row["missing_ranks"]) if row["missing_ranks"] else []
    named = row["ranks"] or (row["unknown_ranks"] if row["kind"] == "no dump" else None)
    ranks = listed(named) if named else waiting
    named_members = [one for one in members if one["rank"] in ranks]
    if row["kind"] == "crossed":  # the place where a rank waits, not that of a call that its device has not begun
        named_members.sort(key=lambda one: one["has_started"] is False)
    about = next(iter(named_members), members[0])
    others = [one for one in members if one["rank"] not in (*ranks, *missing) and one["own_operation"] is not None]
    other = others[0] if others else dict.fromkeys(about)
    sizes = [one["size_bytes"] for one in named_members if one["size_bytes"] is not None and not others]
    nexts = sorted({one["next_operation"] for one in others if one["next_operation"]})
    evidence = {name: row[name] for name in ("kind", "group", "operation", "sequence", "since_ns", "waited_ns")}
    parameters = {
        **{name: row[name] for name in ("operation", "sequence", "sender", "receiver")},
        "waited_ns": row["waited_ns"] if waiting else None,
        "group": row["group_name"] or row["group"],
        "ranks": ranks,
        "rank": about["rank"],
        "missing": missing or None,
        "log": _LOGS.get(row["backend"]),
        "waiting": [rank for rank in waiting if rank not in ranks],
        "since": _moment(row["since_ns"]) if waiting else None,
        "also": also or None,
        "own_operation": about["own_operation"],
        "own_sequence": about["own_sequence"],
        "own_group": about["own_group_name"],
        "left": {True: 1, False: 2}.get(about["own_is_done"]),
        "place": about["place"],
        "other_place": other["place"] if other["place"] != about["place"] else None,
        "next": nexts[0] if about["own_operation"] in nexts else None,
        "own_type": about["element_type"],
        "type": other["element_type"],
        "own_bytes": about["size_bytes"],
        "bytes": other["size_bytes"],
        "odd": 1 if others else 2,
        "operations": sorted({one["own_operation"] for one in named_members if one["own_operation"]}),
        "least_bytes": min(sizes, default=None),
        "most_bytes": max(sizes, default=None),
        "unknown": None if row["members_known"] else 1,
    }
    return Finding(
        rule="hang",
        message=row["kind"],
        parameters={name: parameters[name] for name in sorted(_OF_MESSAGE[row["kind"]])},
        where=place(sorted([*ranks, *missing])),
        platform=Platform(device=CPU) if row["backend"] == GLOO else Platform(),
        evidence={**evidence, "missing_ranks": missing, "waiting_ranks": waiting, "also": also, "stops_job": True},
        least="medium" if row["kind"] in ("no dump", "unfinished") else "high",
        confidence=_CONFIDENCE.get(row["kind"], "likely"),
        span_ns=_span(row),
    )


def _span(row: dict[str, Any]) -> tuple[int, int] | None:
    """From when to when ranks are known to wait."""
    since, waited = row["since_ns"], row["waited_ns"]
    return None if since is None or waited is None else (since, since + waited)


def _moment(ns: int | None) -> str | None:
    """A moment as engineers find it in logs."""
    return None if ns is None else datetime.fromtimestamp(ns // 10**9, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
