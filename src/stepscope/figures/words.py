"""The words of figures in English and Chinese: what marks stand for, titles of columns and axes."""

from __future__ import annotations

from stepscope.advice.finding import Per
from stepscope.advice.messages import Text
from stepscope.pages.shown_table import english_title, titled
from stepscope.present import Language
from stepscope.tables.base import Column

WORDS: dict[str, Text] = {
    "computing": Text("computing", "计算"),
    "wait": Text("waiting for other ranks", "等待其他 rank"),
    "transmit": Text("transmission", "传输"),
    "communication": Text("exposed communication", "未掩盖的通信"),
    "memory": Text("memory operations", "内存操作"),
    "free": Text("idle", "空闲"),
    "compile": Text("compiling", "编译"),
    "garbage_collection": Text("garbage collection", "垃圾回收"),
    "data_loading": Text("waiting for data", "等待数据"),
    "checkpoint": Text("checkpoint", "保存检查点"),
    "synchronisation": Text("idle: synchronisation", "空闲：同步"),
    "dispatch": Text("idle: late dispatch", "空闲：下发过晚"),
    "dependency": Text("idle: dependency", "空闲：依赖"),
    "python": Text("idle: Python", "空闲：Python"),
    "other": Text("idle: other", "空闲：其他"),
    "unmarked": Text("not marked by light tracing", "轻量打点未标记"),
    "not_recorded": Text("idle: cause not recorded", "空闲：原因未记录"),
    "computing_and_free": Text("computing and idle", "计算与空闲"),
    "interval": Text("before forward", "前向之前"),
    "forward_backward": Text("forward and backward", "前向与反向"),
    "tail": Text("after backward", "反向之后"),
    "extra": Text("extra work", "额外的工作"),
    "waiting": Text("waiting", "等待"),
    "none": Text("none", "无"),
    "kind:communication": Text("communication", "通信"),
    "kind:dispatch": Text("late dispatch", "下发过晚"),
    "outside_operators": Text("outside of operators", "算子之外"),
    "kind:synchronisation": Text("synchronisation", "同步"),
    "kind:dependency": Text("dependencies", "依赖"),
    "kind:not_recorded": Text("not recorded", "未记录"),
    "kind:other": Text("other", "其他"),
    "compute": Text("computing", "计算"),
    "host": Text("host operators", "主机算子"),
    "forward": Text("forward", "前向"),
    "backward": Text("backward", "反向"),
    "stages": Text("waiting for other stages", "等待其他阶段"),
    "recorded": Text("recorded step", "记录的一步"),
    "left": Text("what is left", "剩余"),
    "what:time": Text("kind of time", "一类时间"),
    "what:rank": Text("slow rank", "慢 rank"),
    "link": Text("link", "链路"),
    "group": Text("group", "通信组"),
    "outside": Text("outside of its window", "窗口之外"),
    "unknown": Text("unknown", "未知"),
    "time": Text("time", "时间"),
}
"""What marks and values stand for."""

TITLES: dict[str, str] = {
    "rank": "rank",
    "ranks": "rank",
    "part": "组成部分",
    "mean": "均值",
    "share": "占比",
    "steps": "步数",
    "most on": "最多的 rank",
    "most": "最多",
    "step": "步",
    "excess": "超出",
    "excess %": "超出占比",
    "mostly": "主要在",
    "kind": "种类",
    "type": "类型",
    "name": "名称",
    "total": "总耗时",
    "calls": "次数",
    "median": "中位",
    "shortest": "最短",
    "longest": "最长",
    "longest on": "最长的 rank",
    "outlier": "离群",
    "from": "发送",
    "to": "接收",
    "transport": "传输方式",
    "bandwidth": "带宽",
    "of mean": "与均值之比",
    "size": "大小",
    "time": "时间",
    "operation": "操作",
    "group": "通信组",
    "bus bandwidth": "总线带宽",
    "best": "最快",
    "transmission": "传输时间",
    "links": "链路数",
    "slowest": "最慢",
    "shapes": "形状",
    "data type": "数据类型",
    "FLOPs": "运算量",
    "moved": "搬运量",
    "FLOP per byte": "每字节运算量",
    "rate": "算力",
    "roof": "上限",
    "of roof": "占上限",
    "cause": "原因",
    "saving": "节省",
    "queue": "队列",
    "batch": "批次",
    "in the queue": "队列中",
    "capacity": "容量",
    "data wait": "等待数据",
    "ready": "已就绪",
    "node": "节点",
    "in use": "使用中",
    "reserved": "已保留",
    "allocated": "分配",
    "released": "释放",
    "first node": "起始节点",
    "last node": "结束节点",
    "stage": "阶段",
    "pass": "方向",
    "micro-batch": "微批次",
    "model chunk": "模型块",
    "start": "开始",
    "known by": "依据",
    "computing": "计算",
    "waiting": "等待",
    "fastest": "最快",
}
"""English title of a column and the Chinese one."""


def word(name: str, language: Language, of: str = "") -> str:
    """What a mark or value (of a column) is called; an unknown one stays as it is."""
    found = WORDS.get(f"{of}:{name}") or WORDS.get(name)
    return name if found is None else found.of(language)


def title_of(column: Column, language: Language, per: Per = "step") -> str:
    """The title of a column."""
    english = english_title(column)
    if language == "zh" and english in TITLES:
        return TITLES[english]
    return titled(column, per, language)
