"""The Chinese of problems that were met while reading, and of their remedies, by their English forms; see `sentences`.

Those of damage that few files have stay English.
"""

from __future__ import annotations

FORMS: tuple[tuple[str, str], ...] = (
    # runs and ranks
    (
        r"(\d+) of the job's (\d+) ranks (?:is|are) here; ranks? (\S+) (?:is|are) missing",
        r"作业的 \2 个 rank 中只有 \1 个在此；缺少 rank \3",
    ),
    (r"(\d+) of the job's (\d+) ranks (?:is|are) here.*", r"作业的 \2 个 rank 中只有 \1 个在此"),
    (r"Open the recordings of all ranks together to compare them", "请一起打开所有 rank 的记录以便比较"),
    (r"holds files of the same ranks, which are a run of their own(.*)", r"含有相同 rank 的文件，它们是单独的运行"),
    (r"Choose that run with --run", "请用 --run 选择该运行"),
    (
        r"records the same rank and time as (.+), which is newer or more complete and was used",
        r"与 \1 记录了相同的 rank 和时间；后者更新或更完整，已采用",
    ),
    (
        r"two processes have written there at the same time; that with newer or more complete records was used",
        "两个进程同时写入该处；已采用较新或较完整的进程的记录",
    ),
    (
        r"If they are of two jobs, give one of these another MINDX_TASK_ID or STEPSCOPE_LIVE_DIR",
        "若属于两个作业，请为其中一个设置不同的 MINDX_TASK_ID 或 STEPSCOPE_LIVE_DIR",
    ),
    (r"Move one of the two elsewhere, or open each by itself", "请移走其中一个，或分别打开"),
    (r"states no rank; it is called (\d+) by the order of file names", r"没有标明 rank；按文件名顺序编为 \1"),
    (
        r"Record after torch\.distributed is initialised, or name the file like rank-0\.json",
        "请在 torch.distributed 初始化后记录，或将文件命名为 rank-0.json 的形式",
    ),
    (r"ranks? (\S+) contradict each other: (.+); they may be of two jobs", r"rank \1 相互矛盾（\2）；可能属于两个作业"),
    (
        r"Check whether their files belong to one job; what compares ranks may be wrong if not",
        "请检查这些文件是否属于同一作业；否则 rank 之间的比较可能有误",
    ),
    (
        r"Check which files belong to the job, and move those of the other job elsewhere",
        "请检查哪些文件属于该作业，并移走其他作业的文件",
    ),
    (
        r"the clock of ranks? (\S+) is (\S+ \S+) (ahead of|behind) that of ranks? (\S+?),? taken as one job because .+",
        r"rank \1 的时钟与 rank \4 相差 \2；因合起来是作业的所有 rank 而视为同一作业",
    ),
    (
        r"Synchronise the clocks of the hosts \(NTP, PTP\); open each part by itself if they are of two jobs",
        "请同步各主机的时钟（NTP、PTP）；若属于两个作业，请分别打开",
    ),
    (
        r"rank (\d+): its (?:step|steps|iterations?) takes? (\S+ \S+) on the host, but the recorded work on its device spans only (\S+ \S+) of "
        r"that; times and shares are of this span",
        r"rank \1：一步在主机上耗时 \2，但记录到的设备任务只持续 \3；时间和占比以后者为准",
    ),
    (
        r"Call the profiler's step\(\) where each step ends, and check that it recorded the device all the time",
        "请在每步结束处调用 profiler 的 step()，并检查是否始终记录了设备",
    ),
    # files that cannot be read
    (r"is JSON, but not in a trace format that stepscope reads", "是 JSON，但不是 stepscope 可读取的 trace 格式"),
    (
        r"Nothing to do if it is not a recording; otherwise pass the file that the profiler wrote",
        "若不是记录文件则无需处理；否则请给出 profiler 写出的文件",
    ),
    (r"has a JSON file name, but (.+)", r"文件名为 JSON，但{1}"),
    (r"its text is not valid JSON", "内容不是有效的 JSON"),
    (r"the file is empty", "文件为空"),
    (r"is empty", "为空"),
    (r"not JSON at byte (\d+)", r"第 \1 字节处不是 JSON"),
    (r"it has no list `traceEvents`(?:; (.+))?", "没有 `traceEvents` 列表"),
    (
        r"Give a trace that torch\.profiler or another writer of Chrome traces made\.?",
        "请给出由 torch.profiler 或其他工具写出的 Chrome trace",
    ),
    (r"the file ends inside the list of events; complete events are read", "文件在事件列表中途结束；已读取完整的事件"),
    (r"Let the profiler finish writing before the file is copied\.?", "请等 profiler 写完后再复制文件"),
    (r"the gzip data is truncated; events up to there are read", "gzip 数据被截断；已读取此前的事件"),
    (r"(.*gzip.*); events up to there are read", r"\1；已读取此前的事件"),
    (r"gzip that ends before any data", "gzip 文件中没有数据"),
    (r"damaged gzip at its start \((.+)\)", r"gzip 文件开头已损坏（\1）"),
    (r"(\d+) events? left out: (.+)", r"不计 \1 个事件：\2"),
    (r"the trace has no timed events", "trace 中没有带时间的事件"),
    (
        r"Record again: the active steps were not reached, or nothing ran during them\.?",
        "请重新记录：没有执行到活动的步，或期间没有任务",
    ),
    (r"cannot be read: Permission denied", "无法读取：没有权限"),
    (r"Permission denied", "没有权限"),
    (r"Is a directory", "是目录"),
    (r"No such file or directory", "没有该文件或目录"),
    (r"cannot be read: (.+)", r"无法读取：\1"),
    (r"Ask the owner for read permission", "请向所有者申请读取权限"),
    (r"Check the file and its disk", "请检查文件及其所在磁盘"),
    (r"Check the path and its permissions\.?", "请检查路径及其权限"),
    (r"is empty or not a readable database", "为空或不是可读取的数据库"),
    (r"none of its files holds readable data", "其文件中没有可读取的数据"),
    (
        r"Export the profile again; the analysis step of the profiler may not have finished",
        "请重新导出 profile；profiler 的分析步骤可能没有完成",
    ),
    (r"Copy it again; if it is truncated, export the profile again", "请重新复制；若被截断，请重新导出 profile"),
    (r"has a name that is not UTF-8", "文件名不是 UTF-8"),
    (r"Rename the file or its directory", "请重命名文件或其目录"),
    (r"needs more memory than is available", "需要的内存超过可用内存"),
    (
        r"Set STEPSCOPE_WORKERS=1 to read one input at a time, or use a machine with more memory",
        "请设置 STEPSCOPE_WORKERS=1 以逐个读取，或使用内存更大的机器",
    ),
    (r"holds both a text and a database export; the database is read", "同时含有文本和数据库导出；读取数据库"),
    (r"Nothing to do: both hold the same recording\.?", "无需处理：二者是同一记录"),
    # what is doubtful in traces
    (r"(\d+) device events? with a duration of 0", r"\1 个设备事件的时长为 0"),
    (r"(\d+) device events? overlapping the previous one on the stream", r"\1 个设备事件与同一流上的前一个重叠"),
    (
        r"They were shorter than the clock's tick, or the profiler lost their end\.?",
        "其时长短于时钟单位，或 profiler 丢失了结束时间",
    ),
    (
        r"Busy time is a union, so nothing is counted twice; single durations may be too long\.?",
        "忙时按并集计算，因此没有重复；单个时长可能偏长",
    ),
    (
        r"(\d+) of (\d+) launches have no device event: device work is missing in this recording",
        r"\2 次下发中有 \1 次没有设备事件：该记录缺少设备任务",
    ),
    (
        r"none of (\d+) launches has a device event: what the device did is not recorded",
        r"\1 次下发都没有设备事件：没有记录设备的任务",
    ),
    (
        r"Record fewer steps, after a warm-up \(schedule\(warmup=1\)\); sums of device time are too small\.?",
        "请在预热（schedule(warmup=1)）后记录较少的步；设备时间之和偏小",
    ),
    (
        r"Record device activities, and check permissions and that no other profiler holds CUPTI\.?",
        "请记录设备活动，并检查权限以及是否有其他 profiler 占用 CUPTI",
    ),
    (r"(.+) left out: more than a week from the middle of the recording", r"不计 \1：距记录中部超过一周"),
    (
        r"A clock was wrong or the file is damaged; the rest is complete\. Record again if you need them\.?",
        "时钟有误或文件损坏；其余完整。如果需要，请重新记录",
    ),
    (r"no work was recorded in (.+); they are left out when time is split", r"\1 中没有记录任务；拆分时间时不计入"),
    (
        r"Nothing to do if the profiler was stopped when a step had just begun",
        "若 profiler 在一步刚开始时停止，则无需处理",
    ),
    (r"(\d+) steps overlap the next one and are cut where it starts", r"\1 步与下一步重叠，在下一步开始处截断"),
    (
        r"Call the profiler's step\(\) once per step, from one thread\.?",
        "请在一个线程中每步调用一次 profiler 的 step()",
    ),
    (
        r"no compute kernels can be read, so what the device did is unknown",
        "没有可读取的计算 kernel，因此设备的任务未知",
    ),
    (
        r"no work of the device can be read, so where its steps begin and end is unknown",
        "没有可读取的设备任务，因此各步的起止未知",
    ),
    (r"Export the profile again, or copy its files again\.?", "请重新导出 profile，或重新复制其文件"),
    (r"(.+) as (\d+) ns, but the events add up to (\d+) ns", r"\1 为 \2 ns，但事件之和为 \3 ns"),
    (
        r"Nothing to do: the events are used\. The file may be truncated or cover other steps\.?",
        "无需处理：采用事件。该文件可能被截断或属于其他步",
    ),
    (r"holds no kernels", "没有 kernel"),
    (r"Nothing to do if nothing ran on the device\.?", "若设备上没有任务则无需处理"),
    (r"links of groups with unknown members are left out", "不计成员未知的通信组的链路"),
    (
        r"table (\w+) is missing; steps are taken from the host's ProfilerStep ranges",
        r"缺少表 \1；步取自主机的 ProfilerStep 区间",
    ),
    (r"table (\w+) is missing", r"缺少表 \1"),
    # MindSpore's files
    (
        r"its operators are left out: the list with their counts \(aicore_intermediate\) is missing",
        "不计其算子：缺少其次数列表（aicore_intermediate）",
    ),
    (r"Copy that file too, or run the profiler's analysis again\.?", "请一并复制该文件，或重新运行 profiler 的分析"),
    (
        r"its average row does not match the steps in the file, with or without the first; it is kept apart",
        "其平均行与文件中的步不符（不论是否含首步）；单独保留",
    ),
    (
        r"its communication calls start at other times than in the step trace, whose times are used",
        "其通信的开始时刻与步 trace 不同；采用步 trace 的时间",
    ),
    (r"links number ranks within (.+); converted to ranks of the job", "链路按组内编号；已转换为作业的 rank"),
    (
        r"gives a peak of (\d+) bytes, but the nodes of the graphs reach (\d+); both are kept",
        r"标明的峰值为 \1 字节，但图的节点达到 \2；二者都保留",
    ),
    (
        r"Use the peak of the nodes if all graphs are there, otherwise the given one\.?",
        "若所有图都在，请以节点的峰值为准，否则以标明的为准",
    ),
    (
        r"(\d+) of (\d+) operators are not in the device's list and are left out",
        r"\2 个算子中有 \1 个不在设备的列表中，不计入",
    ),
    (r"Check that all files belong to one profile\.?", "请检查所有文件是否属于同一个 profile"),
    (
        r"the (?:share|rate) of (\d+) of (\d+) (?:rows|operators) does not match their .+",
        r"\2 项中有 \1 项的标明值与其时间或运算量不符",
    ),
    (
        r"does not give the unit of its operations; they are read as millions, as in later files",
        "没有给出运算量的单位；按百万读取（与后来的文件相同）",
    ),
    (
        r"total_time has no unit; it is read as (\w+), which fits the length of the steps",
        r"total_time 没有单位；按 \1 读取，与步的时长相符",
    ),
    (
        r"its times are read as (\w+) to match its bandwidths; its version writes (\w+)",
        r"时间按 \1 读取以符合其带宽；其版本写出的单位为 \2",
    ),
    (
        r"Keep profiler_info with the file: it has the version that wrote it",
        "请将 profiler_info 与该文件一起保留：其中有写出该文件的版本",
    ),
    (r"lists other operators than (.+), which is used", r"列出的算子与 \1 不同；采用后者"),
    (r"One of them belongs to another run: remove it\.?", "其中之一属于另一次运行：请移除"),
    (r"(\d+) starts? ha(?:s|ve) no end and no duration", r"\1 个开始没有结束和时长"),
    (
        r"Nothing to do if recording began or ended meanwhile; otherwise copy the file again\.?",
        "若记录恰在此时开始或结束则无需处理；否则请重新复制文件",
    ),
    (
        r"values of the host are written twice or followed by a zero, and some lists end early; the first of each pair is used",
        "主机的数值被写了两次或后跟 0，且部分列表提前结束；采用每对中的第一个",
    ),
    (r"Nothing to do: missing values are unknown\.?", "无需处理：缺失的值视为未知"),
    (r"Nothing to do: steps are taken from the step trace\.?", "无需处理：步取自步 trace"),
    (r"Nothing to do unless (?:rows|steps) are missing from the file\.?", "除非文件缺少行，否则无需处理"),
    (r"Nothing to do if both belong to one profile\.?", "若二者属于同一个 profile 则无需处理"),
    (r"Nothing to do\.?", "无需处理"),
    (r"Copy the file again\.?", "请重新复制文件"),
    (r"Copy the file again, or run the profiler's analysis again\.?", "请重新复制文件，或重新运行 profiler 的分析"),
    (r"Copy or record the file again\.?", "请重新复制或记录该文件"),
    (r"Copy the recording again", "请重新复制记录"),
    (r"Record again", "请重新记录"),
    (r"Record again, or copy the file again if it is truncated", "请重新记录；若文件被截断，请重新复制"),
    (r"Copy the file again from the machine that recorded it", "请从记录的机器上重新复制文件"),
    (r"The rest is complete\. Record again if they matter\.?", "其余完整。如果需要，请重新记录"),
    (r"Run the profiler's analysis (?:of this rank )?again", "请重新运行 profiler 的分析"),
    (r"(.+); everything else is read\.?", r"{1}；其余均已读取"),
    # light records
    (
        r"backward passes and optimizers are not marked by light tracing: their time shows as idle",
        "轻量打点不标记反向和优化器：其时间显示为空闲",
    ),
    (r"For a whole picture of some steps: (.+)", r"如需若干步的完整数据：\1"),
    (
        r"steps, forward passes and calls have the times of the device, batches and checkpoints of the host",
        "步、前向和通信采用设备时间，批次和 checkpoint 采用主机时间",
    ),
    (
        r"(\d+) calls? left out: their step is not recorded, or only in part",
        r"略去 \1 次通信：其所在步没有记录，或只记录了一部分",
    ),
    (r"Nothing to do: they cannot be matched with those of other ranks", "无需处理：它们无法与其他 rank 的通信对应"),
    (r"(\d+) ranges? without a recorded (?:start|end) left out", r"略去 \1 个没有记录开始或结束的区间"),
    (r"Nothing to do: the process ended, or the job still runs", "无需处理：进程已结束，或作业仍在运行"),
    (r"Nothing to do if older files were deleted by ageing", "若较旧的文件已因老化被删除则无需处理"),
    (r"(\d+) lines? damaged, cut off or too long, and left out", r"\1 行已损坏、被截断或过长，已略去"),
    (r"(\d+) records? of other kinds or names left out", r"略去 \1 条其他种类或名称的记录"),
    (
        r"Nothing to do: they are a user's own marks, or of a newer version",
        "无需处理：它们是用户自己的打点，或来自更新的版本",
    ),
    (r"no step was recorded, so ranges are not divided into steps", "没有记录步，因此区间未按步划分"),
    (r"Switch steps on: (.+)", r"请打开步开关：\1"),
    # warnings
    (r"the rule (\S+) \((.+)\) failed, so findings are missing: (.+)", r"规则 \1（\2）失败，因此缺少问题：\3"),
    (r"the figure (\S+) failed, so it is missing: (.+)", r"图 \1 失败，因此缺少：\2"),
)
