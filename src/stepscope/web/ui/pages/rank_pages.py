"""Pages about one rank: its steps, operators, input, memory, host, changing shapes."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.pages.base import STEP
from stepscope.texts import Text
from stepscope.web.ui.choosing import rank_of, values_of
from stepscope.web.ui.context import Context
from stepscope.web.ui.controls import Control, select
from stepscope.web.ui.figures import FigurePlace, Point
from stepscope.web.ui.labels import ALL, DEFAULT
from stepscope.web.ui.site_map import WebPage
from stepscope.web.ui.state import State
from stepscope.web.ui.subjects import steps_of


def part_of(point: Point, place: int) -> object:
    """One of the values that a point carries; None if it has none."""
    carried = point.get("customdata")
    if isinstance(carried, list) and carried and isinstance(carried[0], list):  # a slice of a pie stands for several
        carried = carried[0]
    return carried[place] if isinstance(carried, list) and place < len(carried) else None


async def _chosen(
    context: Context, state: State, name: str, label: Text, question: str, column: str, first: Text = DEFAULT
) -> Sequence[Control]:
    """A field with the values of a column of an answer about the rank; none if there is nothing to choose from."""
    values = await values_of(context, question, column, await rank_of(context, state))
    if len(values) < 2:
        return ()
    return (select(name, label, context, ("", first), *((value, value) for value in values)),)


# Steps


async def _graphs(context: Context, state: State) -> Sequence[Control]:
    return await _chosen(context, state, "step-trace.graph", Text("Graph", "图"), "step_trace", "graph")


def _to_step(context: Context, point: Point) -> str | None:
    step = part_of(point, 1)
    return None if step is None else context.state.changed(step=step).url


def _of_step(state: State) -> dict[str, object]:
    """The step that is drawn, and the points that cut it: those of the page."""
    names = ("forward_start", "backward_end")
    step = steps_of(STEP, state)
    return {
        **({} if step is None else {"step": step}),
        **{name: state.get(name) for name in names if state.get(name)},
    }


_POINTS = ("step", "forward_start", "backward_end")

STEPS = WebPage(
    "steps",
    Text("Step trace", "迭代轨迹"),
    "rank",
    "rank",
    about=Text(
        "What a step consists of, drawn to scale: the mean of all steps, or the step that is chosen. Click a point of "
        "the curves to see that step.",
        "按比例绘制一步的构成：所有步的平均值，或选定的一步。点击曲线上的点可查看该步。",
    ),
    figures=(
        FigurePlace("step-trace", _graphs, options=_of_step, reads=_POINTS, by_rank=True, by_step=False),
        FigurePlace("step-parts", options=_of_step, click=_to_step, reads=_POINTS, by_rank=True, by_step=False),
    ),
    parts=("summary", "slow-ranks", "schedule", "dataloader"),
)


# Operators


async def _types(context: Context, state: State) -> Sequence[Control]:
    drawn_as = select(
        "operator-types.form",
        Text("Drawn as", "绘制为"),
        context,
        ("", Text("bars", "条形图")),
        ("pie", Text("pie", "饼图")),
    )
    unit = Text("List", "列表")
    return (drawn_as, *await _chosen(context, state, "operator-types.unit", unit, "operator_types", "unit"))


def _to_type(context: Context, point: Point) -> str | None:
    kind = part_of(point, 0)
    if kind is None:
        return None
    quoted = str(kind).replace("'", "''")
    changes = {"operator_instances.filter": f"type = '{quoted}'", "operator_instances.page": None}
    return context.state.changed(changes).url + "#operator_instances"


OPERATORS = WebPage(
    "ops",
    Text("Operators", "算子"),
    "rank",
    "rank",
    about=Text(
        "Which operators and kernels cost the time. Click a type in the figure to list its operators below.",
        "哪些算子和 kernel 耗时。点击图中的类型，可在下方列出该类型的算子。",
    ),
    sections=("ops", "flops/operator_flops", "flops/model_flops"),
    figures=(
        FigurePlace("operator-types", _types, lambda _: {"form": "bar"}, _to_type, by_rank=True),
        FigurePlace("roofline", by_rank=True),
    ),
    parts=("computation",),
)


# Input


async def _operators(context: Context, state: State) -> Sequence[Control]:
    label = Text("Operator", "算子")
    return await _chosen(context, state, "operator", label, "input_operators", "operator", ALL)


def _to_operator(context: Context, point: Point) -> str | None:
    operator = part_of(point, 1)
    return None if operator is None else context.state.changed(operator=operator).url


def _of_operator(state: State) -> dict[str, object]:
    operator = state.get("operator")
    return {"operator": operator} if operator else {}


INPUT = WebPage(
    "input",
    Text("Data preparation", "数据准备"),
    "rank",
    "rank",
    about=Text(
        "How batches reach the device: processing, sending, fetching, with the queues between them. Click an operator "
        "or queue of the graph to see its curve.",
        "批数据如何到达设备：处理、发送、获取，以及其间的队列。点击图中的算子或队列可查看其曲线。",
    ),
    figures=(
        FigurePlace("queues", by_rank=True),
        FigurePlace("input-pipeline", options=_of_operator, click=_to_operator, reads=("operator",), by_rank=True),
        FigurePlace("input-curves", _operators, options=_of_operator, reads=("operator",), by_rank=True),
    ),
    parts=("dataloader",),
)


# Memory


def _to_moment(context: Context, point: Point) -> str | None:
    """What holds the memory at a click: at a node of a graph, else at a time."""
    node, moment = part_of(point, 1), part_of(point, 2)
    if part_of(point, 4) is None:  # not a point of the curve
        return None
    if moment is not None:
        return context.state.changed(at_ns=moment, node=None, graph=None).url + "#memory_breakdown"
    if node is not None:
        return context.state.changed(graph=part_of(point, 0), node=node, at_ns=None).url + "#memory_breakdown"
    return None


async def _memory_graphs(context: Context, state: State) -> Sequence[Control]:
    return await _chosen(context, state, "memory.graph", Text("Graph", "图"), "memory_peak", "graph")


MEMORY = WebPage(
    "memory",
    Text("Memory", "内存"),
    "rank",
    "rank",
    about=Text(
        "How much memory is used, and what holds it. Click the curve to see what holds the memory at that moment.",
        "内存的用量及其占用者。点击曲线可查看该时刻占用内存的内容。",
    ),
    figures=(
        FigurePlace("memory", _memory_graphs, click=_to_moment, by_rank=True),
        FigurePlace("memory-lifetimes", by_rank=True),
    ),
    parts=("memory",),
)


# Host


async def _usages(context: Context, _: State) -> Sequence[Control]:
    return (
        select(
            "cpu-usage.of",
            Text("Shown", "显示"),
            context,
            ("", ALL),
            ("host", Text("host", "主机")),
            ("process", Text("process", "进程")),
            ("operators", Text("dataset operators", "数据集算子")),
            ("workers", Text("workers", "工作进程")),
        ),
    )


_STEPS = ("step", "steps")


def _of_steps(state: State) -> dict[str, object]:
    """The step, or the steps, of the page: they choose samples and ranges, as there may be some outside all steps."""
    chosen = state.get("step") or state.get("steps")
    return {"steps": chosen} if chosen else {}


HOST = WebPage(
    "host",
    Text("CPU and host time", "CPU 与主机时间"),
    "rank",
    "rank",
    about=Text(
        "How busy the processors of the host are, what the process and its dataset operators use of them, and what the "
        "host spent its time on.",
        "主机处理器的繁忙程度、进程及其数据集算子的占用，以及主机时间的去向。",
    ),
    figures=(
        FigurePlace("cpu-usage", _usages, options=_of_steps, reads=_STEPS, by_rank=True, by_step=False),
        FigurePlace("host-time", options=_of_steps, reads=_STEPS, by_rank=True, by_step=False),
    ),
    parts=("schedule", "dataloader"),
)


# Shapes


def _to_shape(context: Context, point: Point) -> str | None:
    kind = part_of(point, 1)
    return None if kind is None else context.state.changed({"dynamic_shapes.search": kind}).url + "#dynamic_shapes"


async def _shape_types(context: Context, _: State) -> Sequence[Control]:
    label = Text("Types, parted by commas", "类型，以逗号分隔")
    return (Control("shape-curves.types", label.of(context.language), placeholder="MatMul,Add"),)


SHAPES = WebPage(
    "shapes",
    Text("Dynamic shapes", "动态形状"),
    "rank",
    "rank",
    about=Text(
        "Operators whose input shapes change from step to step, and what that costs. Click a point to see the shapes.",
        "输入形状逐步变化的算子及其代价。点击数据点可查看形状。",
    ),
    figures=(FigurePlace("shape-curves", _shape_types, click=_to_shape, by_rank=True),),
    parts=("computation",),
)

PAGES_HERE: tuple[WebPage, ...] = (STEPS, OPERATORS, INPUT, MEMORY, HOST, SHAPES)
