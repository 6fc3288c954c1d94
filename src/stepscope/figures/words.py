"""The words of figures in English and Chinese: what marks stand for, titles of columns and axes."""

from __future__ import annotations

from stepscope.advice.finding import Per
from stepscope.advice.messages import Text
from stepscope.pages.shown_table import filled
from stepscope.present import Language, title
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
    "not_recorded": Text("idle: cause not recorded", "空闲：原因未记录"),
    "computing_and_free": Text("computing and idle", "计算与空闲"),
    "interval": Text("before forward", "前向之前"),
    "forward_backward": Text("forward and backward", "前向与反向"),
    "tail": Text("after backward", "反向之后"),
    "extra": Text("extra work", "额外的工作"),
    "waiting": Text("waiting", "等待"),
    "none": Text("none", "无"),
    "rank": Text("rank", "rank"),
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
}
"""English title of a column and the Chinese one."""

_STEP_ZH = {"{step}": "步", "{steps}": "步", "{Steps}": "步", "{step_time}": "步耗时", "{a_step}": "一步"}


def word(name: str, language: Language) -> str:
    """What a mark or value is called; an unknown one stays as it is."""
    found = WORDS.get(name)
    return name if found is None else found.of(language)


def title_of(column: Column, language: Language, per: Per = "step") -> str:
    """The title of a column."""
    english = column.title or title(column.name)
    if language == "en":
        return filled(english, per)
    if english in TITLES:
        return TITLES[english]
    for braces, chinese in _STEP_ZH.items():
        english = english.replace(braces, chinese)
    return TITLES.get(english, english)
