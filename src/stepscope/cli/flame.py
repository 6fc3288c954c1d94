"""`stepscope flame`: the tree of calls as a table, or as a file with a flame graph."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from stepscope.cli.formatted import signed, write_whole
from stepscope.cli.options import worded
from stepscope.cli.page_commands import command_of
from stepscope.errors import StepscopeError
from stepscope.pages.flame import PAGE

if TYPE_CHECKING:
    import polars as pl

    from stepscope.compare import Pair
    from stepscope.export.flame.frames import Flame

Kind = Literal["html", "svg", "speedscope", "collapsed"]

ENDINGS: dict[str, Kind] = {
    ".html": "html",
    ".htm": "html",
    ".svg": "svg",
    ".json": "speedscope",
    ".folded": "collapsed",
    ".collapsed": "collapsed",
}
"""What is drawn into a file whose name ends so."""

DrawnAs = Annotated[
    Kind | None,
    worded(
        get_args(Kind),
        "--as",
        help="What to draw with -o. Default: by the ending of FILE.",
        show_default=False,
    ),
]


def flame_command() -> Callable[..., int | None]:
    """The command of the page, which can also draw."""
    shown = command_of(PAGE)
    parameters = dict(inspect.signature(shown).parameters)

    def flame(**words: Any) -> int | None:
        drawn_as, target = words.pop("drawn_as"), words["output"]
        is_text = words["form"] or words["json"] or words["csv"]
        kind = drawn_as or (None if is_text or target is None else ENDINGS.get(target.suffix.lower()))
        if kind is None:
            return shown(**words)
        if is_text:
            raise StepscopeError(f"--as {kind} draws a flame graph, which has no other format: leave out the other one")
        _draw(kind, target, words)
        return None

    flame.__name__ = PAGE.name
    chosen = inspect.Parameter("drawn_as", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=DrawnAs)
    return signed(flame, {**parameters, "drawn_as": chosen})


def _draw(kind: Kind, target: Path | None, words: dict[str, Any]) -> None:
    from stepscope.cli.notes import note, note_warnings
    from stepscope.cli.opening import opened
    from stepscope.export.flame.drawing import LEAST_RATIO

    run = opened(
        [words["path"]],
        run=words["run"],
        limits=words["limits"],
        engine=words["engine"],
        use_store=not words["no_store"],
        table="slices",
    )
    rank = words["rank"]
    if rank is None:
        rank = run.ranks[0].rank
        if len(run.ranks) > 1:
            note(f"this is rank {rank}; choose another with --rank")
    chosen = run.select(ranks=rank)
    if words["step"] is not None:
        chosen = chosen.select(steps=words["step"])
    tree = chosen.analyse("call_tree", **({"by": words["by"]} if words["by"] else {}))
    step = "" if words["step"] is None else f", step {words['step']}"
    flames = _flames(
        tree, f"{run.name}, rank {rank}{step}", words["time"], LEAST_RATIO if kind in ("html", "svg") else 0
    )
    _write(kind, target, flames)
    note_warnings(run.warnings)


def _flames(tree: pl.DataFrame, title: str, time: str | None, least: float) -> list[Flame]:
    """The graphs of the time that was asked for, or of all that there is."""
    from stepscope.export.flame.frames import TIMES, flame_of

    if time is not None and time not in TIMES:
        raise StepscopeError(f"--time {time}: choose one of {', '.join(TIMES)}")
    there = [one for one in TIMES if one == time or (time is None and tree[f"{one}_ns"].sum())]
    return [flame_of(tree, title, one, least) for one in there or TIMES[:1]]


def _write(kind: Kind, target: Path | None, flames: list[Flame]) -> None:
    from stepscope.export.flame.drawing import page, svg
    from stepscope.export.flame.stacks import collapsed, speedscope

    made: Iterable[bytes]
    if kind == "html":
        made = [page(flames)]
    elif kind == "svg":
        made = svg(flames[0])
    elif kind == "speedscope":
        made = speedscope(flames)
    else:
        made = collapsed(flames[0])
    if target is None or str(target) == "-":
        out = typer.get_binary_stream("stdout")
        out.writelines(made)
        out.flush()
        return
    write_whole(target, made)
    typer.echo(str(target), err=True)


def draw_difference(pair: Pair, target: Path) -> None:
    """Draw the differential flame graph of a pair.

    Raises:
        StepscopeError: If the ending of the file is not that of a page or picture, or no calls were recorded.
    """
    from stepscope.export.flame.drawing import LEAST_RATIO
    from stepscope.export.flame.frames import TIMES, difference_of

    kind = ENDINGS.get(target.suffix.lower())
    if kind not in ("html", "svg"):
        raise StepscopeError(f"--flame {target}: give a file that ends in .html or .svg")
    tree = pair.analyse("call_tree_differences")
    base, new = (name.whole for name in pair.names)
    title = (
        f"{pair.name}: {base} and {new}" if pair.is_one_run else f"{pair.base.name} (base) and {pair.new.name} (new)"
    )
    sides = (base, "new side" if new == "new" else new)
    drawn = [difference_of(tree, title, time, side, LEAST_RATIO, sides) for time in TIMES for side in ("new", "base")]
    flames = [flame for flame in drawn if flame is not None]
    if not flames:
        raise StepscopeError(f"--flame {target}: no times of calls were recorded")
    _write(kind, target, flames)
