"""Declared pages that need nothing of their own: their titles, and which findings stand beside them."""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.texts import Text
from stepscope.web.ui.figures import FigurePlace
from stepscope.web.ui.pages.cluster_pages import to_step_of_rank
from stepscope.web.ui.site_map import Group, WebPage, declared

TITLES: dict[str, tuple[Text, tuple[str, ...]]] = {
    "summary": (Text("What a step consists of", "每步的构成"), ("summary",)),
    "heat-map": (Text("Excess by rank and step", "各 rank 各步的超出时间"), ("slow-ranks",)),
    "critical-path": (Text("Critical path", "关键路径"), ("summary", "slow-ranks")),
    "slowdowns": (Text("Slowdowns", "减速"), ("slow-ranks",)),
    "layout": (Text("Parallel layout", "并行布局"), ()),
    "overlap": (Text("Overlap", "掩盖"), ("communication",)),
    "calls": (Text("Communication calls", "通信调用"), ("communication",)),
    "bandwidth": (Text("Bus bandwidth", "总线带宽"), ("communication", "slow-links")),
    "transfers": (Text("Transfers", "传输"), ("slow-links", "communication")),
    "experts": (Text("Experts", "专家"), ("communication",)),
    "hangs": (Text("Hangs", "挂起"), ("communication",)),
    "kernels": (Text("Kernels of all ranks", "所有 rank 的 kernel"), ("computation",)),
    "api": (Text("Runtime calls", "运行时调用"), ("schedule",)),
    "frequencies": (Text("Clock rates", "时钟频率"), ("computation", "environment")),
    "gaps": (Text("Gaps", "空隙"), ("schedule",)),
    "ranges": (Text("Marked ranges", "标记区间"), ()),
    "copies": (Text("Copies", "拷贝"), ("memory",)),
    "launches": (Text("Launches", "下发"), ("schedule",)),
    "sequences": (Text("Kernel sequences", "kernel 序列"), ("computation", "schedule")),
    "counters": (Text("Hardware counters", "硬件计数器"), ("computation",)),
    "short-kernels": (Text("Short kernels", "短 kernel"), ("schedule", "computation")),
    "functions": (Text("Python functions", "Python 函数"), ("schedule",)),
    "flame": (Text("Call tree", "调用树"), ("schedule", "computation")),
    "modules": (Text("Modules of the model", "模型模块"), ("computation",)),
    "flops": (Text("FLOPs", "FLOPs"), ("computation",)),
}
"""Title of a declared page, and the parts of a report whose findings are about it."""

FIGURES = {
    "summary": (FigurePlace("job-time"), FigurePlace("time-by-rank")),
    "heat-map": (FigurePlace("heat-map", click=to_step_of_rank),),
    "bandwidth": (FigurePlace("bandwidth"),),
    "counters": (FigurePlace("roofline", by_rank=True),),
    "layout": (FigurePlace("layout"),),
    "kernels": (FigurePlace("operator-tree"), FigurePlace("operator-bars")),
}
"""Figures of such a page."""


def _pages() -> Iterator[WebPage]:
    for name, (title, parts) in TITLES.items():
        scope = declared()[name].scope
        group: Group = "rank_further" if scope == "rank" else "cluster_further"
        yield WebPage(name, title, group, scope, figures=FIGURES.get(name, ()), parts=parts)


PAGES_HERE: tuple[WebPage, ...] = tuple(_pages())
