"""The Chinese of sentences and notes of pages, by their English forms; see `sentences`."""

from __future__ import annotations

_STEP = r"(?:step|iteration|recording)"
_A_STEP = r"(?:a step|an iteration|the recording)"

FORMS: tuple[tuple[str, str], ...] = (
    # what-if
    (
        rf"With this, (?:the mean {_STEP}|the {_STEP}) takes (at least |at most )?(\S+ \S+) instead of (\S+ \S+): it "
        r"(saves|costs) (at least |at most )?(\S+ \S+) \((\S+)\)(.*)\.",
        r"更改后每步平均耗时{1} \2，原为 \3：{4}{5} \6（\7）{8}。",
    ),
    (r"saves", "节省"),
    (r"costs", "增加"),
    (r"at least ", "至少"),
    (r"at most ", "至多"),
    (rf", (\S+ \S+) to (\S+ \S+) depending on the {_STEP}", r"，各步为 \1 至 \2"),
    (rf", (\S+ \S+) to (\S+ \S+) in the middle half of the {_STEP}s", r"，居中一半的步为 \1 至 \2"),
    (
        r"At most, as calls with members that were not recorded may wait for these, and such waiting would stay\.",
        "此为上限：有未记录成员的通信可能在等待它们，这类等待不会消失。",
    ),
    (
        rf"This hardly changes the {_STEP}s?, although (\S+ \S+) of work are (taken away|added) in {_A_STEP}, summed over "
        r"ranks: other work takes as long at the same time\.",
        r"这几乎不改变步时间，尽管每步{2}了各 rank 合计 \1 的工作：同时进行的其他工作耗时同样长。",
    ),
    (r"taken away", "去除"),
    (r"added", "增加"),
    (
        r"Nothing changes: what was named takes hardly longer than usual, or no time at all\.",
        "没有变化：所指定的工作几乎不比通常耗时更长，或根本不耗时。",
    ),
    (
        rf"Without changes, the replay is within (\S+) of the recording\. Here, {_A_STEP} lasts from (its first work|the "
        r"end of the one before) to the end of its last work( on any rank)?\.",
        r"不作更改时，重放与记录相差不超过 \1。此处每步从{2}到任意 rank 上最后一项工作结束。",
    ),
    (r"its first work", "第一项工作开始"),
    (r"the end of the one before", "上一步结束"),
    (
        rf"This is the {_STEP} of the whole job, (\S+ \S+) on average; a rank's own, as «`stepscope analyze`» shows it, takes "
        r"(\S+ \S+), since ranks neither begin nor end at once\.",
        r"这是整个作业的步，平均 \1；«`stepscope analyze`» 显示的单个 rank 的步耗时 \2，因为各 rank 并不同时开始和结束。",
    ),
    (
        rf"Careful: without changes, the replay takes (\S+) (longer|less) than the recording(?: on average| in the worst "
        rf"{_STEP})?\. .+",
        r"注意：不作更改时，重放比记录{2} \1。时钟可能不一致，或缺少未记录的依赖，因此这些时间并不确定。",
    ),
    (r"longer", "多"),
    (r"less", "少"),
    # where figures come from
    (
        r"Without `wait`: calls that match no recorded call of another rank, .+",
        "没有“等待”的是与其他 rank 的记录都不匹配的通信，时间线无法说明其等待多久。profile 标明的数值见 "
        "«`stepscope communication`»（按 rank 和算子）。",
    ),
    (
        r"(Exposed communication|Communication|Computing|Waiting) of ranks? (\S+) differs?(?:, of rank (?:\d+))?: "
        rf"(\S+ \S+) in {_A_STEP} as the profile states it, (\S+ \S+) in the timeline\. (.+)",
        r"rank \2 的{1}不一致：profile 标明每步 \3，时间线为 \4。{5}",
    ),
    (
        r"Believe the profile: it has (\S+) calls a step, the timeline (\S+)\.",
        r"请以 profile 为准：它有每步 \1 次通信，时间线有 \2 次。",
    ),
    (
        r"Believe the timeline: it has (\S+) calls a step, the profile (\S+)\.",
        r"请以时间线为准：它有每步 \1 次通信，profile 有 \2 次。",
    ),
    (r"Believe the profile: the timeline may lack work\.", "请以 profile 为准：时间线可能缺少任务。"),
    (
        r"Believe the timeline: it shows when each piece began and ended\.",
        "请以时间线为准：它记录了每一段的开始和结束。",
    ),
    (
        rf"The mean of ranks? (\S+) leaves out {_STEP} (\S+), which was recorded only in part\.",
        r"rank \1 的平均值不含第 \2 步：它只记录了一部分。",
    ),
    (
        rf"The mean of ranks? (\S+) leaves out {_STEP} (\S+), which is far longer than the others\.",
        r"rank \1 的平均值不含第 \2 步：它远长于其他步。",
    ),
    (
        rf"The mean of ranks? (\S+) leaves out {_STEP} (\S+), which is the first that was recorded, so that its interval is unknown\.",
        r"rank \1 的平均值不含第 \2 步：它是记录的第一步，因此其迭代间隙未知。",
    ),
    (
        r"Much receiving alone: the rank waits for another stage\. .+",
        "“仅接收”多：该 rank 在等待其他阶段。“仅集合通信”多：其阶段划分不佳。阶段时间长：该阶段慢，其中计算最久的 rank 是原因。",
    ),
    (
        r"The profile states averages of more \w+ than its files hold; they are shown as well\.",
        "profile 标明的平均值涵盖的步多于文件中的步；这些平均值也一并显示。",
    ),
    (
        r"`off` is the distance from the mean, of communication .+",
        "“偏差”是与平均值的距离（通信为其占计算与通信之和的比例）；上限沿用 MindSpore Insight，适用于任何框架的作业。"
        "解决后可节省多少、谁在拖慢其他 rank，由作业重放得出：«`stepscope analyze`»。",
    ),
    (
        r"((?:framework|execution mode|ranks of the job|parallelism|kind of device)(?: \S+)?): (\S+) and (\S+)",
        r"{1}：\2 与 \3",
    ),
    (r"ranks of the job", "作业的 rank 数"),
    (r"execution mode", "执行模式"),
    (r"kind of device", "设备种类"),
    # pipelines
    (
        r"(\d+) stages, (\d+) micro-batch(?:es)? a \w+(?: \(by (.+?)\))?(?:, (\d+) model chunks a rank)?: ranks wait (\S+) of (?:a|an|the) "
        r"\w+ for other stages\. Even stages that do nothing else would wait (\S+)\.",
        r"\1 个阶段，每步 \2 个 micro-batch：各 rank 每步有 \5 在等待其他阶段；各阶段均衡且没有其他工作时为 \6。",
    ),
    (
        r"(\d+) stages, (\d+) micro-batch(?:es)? a \w+(?: \(by (.+?)\))?(?:, (\d+) model chunks a rank)?: ranks wait (\S+) of (?:a|an|the) "
        r"\w+ for other stages\.",
        r"\1 个阶段，每步 \2 个 micro-batch：各 rank 每步有 \5 在等待其他阶段。",
    ),
    (
        r"(\d+) stages(?:, at most (\d+) micro-batches a \w+)?: ranks wait (\S+) of (?:a|an|the) \w+ for other stages\.",
        r"\1 个阶段：各 rank 每步有 \3 在等待其他阶段。",
    ),
    (r"(\d+) stages\.", r"\1 个阶段。"),
    (
        r"How many micro-batches a \w+ has is unknown.*, and so is how long stages have to wait at best\.",
        "每步的 micro-batch 数未知，因此各阶段最少需要等待多久也未知。",
    ),
    (
        r"That is less than even stages have to wait where a backward pass is one piece: .+",
        "这少于反向为一整段时均衡阶段必需的等待：调度方式将其拆分（zero bubble）或另有不同。",
    ),
    (
        r"Stages are uneven: stage (\S+) works (\S+) times as long as the mean stage\.",
        r"各阶段不均衡：阶段 \1 的工作时间为平均阶段的 \2 倍。",
    ),
    (
        r"Waiting is counted where a rank of another stage enters a call later and the rank computes nothing\.",
        "其他阶段的 rank 更晚进入通信且本 rank 没有计算时，计为等待。",
    ),
    (
        r"Waiting is the time in receives, with transmission: some sends and receives have no pair\.",
        "等待为接收的时间（含传输）：部分发送和接收没有配对。",
    ),
    (
        r"Waiting is as the source states it: all time in receives, with transmission\.",
        "等待为数据源所标明：全部接收时间（含传输）。",
    ),
    (
        r"How waiting is known differs between ranks and steps: see «--table pipeline_bubbles»\.",
        "各 rank 和各步的等待由不同方式得知。",
    ),
    (
        r"(\d+) calls send and receive at once: how many transfers these are is unknown\.",
        r"\1 次调用同时发送和接收：其中的传输次数未知。",
    ),
    (
        r"Which stage a rank is was not recorded: it is guessed from who sends to whom\.",
        "没有记录 rank 所在的阶段：根据谁向谁发送推测。",
    ),
    (r"Of stages without a figure, neither calls nor waiting were recorded\.", "没有数值的阶段没有记录通信和等待。"),
    (r"Not all ranks were recorded of stages? (.+)\.", r"阶段 \1 的 rank 没有全部记录。"),
    (
        r"(\d+) first \w+ of ranks are left out, here and in means of transfers: .+",
        r"不计入 \1 个 rank 的首步（传输的平均值也不计）：处于启动阶段或没有完整测量。",
    ),
    (r"No pipeline stages are known: stage 0 stands for all ranks\.", "没有已知的流水线阶段：阶段 0 代表所有 rank。"),
    # recordings of operations
    (r"Nothing is uneven\.", "没有不均衡。"),
    (r"Main cause: no single one\.", "主要原因：没有单一原因。"),
    (r"Main cause: (.+?) \((\S+) of what is lost(?:, \w+ (.+?))?\)\.", r"主要原因：{1}（占损失的 \2，\3）。"),
    (r"slow ranks", "慢 rank"),
    (r"slow data-parallel ranks", "慢数据并行 rank"),
    (
        r"Savings are against the ideal times of the other ranks\. .+",
        "节省以其他 rank 的理想时间为准。下面的 S 按已发表的方法以所有 rank 的平均为准，因此损失更小。",
    ),
    (
        r"Forward and backward times of micro-batches correlate by (\S+); near 1, their lengths differ\.",
        r"micro-batch 前向与反向时间的相关系数为 \1；接近 1 表示各 micro-batch 长度不同。",
    ),
    (
        r"S = (\S+): the mean \w+ takes (\S+ \S+) without delays between operations, and (\S+ \S+) if all operations are ideal\.",
        r"S = \1：不含操作之间延迟的平均步为 \2，所有操作都理想时为 \3。",
    ),
    (r"Recorded are (\S+ \S+), (\S+) more: delays between operations\.", r"记录为 \1，多 \2：操作之间的延迟。"),
    (
        r"(M_W|M_S) = (\S+): the share of the slowdown that is gone with ideal times of (the slowest ranks|the last stage) \((.+)\)\.",
        r"\1 = \2：{3}（\4）为理想时间时，变慢中消失的比例。",
    ),
    (r"the slowest ranks", "最慢的 rank"),
    (r"the last stage", "最后一个阶段"),
    (
        r"(\d+) calls have members that were not recorded: their times include waiting for these\.",
        r"\1 次调用有成员未被记录：其时间包含等待这些成员。",
    ),
    (
        r"Careful: recorded are (\S+ \S+), (\S+)\. .+",
        r"注意：记录为 \1（\2）。操作被延迟，或其等待对象未被记录；这些数值并不确定。",
    ),
    (
        r"Careful: a replay with the recorded delays is (\S+) off, .+",
        r"注意：带记录延迟的重放误差为 \1，操作之间的关系与这里的假设不符。",
    ),
    # work, memory, input
    (
        r"No gaps: on every rank, work begins as soon as the work before it has ended\.",
        "没有空闲段：每个 rank 上的任务都在前一个结束后立即开始。",
    ),
    (r"No gap is between the same work .+\.", "没有反复出现在相同任务之间的空闲段。"),
    (r"Of (\d+) of (\d+) copies and fills the size is not recorded\.", r"\2 次拷贝和填充中有 \1 次没有记录大小。"),
    (r"([\w./]+) of ranks? ([\d,-]+)", r"rank \2 的 \1"),
    (
        r"No sign of a leak, fragmentation or memory pressure in what was recorded\.",
        "记录中没有泄漏、碎片或内存压力的迹象。",
    ),
    (r"No call and no delay is beyond the limits\.", "没有超过上限的下发和延迟。"),
    (
        r"(\d+) of (\d+) counters are always 0 and left out here; «--json» has them\.",
        r"\2 个计数器中有 \1 个始终为 0，此处未列出。",
    ),
    (r"FLOPs are unknown for (\S+) of the counted calls\.", r"\1 的调用浮点运算量未知。"),
    (
        r"The peak of this device is unknown; give it with «--peak-tflops» to see the share\.",
        "该设备的峰值未知；用 «--peak-tflops» 给出后可显示占比。",
    ),
    (
        r"Bandwidth is of all ranks of a group, and all groups are listed, also those without the chosen ranks\.",
        "带宽以通信组的所有 rank 计，列出所有通信组。",
    ),
    (r"Phases are unknown: what ran in the \w+ was not recorded\.", "各阶段未知：没有记录各步中执行的内容。"),
    (r"(Forward starts|Backward ends): unknown\.", r"{1}：未知。"),
    (
        r"(Forward starts|Backward ends)(?: at (.+?),)? (as stated in the profile|as requested|as the environment variable says|derived from what ran in which phase)\.",
        r"{1}：\2（{3}）。",
    ),
    (r"Forward starts", "前向起点"),
    (r"Backward ends", "反向终点"),
    (r"as stated in the profile", "profile 标明"),
    (r"as requested", "按指定"),
    (r"as the environment variable says", "由环境变量指定"),
    (r"derived from what ran in which phase", "根据各阶段执行的内容推得"),
)
