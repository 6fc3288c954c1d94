"""The words of `environment`."""

from __future__ import annotations

from stepscope.advice.messages import Message, Text

COMPUTED = Text(
    "Each recorded variable is compared with the values that are known to cost time; settings against idle time, "
    "dynamic shapes, exposed communication or fragmented memory are only advised where the recording shows these. "
    "What a setting costs is not recorded, so no saving is claimed.",
    "把记录中的每个变量与已知会耗费时间的取值对比；针对空闲、动态形状、未掩盖的通信或内存碎片的设置，"
    "只在记录显示存在这些问题时才建议。设置的代价没有记录，因此不给出节省。",
)

_SET = Text("{ranks:Ranks} {ranks:one runs|run} with `{setting}`.", "{ranks:ranks} 运行时设置了 `{setting}`。")
_SHOULD = Text(
    "{ranks:Ranks} {ranks:one runs|run} with[ `{setting}`][ {unset} not set].",
    "{ranks:ranks} 运行时[设置为 `{setting}`][未设置 {unset}]。",
)
_RUN = Text("Before the training command: `{line}`", "在训练命令之前执行：`{line}`")
_ALL = Text(", on all hosts.", "，所有主机都要设置。")


def _message(cause: Text, summary: Text = _SET, after: Text = _ALL) -> Message:
    return Message(summary=summary, cause=cause, action=_RUN + after)


OF_DEVICES = (
    *("blocking", "blocking_busy", "blocking_unseen", "log_level", "unneeded", "operator_cache", "shape_cache"),
    *("enhance", "allocator", "serialized", "library_log", "transport_off"),
)
"""Messages about variables that matter to jobs on accelerators only."""

MESSAGES = {
    "blocking": _message(
        Text(
            "With it the host waits for every operator to end before it gives the device the next one, so the "
            "device is idle in between[; the recording has {waits:number .1f} waits for the device per launch].",
            "设置后，主机要等每个算子结束才下发下一个，设备在其间空闲[；记录中每次下发有 {waits:number .1f} "
            "次等待设备]。",
        ),
        after=Text("; set it only to find an error.", "；只在定位错误时设置。"),
    ),
    "blocking_busy": _message(
        Text(
            "With it the host waits for every operator to end before it gives the device the next one[; the recording "
            "has {waits:number .1f} waits for the device per launch]. The device of the median rank is hardly idle, "
            "though.",
            "设置后，主机要等每个算子结束才下发下一个[；记录中每次下发有 {waits:number .1f} 次等待设备]。"
            "但中位 rank 的设备几乎没有空闲。",
        ),
        after=Text("; set it only to find an error.", "；只在定位错误时设置。"),
    ),
    "blocking_unseen": _message(
        Text(
            "It is meant for debugging: the host waits for every operator. The recording does not show such waits"
            "[ ({waits:number .1f} per launch)], so they may not be recorded, or the variable came too late.",
            "它用于调试：主机要等待每个算子。记录中没有这样的等待[（每次下发 {waits:number .1f} 次）]，"
            "可能没有记录到，或者变量设置得太晚。",
        ),
        after=Text("; set it only to find an error.", "；只在定位错误时设置。"),
    ),
    "log_level": _message(
        Text(
            "The runtime then writes debug or info messages for every call, which costs time on the host.",
            "此时运行时为每次调用写调试或信息日志，耗费主机时间。",
        )
    ),
    "unneeded": _message(
        Text(
            "It overrides what the communication library chooses by itself, and rarely needs to be set; a wrong value "
            "slows communication down or causes retransmissions.",
            "它覆盖通信库自动选择的值，通常无需设置；错误的值会使通信变慢或引起重传。",
        ),
        after=Text(
            ", unless your network needs this value; compare the speed with and without it.",
            "，除非网络需要该值；对比设置前后的速度。",
        ),
    ),
    "operator_cache": _message(
        Text(
            "The device is idle for {idle_ratio:percent} of {per:time}. A larger cache of operators spares the host "
            "preparing them again, if that is what takes its time.",
            "设备在{per:time}中有 {idle_ratio:percent} 空闲。如果主机的时间花在重复准备算子上，"
            "更大的算子缓存可以避免。",
        ),
        _SHOULD,
    ),
    "shape_cache": _message(
        Text(
            "{dynamic:count operator has|operators have} dynamic shapes; a cache spares the host preparing shapes that "
            "return.",
            "{dynamic} 个算子有动态形状；缓存可避免主机重复准备再次出现的形状。",
        ),
        _SHOULD,
    ),
    "enhance": _message(
        Text(
            "Communication takes {exposed_ratio:percent} of {per:time} with nothing to hide it. With 1, its tasks are "
            "scheduled by the device instead of one by one (FFTS+).",
            "通信占{per:time}的 {exposed_ratio:percent} 且没有被掩盖。设为 1 时，其任务由设备批量调度（`FFTS+`），"
            "而不是逐个下发。",
        ),
        _SHOULD,
    ),
    "allocator": _message(
        Text(
            "Memory is fragmented, or allocating and freeing it on the device takes long. Segments that can grow spare "
            "this.",
            "内存有碎片，或设备内存的申请和释放耗时长。可扩展的内存段能避免这些。",
        ),
        _SHOULD,
    ),
    "serialized": _message(
        Text(
            "With it each kernel waits for the one before, or the host for each kernel; it is meant for debugging.",
            "设置后每个 kernel 都要等待前一个，或主机等待每个 kernel；它用于调试。",
        )
    ),
    "library_log": _message(
        Text(
            "The communication library then writes a line for many calls, which costs time on the host and fills the "
            "logs.",
            "此时通信库为许多调用写日志，耗费主机时间并占满日志。",
        )
    ),
    "transport_off": _message(
        Text(
            "It turns a fast path of the communication library off, so calls take a slower one.",
            "它关闭了通信库的一条快速通路，通信只能走较慢的通路。",
        ),
        after=Text(
            ", unless it avoids an error; compare the rates of communication before and after.",
            "，除非用它规避错误；对比前后的通信速率。",
        ),
    ),
    "checks": _message(
        Text(
            "It lets all ranks compare shapes and order before every collective call, which is meant for debugging.",
            "它让所有进程在每次集合通信前核对形状和顺序，只用于调试。",
        )
    ),
    "one_thread": _message(
        Text(
            "Operators on the processors then use a single thread; some tools that start the processes set this.",
            "此时处理器上的算子只用一个线程；有些启动进程的工具会这样设置。",
        ),
        after=Text(
            ", or export the number of cores divided by the processes of a host.", "，或设为核数除以每台主机的进程数。"
        ),
    ),
    "differs": Message(
        summary=Text(
            "{variable} differs between ranks: {values:list}; {ranks:ranks} {ranks:one has|have} the rarest value.",
            "{variable} 在各 rank 之间不同：{values:list}；{ranks:ranks} 的值最少见。",
        ),
        cause=Text(
            "The processes were started with different settings, so they may not run at the same speed.",
            "进程以不同的设置启动，速度可能不同。",
        ),
        action=Text("Set {variable} alike on all hosts.", "在所有主机上把 {variable} 设为相同。"),
    ),
}
