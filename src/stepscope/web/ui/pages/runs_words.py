"""The words of the list of runs, in English and Chinese."""

from __future__ import annotations

from collections.abc import Mapping

from stepscope.texts import Text

WORDS: Mapping[str, Text] = {
    "intro": Text(
        "Every recording below {roots}. New runs and their progress appear by themselves. Tick two runs to compare "
        "them.",
        "{roots} 下的所有记录。新的运行及其进度会自动出现；勾选两个运行即可比对。",
    ),
    "roots": Text("{first} and {more} more directories", "{first} 及另外 {more} 个目录"),
    "search": Text("Search name, path, format or state", "搜索名称、路径、格式或状态"),
    "tick": Text("Compare", "比对"),
    "tick_run": Text("Tick {name} to compare it", "勾选 {name} 以进行比对"),
    "top": Text("Top finding", "首要发现"),
    "base": Text("Base", "基准"),
    "new": Text("New", "新运行"),
    "compare_two": Text("Compare these two runs", "比对这两个运行"),
    "compare_one": Text("Tick another run, or compare ranks of this one", "再勾选一个运行，或比对此运行的各 rank"),
    "swap": Text("Swap", "互换"),
    "clear": Text("Clear", "清除"),
    "count": Text("{found} of {every} runs", "{every} 个运行中的 {found} 个"),
    "all": Text("{every} runs", "{every} 个运行"),
    "busy": Text("{busy} still being read or analysed", "{busy} 个仍在读取或分析"),
    "none_found": Text("No run contains all of: {search}.", "没有运行包含全部文字：{search}。"),
    "show_all": Text("Show all runs", "显示所有运行"),
    "none": Text("No recording was found yet below:", "在以下位置尚未找到记录："),
    "none_what": Text(
        "stepscope looks there every few seconds, at any depth, for traces of PyTorch and MindSpore profilers, Ascend "
        "profiler directories and its own recordings.",
        "stepscope 每隔几秒在其中（任意深度）查找 PyTorch 和 MindSpore profiler 的 trace、昇腾 profiler 目录以及自身的"
        "记录。",
    ),
    "none_how": Text("Record a training job into one of these directories:", "将训练作业记录到其中一个目录："),
    "unread": Text("{unread} inputs could not be read", "{unread} 个输入无法读取"),
    "no_findings": Text("none", "无"),
    "high": Text("high", "高"),
    "medium": Text("medium", "中"),
    "low": Text("low", "低"),
    "failed_how": Text(
        "Run `stepscope analyze` on it to see more, or remove it. Other runs are not affected.",
        "可对其运行 `stepscope analyze` 查看更多信息，或将其移除。其他运行不受影响。",
    ),
    "gone_how": Text(
        "Put its files back to open it again; it leaves the list after an hour.",
        "将其文件放回即可重新打开；一小时后它会从列表中消失。",
    ),
}
