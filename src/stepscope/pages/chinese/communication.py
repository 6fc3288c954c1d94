"""Chinese meanings of columns about calls between ranks and links, by the English ones."""

from __future__ import annotations

MEANINGS = {
    "All-reduce calls.": "all-reduce 调用次数。",
    "Communication backend, e.g. `nccl`, `gloo`; null if not recorded.": "通信后端，如 `nccl`、`gloo`；未记录则为空。",
    "Communication calls on devices.": "设备上的通信调用次数。",
    "Communication calls on the host.": "主机上的通信调用次数。",
    "Forward passes after which gradients are summed before the next one.": "下一次前向之前对梯度求和的前向次数。",
    "Forward passes of the wrapper.": "包装模块的前向次数。",
    "Gradients copied out of buckets, which `gradient_as_bucket_view` avoids.": (
        "从分桶中拷出的梯度，`gradient_as_bucket_view` 可避免。"
    ),
    "Mean size of these; null if not recorded.": "其平均大小；未记录则为空。",
    "Steps of the optimizer; of several, of the one with most.": "优化器更新次数；有多个优化器时取最多者。",
    "Time of the host for these copies.": "主机用于这些拷贝的时间。",
    "Time of the latter, one after the other.": "后者依次相加的时间。",
    "What keeps the copies of the model alike; null if none is marked.": "使模型各副本保持一致的方式；没有标记则为空。",
    "All-gathers in steps.": "步内的 all-gather 次数。",
    "Mean size of what all ranks together give; null if not recorded.": "所有 rank 提供数据总和的平均大小；未记录则为空。",
    "Module whose parameters are gathered; null if not recorded (all modules together).": (
        "被收集参数的模块；未记录则为空（所有模块合计）。"
    ),
    "Of these, launched for a later module (prefetched).": "其中为后续模块提前下发（预取）的次数。",
    "Pass in which they are needed.": "需要这些参数的阶段：前向或反向。",
    "Searches for unused parameters, which `find_unused_parameters` asks for.": (
        "`find_unused_parameters` 要求的未使用参数查找次数。"
    ),
    "Time of the host for these searches.": "主机用于这些查找的时间。",
    "Time that no computing covers of calls whose waiting is unknown.": "等待时间未知的调用中未被计算掩盖的时间。",
    "Transmission that no computing covers; unknown calls count nothing.": "未被计算掩盖的传输时间；未知的调用不计。",
    "Transmission, covered by computing or not; unknown calls count nothing.": (
        "传输时间，无论是否被计算掩盖；未知的调用不计。"
    ),
    "`transmit_ns` of calls that are neither prefetched nor the first of their pass in a step.": (
        "既未预取、也不是该步该阶段第一次的调用的 `transmit_ns`。"
    ),
    "A rank's payload, as recorded, over the median of all ranks' transmissions; algorithm bandwidth is in "
    "`bus_bandwidth`.": "一个 rank 的载荷（按记录）除以所有 rank 传输时间的中位数；算法带宽见 `bus_bandwidth`。",
    "Algorithm bandwidth times the factor of the operation: what each link carries.": (
        "算法带宽乘以该操作的系数：每条链路实际承载的速率。"
    ),
    "Bandwidth of typical links for the same data; of two links, that of the other.": (
        "相同数据在典型链路上的带宽；只有两条链路时为另一条的带宽。"
    ),
    "Bandwidth over the mean of all links of its transport between different ranks; null inside a rank.": (
        "带宽与同类型、不同 rank 之间所有链路平均值之比；rank 内部为空。"
    ),
    "Bandwidth over the typical one.": "带宽与典型带宽之比。",
    "Bus bandwidth of the shortest call.": "最短一次调用的总线带宽。",
    "Bytes divided by time, in the slower direction.": "较慢方向上的字节数除以时间。",
    "Bytes moved in a slow step.": "一个慢步中传输的字节数。",
    "Bytes moved in a step.": "一步中传输的字节数。",
    "Bytes over time.": "字节数除以时间。",
    "Bytes over time; null if either is 0.": "字节数除以时间；任一为 0 则为空。",
    "Bytes that all of them move in a step.": "它们一步中共传输的字节数。",
    "Calls of which it is unknown how long they wait.": "等待时间未知的调用。",
    "Calls that all of these ranks were seen in.": "这些 rank 全都出现的调用。",
    "Duration less `wait_ns`; null if unknown.": "耗时减去 `wait_ns`；未知则为空。",
    "Extra time of its transfers in a step compared with typical links: an upper bound.": (
        "每步中其传输比典型链路多用的时间：上界。"
    ),
    "Extra transmission time in the mean step: an upper bound.": "平均每步多用的传输时间：上界。",
    "Highest bandwidth of a link.": "单条链路的最高带宽。",
    "How long after the first rank the last one entered; null if not matched.": (
        "最后一个 rank 比第一个晚进入多久；未匹配则为空。"
    ),
    "Its share of what the job would save per step if slow groups and ranks were typical, by replay; null if unknown.": (
        "若慢通信组和慢 rank 恢复正常，作业每步可节省的时间中它的份额（由重放得出）；未知则为空。"
    ),
    "Its share of what the job would save per step if slow links and ranks were typical, by replay; null if unknown.": (
        "若慢链路和慢 rank 恢复正常，作业每步可节省的时间中它的份额（由重放得出）；未知则为空。"
    ),
    "Kind of link, e.g. `HCCS`, `RDMA`, `SDMA`; `LOCAL` inside a rank.": (
        "链路类型，例如 `HCCS`、`RDMA`、`SDMA`；rank 内部为 `LOCAL`。"
    ),
    "Kind of link, e.g. `HCCS`, `RDMA`.": "链路类型，例如 `HCCS`、`RDMA`。",
    "Kind of link; null if not recorded.": "链路类型；未记录则为空。",
    "Lowest bandwidth of a link.": "单条链路的最低带宽。",
    "Mean number of these calls in a slow step.": "慢步中这些调用的平均次数。",
    "Mean of the links' bandwidths.": "各链路带宽的平均。",
    "Median time from the first to the last arrival.": "从第一个到最后一个到达的时间的中位数。",
    "Median time from the first to the last end.": "从第一个到最后一个结束的时间的中位数。",
    "Median transmission: from the last arrival to the first end; null for operations that ranks may leave before all "
    "have entered.": "传输时间的中位数：从最后一个到达到第一个结束；对于无需等所有 rank 进入即可离开的操作为空。",
    "Name of the call.": "调用的名称。",
    "Number of calls in a step; null if only totals were recorded.": "每步的调用次数；只记录了总计则为空。",
    "Number of links between different ranks.": "不同 rank 之间的链路数。",
    "Number of links that this explains.": "由此解释的链路数。",
    "Number of ranks with such calls.": "有此类调用的 rank 数。",
    "One end of the link, or the rank of the interface; null for hosts and several links.": (
        "链路的一端，或网卡所属的 rank；对主机和多条链路为空。"
    ),
    "Operation of the call, e.g. `all_reduce`.": "调用的操作，例如 `all_reduce`。",
    "Operations of the slow calls, e.g. `all_reduce`.": "慢调用的操作，例如 `all_reduce`。",
    "Part of `total_ns` that counts more than once, as an earlier call of the rank runs meanwhile; null if stated.": (
        "`total_ns` 中被重复计入的部分，因为该 rank 更早的调用同时在进行；由数据源标明时为空。"
    ),
    "Part of it spent waiting for the other side; null if not recorded separately.": "其中等待对方的部分；未单独记录则为空。",
    "Payload of one call; null if not recorded.": "一次调用的载荷；未记录则为空。",
    "Rank of the longest; of several, the lowest.": "最长者所在的 rank；有多个时取最小编号。",
    "Rank of the shortest; of several, the lowest.": "最短者所在的 rank；有多个时取最小编号。",
    "Rank that entered it first; null if not matched.": "最先进入的 rank；未匹配则为空。",
    "Rank that entered the call last; null if not matched.": "最后进入的 rank；未匹配则为空。",
    "Rank that receives.": "接收的 rank。",
    "Rank that sends.": "发送的 rank。",
    "Rank with most of it exposed; of several, the lowest.": "未掩盖部分最多的 rank；有多个时取最小编号。",
    "Ranks in the group; null if unknown.": "通信组中的 rank 数；未知则为空。",
    "Ranks of the links, interface or host, e.g. `0, 1`.": "链路、网卡或主机所属的 rank，例如 `0, 1`。",
    "Recorded members, or the two ranks of its slow transfers, e.g. `0, 1`.": (
        "已记录的成员，或其慢传输的两个 rank，例如 `0, 1`。"
    ),
    "Share of it that no computing hides.": "其中未被计算掩盖的比例。",
    "Shortest transmission; null as `transmit_ns`.": "最短的传输时间；何时为空同 `transmit_ns`。",
    "Size of the whole buffer that is reduced, gathered or scattered; null if not recorded.": (
        "被归约、聚集或分发的整个缓冲区大小；未记录则为空。"
    ),
    "The host, or both; null for links and interfaces.": "主机，或两台主机；对链路和网卡为空。",
    "The other end of the link; null if there are several.": "链路的另一端；有多个则为空。",
    "The rank that sends, if only what it sends to the other is slow; else null.": (
        "若只有它发往对方的方向慢，则为发送的 rank；否则为空。"
    ),
    "The same if each took one tick of the clock longer.": "若每次都多用一个时钟单位时的值。",
    "Tick of the clock: 1, or 1000 if all times are whole microseconds.": (
        "时钟单位：1；若所有时间都是整微秒则为 1000。"
    ),
    "Time in its calls: waiting, transmission and what is not split.": "其调用的时间：等待、传输以及未拆分的部分。",
    "Time in which calls of the kind run, mean of these ranks.": "此类调用进行的时间（这些 rank 的平均）。",
    "Time of all of them in a step, one after the other.": "每步中全部调用依次相加的时间。",
    "Time on the link in a step.": "每步中占用链路的时间。",
    "Total transmission time over ranks; null if unknown.": "各 rank 传输时间之和；未知则为空。",
    "Total waiting time over ranks; null if unknown.": "各 rank 等待时间之和；未知则为空。",
    "Transmission time of the slow calls in a slow step.": "慢步中慢调用的传输时间。",
    "Waiting for other ranks; null if unknown of all calls.": "等待其他 rank 的时间；所有调用都未知则为空。",
    "Waiting for the last rank to enter; null if unknown.": "等待最后一个 rank 进入的时间；未知则为空。",
    "What is slow: the `link` between two ranks, the `nic` (all links of a rank), the `host` (those of all its ranks), "
    "all links between two `hosts`, or several `links` that form no such unit.": (
        "慢的是什么：两个 rank 之间的链路（`link`）、网卡（`nic`：一个 rank 的所有链路）、主机（`host`：其所有 rank "
        "的链路）、两台主机之间的所有链路（`hosts`），或不构成上述单元的若干链路（`links`）。"
    ),
    "What the groups are for; sends and receives outside of such groups count as `pipeline`.": (
        "通信组的用途；不属于这些组的发送和接收计为 `pipeline`。"
    ),
    "Why it took so long: `transmission` took most of it; or, as most of it was waiting, what the last rank did longer "
    "than the first one since the group's call before: `computing`, `other calls` of communication, or nothing, as its "
    "host launched the call late (`late launch`) or for another reason (`idle`).": (
        "为何这么长：主要是传输（`transmission`）；若主要是等待，则为自该组上一次调用以来最后一个 rank 比第一个多做的事："
        "计算（`computing`）、其他通信（`other calls`），或什么都没做：主机下发过晚（`late launch`）或其他原因（`idle`）。"
    ),
    "`size_bytes` over `transmit_ns`; null as either.": "`size_bytes` 除以 `transmit_ns`；任一为空则为空。",
    "`stated` by the source, or from the calls' `timeline`.": "由数据源标明（`stated`），或来自调用的时间线（`timeline`）。",
    "`transmit_ns` over `typical_ns`.": "`transmit_ns` 与 `typical_ns` 之比。",
    "`wait_ns` over `wait_ns + transmit_ns`.": "`wait_ns` 与 `wait_ns + transmit_ns` 之比。",
}
