"""What fields of pages are called."""

from __future__ import annotations

from stepscope.texts import Text

ALL, DEFAULT = Text("all", "全部"), Text("default", "默认")
"""What a field says that chooses nothing."""

LABELS = {
    "at_ns": Text("At (ns)", "时刻（ns）"),
    "backward_end": Text("Backward ends at", "反向结束于"),
    "bandwidth": Text("Faster communication", "更快的通信"),
    "base_ranks": Text("Ranks of the base", "基准的 rank"),
    "base_steps": Text("Steps of the base", "基准的步"),
    "below_us": Text("Short below (us)", "短于（us）"),
    "by": Text("By", "按"),
    "by_rank": Text("Each rank", "每个 rank"),
    "by_step": Text("Each step", "每一步"),
    "destination": Text("To ranks", "目的 rank"),
    "forward_start": Text("Forward starts at", "前向开始于"),
    "graph": Text("Graph", "图"),
    "group": Text("Group", "通信组"),
    "host": Text("Host", "主机"),
    "ideal": Text("All differences between ranks", "各 rank 之间的所有差异"),
    "layout": Text("Parallel sizes", "并行规模"),
    "limit": Text("Rows of each rank", "每个 rank 的行数"),
    "list": Text("In order of time", "按时间顺序"),
    "node": Text("Node", "节点"),
    "operator": Text("Operator", "算子"),
    "outer": Text("With operators inside", "含内层算子"),
    "peak_tflops": Text("Peak (TFLOP/s)", "峰值（TFLOP/s）"),
    "ranks": Text("Ranks", "Rank"),
    "scale": Text("Work that takes another time", "改变耗时的工作"),
    "shortest": Text("Shortest", "最短"),
    "shown": Text("Shown", "显示"),
    "source": Text("From ranks", "源 rank"),
    "stage": Text("Stage", "阶段"),
    "step": Text("Step", "步"),
    "steps": Text("Steps", "步"),
    "time": Text("Time", "时间"),
    "transport": Text("Transport", "链路类型"),
    "with_first": Text("With start-up steps", "含启动步"),
    "without": Text("Take away", "去除"),
}
"""Labels of declared options by name; an option of a plug-in has its name as its label."""
