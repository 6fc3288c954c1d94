"""What a reader may choose on a page: plain form fields whose values go into the URL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from markupsafe import Markup

from stepscope.pages.base import Option, Page
from stepscope.pages.layout import LAYOUT
from stepscope.pages.words import said
from stepscope.texts import Text
from stepscope.web.ui.context import Context
from stepscope.web.ui.html import rendered
from stepscope.web.ui.labels import LABELS
from stepscope.web.ui.state import State

Field = Literal["select", "text", "number", "flag"]

_FIELDS: dict[str, Field] = {"integer": "number", "number": "number", "text": "text", "flag": "flag"}

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
    """Fields for the options that a declared page has of its own.

    Those that only choose which sections a command prints, or how it writes a file, have none: pages show all sections.
    """
    taken = {LAYOUT.name, *(name for section in page.sections for name in section.takes)}
    return [
        control_of(option, context)
        for option in page.options
        if option.name not in without and (option.name in taken or option.columns)
    ]


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
    hidden = state.others({*names, *resets})
    shown = [replace(control, choices=_with_given(control, state)) for control in controls]
    return rendered(context, "controls.html.j2", "form", controls=shown, hidden=hidden)


def _with_given(control: Control, state: State) -> Sequence[Choice]:
    """The values of a select field, with the given one if it is none of them."""
    given = state.get(control.name)
    if control.kind != "select" or not given or any(choice.value == given for choice in control.choices):
        return control.choices
    return [*control.choices, Choice(given, given)]
