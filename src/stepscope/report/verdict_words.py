"""The sentences of the verdict, in English and Chinese."""

from __future__ import annotations

from stepscope.advice.messages import Text

_LENGTH = Text(
    "{mean_ns:duration}[ (median {median_ns:duration})]", "{mean_ns:duration}[（中位数 {median_ns:duration}）]"
)
_SPLIT = Text(": {split}.", "：{split}。")
_LONG = Text(
    "{per:noun} {step} takes {window_ns:duration}[, {factor:number .0f} times the median {per:noun}]",
    "第 {step} {per:noun}耗时 {window_ns:duration}[，是中位数的 {factor:number .0f} 倍]",
)
_SHARE = Text(" ({share_ratio:percent} of the time)", "（占全部时间的 {share_ratio:percent}）")

SENTENCES = {
    "found": Text("{summary}", "{summary}"),
    "accused": Text(
        "{short} ({saving_ns:duration} {per:each}, {saving_ratio:percent})",
        "{short}（{per:each} {saving_ns:duration}，{saving_ratio:percent}）",
    ),
    "together": Text(
        "{what:list} hide each other: mended together, they save up to {together_ns:duration} {per:each} "
        "({together_ratio:percent}).",
        "{what:list} 相互掩盖：一起解决时，{per:each}最多可节省 {together_ns:duration}（{together_ratio:percent}）。",
    ),
    "more_accused": Text("{count} more {count:one is|are} slow", "另有 {count} 处较慢"),
    "much_idle": Text(
        "No single thing to change stands out[ on {selected:ranks}], but ranks are idle {idle_ratio:percent} of the "
        "time[, mostly with the cause `{cause}`].",
        "[{selected:ranks} 上]没有突出的单项问题，但各 rank 有 {idle_ratio:percent} 的时间空闲"
        "[，主要原因是 `{cause}`]。",
    ),
    "nothing_of_ranks": Text("No rank, link or stage stands out.", "没有突出的 rank、链路或阶段。"),
    "not_compared": Text(
        "{ranks:Ranks} could not be compared with the others: {ranks:one its|their} steps, calls or device work are "
        "missing in part.",
        "{ranks:ranks} 无法与其他 rank 比较：缺少部分训练步、通信或设备记录。",
    ),
    "some_replayed": Text(
        "Slow ranks and links were looked for in the last {replayed} of {steps} {per:nouns} only: more do not fit into "
        "memory (limit operations of replayed_steps).",
        "只在最后 {replayed} {per:noun}（共 {steps} {per:noun}）中查找慢 rank 和慢链路：更多的放不进内存"
        "（replayed_steps 的上限 `operations`）。",
    ),
    "none_replayed": Text(
        "Slow ranks and links were not looked for: a single {per:noun} of all ranks does not fit into memory (limit "
        "operations of replayed_steps).",
        "没有查找慢 rank 和慢链路：所有 rank 的一{per:noun}放不进内存（replayed_steps 的上限 `operations`）。",
    ),
    "nothing": Text("Nothing stands out[ on {selected:ranks}].", "[{selected:ranks} 上]没有突出的问题。"),
    "long_step": _LONG + _SHARE,
    "long_first_step": _LONG + Text(", as the first one starts things up", "，因为首次要完成启动工作") + _SHARE,
    "more_long_steps": Text("{count} more {count:one is|are} long", "另有 {count} 个较长"),
    "iterations": Text(
        "No steps are marked: {count:count iteration|iterations} found by repetition of "
        "{operators:count operator|operators}.",
        "没有标记训练步：根据 {operators} 个算子的重复找到 {count} 次迭代。",
    ),
    "whole_recording": Text(
        "No steps are marked: times are of the whole recording.", "没有标记训练步：时间均为整段记录的时间。"
    ),
    "average": Text(
        "The average {per:noun}[ without {per:noun} {left_out}] takes ",
        "平均{per:each}[（不含第 {left_out} {per:noun}）]耗时 ",
    )
    + _LENGTH
    + _SPLIT,
    "average_recording": Text("The work in the recording spans ", "记录中的工作持续 ") + _LENGTH + _SPLIT,
    "average_recordings": Text("The work in the average rank's recording spans ", "平均每个 rank 的记录中工作持续 ")
    + _LENGTH
    + _SPLIT,
    "narrow": Text("The recorded work of the average step on its device spans ", "平均每步记录到的设备工作持续 ")
    + _LENGTH
    + Text(
        " of the {step_ns:duration} that the step takes on the host: {split} of that span.",
        "，而该步在主机上耗时 {step_ns:duration}；其中{split}。",
    ),
    "some_steps": Text("The average step[ without step {left_out}] takes ", "平均每步[（不含第 {left_out} 步）]耗时 ")
    + _LENGTH
    + Text(
        ". Operators were recorded in {split_steps} of {steps:count step|steps}, which take {split_mean_ns:duration} "
        "on average: {split}.",
        "。{steps} 步中有 {split_steps} 步记录了算子，这些步平均耗时 {split_mean_ns:duration}：{split}。",
    ),
    "computing_ns": Text("{ratio:percent} computing", "计算 {ratio:percent}"),
    "unsplit_communication": Text(
        "{ratio:percent} exposed communication (waiting for other ranks included)",
        "未掩盖的通信 {ratio:percent}（包括等待其他 rank）",
    ),
    "split_communication": Text(
        "{ratio:percent} exposed communication[ ({parts})]", "未掩盖的通信 {ratio:percent}[（{parts}）]"
    ),
    "stage_waiting": Text("{ratio:percent} waiting for other stages", "等待其他阶段 {ratio:percent}"),
    "waiting": Text("{ratio:percent} waiting[ for {late:ranks}]", "等待[ {late:ranks}] {ratio:percent}"),
    "transmission": Text("{ratio:percent} transmission", "传输 {ratio:percent}"),
    "memory_not_overlapped_ns": Text("{ratio:percent} exposed memory operations", "未掩盖的内存操作 {ratio:percent}"),
    "free_ns": Text("{ratio:percent} idle", "空闲 {ratio:percent}"),
    "unmarked_ns": Text("{ratio:percent} unmarked or idle", "未标记或空闲 {ratio:percent}"),
    "unmarked": Text(
        "Light tracing does not mark backward passes and optimizers, so their time cannot be told from idle time; to "
        "see it, profile some steps (`stepscope live capture`).",
        "轻量打点不标记反向和优化器，因此无法区分其时间与空闲时间；要看到它们，请采集若干步"
        "（`stepscope live capture`）。",
    ),
    "not_recorded": Text("Why the devices are idle was not recorded.", "设备空闲的原因没有被记录。"),
    "some_known": Text(
        "This is about {known} of {steps:count step|steps}: no operators were recorded in the others, so costs that do "
        "not occur in every step may be higher or lower.",
        "以上只涉及 {steps} 步中的 {known} 步：其余步没有记录算子，因此并非每步都有的开销可能更高或更低。",
    ),
    "no_hang": Text(
        "No rank is known to wait for another: in all groups, the recorded calls are finished or under way.",
        "没有发现 rank 在等待其他 rank：各通信组中记录的调用都已完成或正在进行。",
    ),
    "no_step": Text("No step could be analysed: {reason}.", "无法分析任何一步：{reason}。"),
    "no_split": Text("How a step splits is unknown: {reason}.", "一步的时间构成未知：{reason}。"),
}
"""By what they state."""

NO_STEPS_ZH = "没有带时间的训练步"
NO_WORK_ZH = "记录的工作不完整（详见 --json 中的 `unavailable`）"
"""Why no step could be split: there is none, or what was recorded in them does not suffice."""
