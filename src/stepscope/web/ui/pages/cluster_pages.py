"""Pages about all ranks: their steps, communication and links, operations and memory, pipeline, strategy."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.texts import Text
from stepscope.web.ui.choosing import values_of
from stepscope.web.ui.context import Context
from stepscope.web.ui.controls import Control, select
from stepscope.web.ui.figures import FigurePlace, Point
from stepscope.web.ui.labels import ALL
from stepscope.web.ui.pages.rank_pages import part_of
from stepscope.web.ui.site_map import WebPage
from stepscope.web.ui.state import State

STEP = Text("Step (mean if empty)", "步（空为平均）")
ONE_STEP = Text("Step (a usual one if empty)", "步（空为典型步）")
SORTED_BY = Text("Sorted by", "排序")
BY = Text("By", "按")
RANK = Text("rank", "rank")


def _step(context: Context, figure: str, label: Text = STEP) -> Control:
    return Control(f"{figure}.step", label.of(context.language), "number")


def to_rank(context: Context, point: Point) -> str | None:
    """The steps of the rank that was clicked."""
    return _to(context, point, "steps")


def to_step_of_rank(context: Context, point: Point) -> str | None:
    """The step of the rank that was clicked, in a map of ranks and steps."""
    rank, step = part_of(point, 0), part_of(point, 1)
    if not isinstance(rank, (int, float)) or not isinstance(step, (int, float)):
        return None
    return context.link("steps", rank=int(rank), step=int(step), ranks=None, steps=None)


def _to_bar(context: Context, point: Point) -> str | None:
    """The steps of the rank that was clicked; of a bar for a stage or host, the ranks there."""
    by, place = context.state.get("rank-steps.by") or "rank", part_of(point, 0)
    if by == "rank":
        return to_rank(context, point)
    return None if place is None else context.state.changed({by: place, "rank-steps.by": None}).url


# Steps of all ranks


async def _steps(context: Context, _: State) -> Sequence[Control]:
    return (
        _step(context, "rank-steps"),
        select(
            "rank-steps.by",
            BY,
            context,
            ("", RANK),
            ("stage", Text("stage", "阶段")),
            ("host", Text("host", "主机")),
        ),
        select(
            "rank-steps.sort",
            SORTED_BY,
            context,
            ("", RANK),
            ("step", Text("step time", "步时间")),
            ("interval", Text("interval", "迭代间隙")),
            ("forward_backward", Text("forward and backward", "前向与反向")),
            ("tail", Text("tail", "迭代拖尾")),
            ("computing", Text("computing", "计算")),
            ("communication", Text("exposed communication", "未掩盖通信")),
            ("receiving", Text("receiving", "接收")),
            ("collective", Text("collectives", "集合通信")),
            ("free", Text("idle", "空闲")),
        ),
        select(
            "rank-steps.split",
            Text("Parts", "构成"),
            context,
            ("", Text("as recorded", "按记录")),
            ("phase", Text("phases", "阶段划分")),
            ("activity", Text("activity", "活动")),
        ),
    )


RANKS = WebPage(
    "ranks",
    Text("Step trace of all ranks", "所有 rank 的迭代轨迹"),
    "cluster",
    about=Text(
        "All ranks side by side, the slow ones marked. Click a rank to see its steps.",
        "并列显示所有 rank，并标出慢 rank。点击 rank 可查看其各步。",
    ),
    figures=(
        FigurePlace("rank-steps", _steps, click=_to_bar),
        FigurePlace("step-map", click=to_step_of_rank),
        FigurePlace("heat-map", click=to_step_of_rank),
        FigurePlace("step-times"),
    ),
    parts=("slow-ranks", "summary"),
)


# Communication and links


async def _communication(context: Context, _: State) -> Sequence[Control]:
    return (
        _step(context, "rank-communication"),
        select(
            "rank-communication.sort",
            SORTED_BY,
            context,
            ("", RANK),
            ("total", Text("total", "总计")),
            ("wait", Text("waiting", "等待")),
            ("transmit", Text("transmitting", "传输")),
        ),
    )


COMMUNICATION = WebPage(
    "communication",
    Text("Communication", "通信"),
    "cluster",
    about=Text(
        "What communication costs each rank. The rank that waits least is the one that the others wait for.",
        "通信对每个 rank 的耗时。等待最少的 rank 正是其他 rank 所等待的。",
    ),
    figures=(FigurePlace("rank-communication", _communication, click=to_rank), FigurePlace("bandwidth")),
    parts=("communication", "slow-links"),
)


async def _links(context: Context, _: State) -> Sequence[Control]:
    transports = await values_of(context, "transport_totals", "transport")
    return (
        select(
            "link-matrix.value",
            Text("Value", "数值"),
            context,
            ("", Text("bandwidth", "带宽")),
            ("time", Text("time", "时间")),
            ("traffic", Text("traffic", "流量")),
        ),
        select(
            "transport",
            Text("Transport", "链路类型"),
            context,
            ("", ALL),
            *((each, each) for each in transports),
        ),
    )


def _of_transport(state: State) -> dict[str, object]:
    """The transport of the page; source and destination choose rows of the tables only, as the figure leads there."""
    transport = state.get("transport")
    return {"transport": transport} if transport else {}


def _to_link(context: Context, point: Point) -> str | None:
    """The rows of the link that was clicked."""
    source, destination = part_of(point, 0), part_of(point, 1)
    if source is None or destination is None:
        return None
    return context.state.changed(source=source, destination=destination).url


LINKS = WebPage(
    "links",
    Text("Links", "链路"),
    "cluster",
    about=Text(
        "What moved between which ranks, and how fast. Rows send, columns receive.",
        "哪些 rank 之间传输了多少数据、速度如何。行为发送方，列为接收方。",
    ),
    figures=(FigurePlace("link-matrix", _links, _of_transport, _to_link, reads=("transport",)),),
    parts=("slow-links", "communication"),
)

FLOPS = WebPage(
    "rank-flops",
    Text("FLOPs of all ranks", "所有 rank 的 FLOPs"),
    "cluster",
    about=Text(
        "How much each rank computes, as a share of the rank that computes most. Click a rank to see its operators.",
        "各 rank 的计算量，以计算量最大的 rank 为基准。点击 rank 可查看其算子。",
    ),
    sections=("ranks/rank_flops",),
    figures=(FigurePlace("rank-flops", click=lambda context, point: _to(context, point, "ops")),),
    parts=("computation", "slow-ranks"),
)

MEMORY = WebPage(
    "rank-memory",
    Text("Memory of all ranks", "所有 rank 的内存"),
    "cluster",
    about=Text(
        "The peak of each rank as a share of its device's memory. Click a rank to see its memory.",
        "各 rank 的内存峰值占其设备内存的比例。点击 rank 可查看其内存。",
    ),
    sections=("ranks/rank_memory",),
    figures=(FigurePlace("rank-memory", click=lambda context, point: _to(context, point, "memory")),),
    parts=("memory",),
)


def _to(context: Context, point: Point, page: str) -> str | None:
    rank = part_of(point, 0)
    return None if not isinstance(rank, (int, float)) else context.link(page, rank=int(rank), ranks=None)


def _to_moment(context: Context, point: Point) -> str | None:
    """What ran on the rank at the range that was clicked, on the timeline."""
    rank, start, end = part_of(point, 0), part_of(point, 2), part_of(point, 3)
    if rank is None or end is None:  # a mark at the end of a line has no range
        return None
    return context.link("timeline", rank=rank, start_ns=start, end_ns=end, ranks=None)


async def _marey(context: Context, _: State) -> Sequence[Control]:
    return (_step(context, "marey", ONE_STEP),)


async def _pipeline(context: Context, _: State) -> Sequence[Control]:
    return (_step(context, "pipeline", ONE_STEP),)


PIPELINE = WebPage(
    "pipeline",
    Text("Pipeline", "流水线"),
    "cluster",
    about=Text(
        "What each rank does in a step, stage by stage, and what passes between them: a slope is a delay. Click a "
        "range to see it on the timeline.",
        "各 rank 在一步中逐阶段的活动，以及其间的传递：斜线表示延迟。点击区间可在时间线上查看。",
    ),
    figures=(FigurePlace("marey", _marey, click=_to_moment), FigurePlace("pipeline", _pipeline)),
    parts=("slow-ranks", "communication"),
)

STRATEGY = WebPage(
    "strategy",
    Text("Strategy", "并行策略"),
    "cluster",
    about=Text(
        "How the model is divided over the ranks: by the compiler's graphs where they were recorded, and by the groups "
        "of the job.",
        "模型如何划分到各 rank：依据记录到的编译器图，以及作业的通信组。",
    ),
    sections=("strategy", "layout"),
    figures=(FigurePlace("layout", click=to_rank), FigurePlace("strategy")),
    parts=("slow-ranks", "communication"),
)

PAGES_HERE: tuple[WebPage, ...] = (RANKS, COMMUNICATION, LINKS, FLOPS, MEMORY, PIPELINE, STRATEGY)
