"""What a reader may choose on a page: plain form fields whose values go into the URL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from markupsafe import Markup

from stepscope.pages.base import Option, Page
from stepscope.pages.words import said
from stepscope.texts import Text
from stepscope.web.ui.context import Context
from stepscope.web.ui.html import rendered
from stepscope.web.ui.state import State

Field = Literal["select", "text", "number", "flag"]

_FIELDS: dict[str, Field] = {"integer": "number", "number": "number", "text": "text", "flag": "flag"}


LABELS = {
    "at_ns": Text("At (ns)", "时刻（ns）"),
    "backward_end": Text("Backward ends at", "反向结束于"),
    "bandwidth": Text("Bandwidth", "带宽"),
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
    "ideal": Text("All ranks alike", "所有 rank 相同"),
    "layout": Text("Parallel sizes", "并行规模"),
    "limit": Text("Rows of each rank", "每个 rank 的行数"),
    "list": Text("In order of time", "按时间顺序"),
    "node": Text("Node", "节点"),
    "operator": Text("Operator", "算子"),
    "outer": Text("With operators inside", "含内层算子"),
    "peak_tflops": Text("Peak (TFLOP/s)", "峰值（TFLOP/s）"),
    "ranks": Text("Ranks", "Rank"),
    "scale": Text("Other times", "改变时间"),
    "shortest": Text("Shortest", "最短"),
    "shown": Text("Shown", "显示"),
    "source": Text("From ranks", "源 rank"),
    "stage": Text("Stage", "阶段"),
    "step": Text("Step", "步"),
    "steps": Text("Steps", "步"),
    "time": Text("Time", "时间"),
    "transport": Text("Transport", "链路类型"),
    "with_first": Text("With start-up steps", "含启动步"),
    "without": Text("Without", "去除"),
}
"""Labels of declared options by name; an option of a plug-in has its name as its label."""

EXAMPLES = {
    "ranks": "0,3-5",
    "steps": "10-12",
    "source": "0,2-3",
    "destination": "0,2-3",
    "layout": "tp=2,pp=4",
    "bandwidth": "2x",
    "scale": "op=FlashAttention,0.7",
    "without": "rank=6",
}
"""What stands in an empty field, where that says more than a word for the value."""


@dataclass(frozen=True)
class Choice:
    """One of the values of a select field."""

    value: str
    label: str


@dataclass(frozen=True)
class Control:
    """A field of a form.

    Args:
        name: The parameter of the URL that it sets.
        label: Its label.
        kind: What kind of field it is.
        choices: Of a select field: its values. The first stands for none given.
        help: What it does, in a sentence.
        placeholder: What stands in an empty field.
        minimum, maximum: Bounds of a number.
    """

    name: str
    label: str
    kind: Field = "text"
    choices: Sequence[Choice] = ()
    help: str = ""
    placeholder: str = ""
    minimum: float | None = None
    maximum: float | None = None


def controls_of(page: Page, context: Context, *, without: Sequence[str] = ()) -> list[Control]:
    """Fields for the options that a declared page has of its own."""
    return [control_of(option, context) for option in page.options if option.name not in without]


def control_of(option: Option, context: Context) -> Control:
    """A field for a declared option."""
    name = option.name
    label = LABELS[name].of(context.language) if name in LABELS else name.replace("_", " ").capitalize()
    help_text = said(option.help, context.language)
    return Control(
        name, label, _FIELDS[option.kind], help=help_text, placeholder=EXAMPLES.get(name, ""), minimum=option.minimum
    )


def select(name: str, label: Text | str, context: Context, *choices: tuple[str, Text | str]) -> Control:
    """A field with some values, of which the first is the default."""

    def of(text: Text | str) -> str:
        return text if isinstance(text, str) else text.of(context.language)

    return Control(name, of(label), "select", [Choice(value, of(text)) for value, text in choices])


def form(context: Context, state: State, controls: Sequence[Control], *, resets: Sequence[str] = ()) -> Markup:
    """A form of some fields; a change of one goes to the URL with its value.

    Args:
        resets: Parameters that lose their value when a field changes, e.g. the number of a page.
    """
    if not controls:
        return Markup("")
    names = {control.name for control in controls}
    hidden = [(name, value) for name, value in state.params.items() if name not in names and name not in resets]
    shown = [replace(control, choices=_with_given(control, state)) for control in controls]
    return rendered(context, "controls.html.j2", "form", controls=shown, hidden=hidden)


def _with_given(control: Control, state: State) -> Sequence[Choice]:
    """The values of a select field, with the given one if it is none of them."""
    given = state.get(control.name)
    if control.kind != "select" or not given or any(choice.value == given for choice in control.choices):
        return control.choices
    return [*control.choices, Choice(given, given)]
