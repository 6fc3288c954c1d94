"""Arguments and options that commands share, each defined once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer
from typer.core import TyperArgument, TyperCommand

from stepscope.errors import StepscopeError
from stepscope.pages.base import RANKS, STEPS, Option
from stepscope.pages.layout import LAYOUT
from stepscope.present import LANGUAGES, Language
from stepscope.references import as_typed


class Command(TyperCommand):
    """A command whose help names its arguments as one types them: without Python types and braces.

    The arguments are hidden from the library, which would show both. An option with a value that is given twice is an
    error: the library would silently take the last.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """See the base class.

        Raises:
            StepscopeError: If an option that takes one value is given several times.
        """
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        single = [
            each for each in order if each.nargs == 1 and not each.multiple and not getattr(each, "is_flag", True)
        ]
        if twice := next((each for each in single if single.count(each) > 1), None):
            raise StepscopeError(f"{twice.opts[0]} is given {single.count(twice)} times; give it once")
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ARG002 - as in the library
        """See the base class."""
        return ["[OPTIONS]", *(name for name, _ in self._arguments())]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """See the base class."""
        if arguments := self._arguments():
            with formatter.section("Arguments"):
                formatter.write_dl(arguments)
        super().format_options(ctx, formatter)

    def _arguments(self) -> list[tuple[str, str]]:
        return [(each.metavar or "", each.help or "") for each in self.params if isinstance(each, TyperArgument)]


def summary_of(command: Callable[..., Any]) -> str:
    """The first paragraph of a command's help, which lists of commands show whole."""
    return " ".join((inspect.getdoc(command) or "").partition("\n\n")[0].split())


def argument(metavar: str, text: str, **more: Any) -> Any:
    """An argument of a `Command`."""
    return typer.Argument(help=text, metavar=metavar, show_default=False, hidden=True, **more)


def declared(option: Option) -> Any:
    """An option of a page as the command-line library takes it."""
    text = as_typed(option.help)
    if option.kind == "flag":
        return typer.Option(option.on_command_line, help=text, show_default=False)
    return typer.Option(
        option.on_command_line,
        help=text,
        metavar=option.metavar,
        parser=option.parsed,
        show_default=False,
    )


def worded(words: Sequence[str], *flags: str, **more: Any) -> Any:
    """An option whose values are a few words."""

    def parsed(text: str) -> str:
        if text not in words:
            raise StepscopeError(f"{flags[0]} {text}: give one of {', '.join(words)}")
        return text

    return typer.Option(*flags, parser=parsed, metavar="|".join(words), autocompletion=lambda: words, **more)


Paths = Annotated[
    list[Path],
    # an input without read permission is reported with a remedy and does not hide the others
    argument("PATH...", "Trace files or directories.", readable=False),
]
OnePath = Annotated[Path, argument("PATH", "Trace file or directory.", readable=False)]
OneRun = Annotated[
    str | None,
    typer.Option(
        "--run",
        help="Run to show: its number or name in `info`. Default: the first.",
        metavar="RUN",
        show_default=False,
    ),
]
Ranks = Annotated[str | None, declared(RANKS)]
Steps = Annotated[str | None, declared(STEPS)]
Layout = Annotated[str | None, declared(LAYOUT)]
NoStore = Annotated[
    bool, typer.Option("--no-store", help="Do not read or write the cache of parsed inputs and answers.")
]
EngineOption = Annotated[
    str | None,
    typer.Option(
        "--engine",
        help="Where ranks are analysed: threads, processes, ray (started on this machine) or ray://HOST:PORT (a "
        "running Ray cluster). Default: STEPSCOPE_ENGINE, else threads.",
        metavar="ENGINE",
        show_default=False,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show only the verdict, findings and errors.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the full traceback on errors.")]
Gpus = Annotated[
    int | None,
    typer.Option(
        "--gpus",
        help="Show savings in device-hours a day, for a job on this many GPUs, NPUs or other devices. Default, with a "
        "price: the job's world size.",
        metavar="N",
        show_default=False,
    ),
]
HourPrice = Annotated[
    float | None,
    typer.Option(
        "--gpu-hour-price", help="Show savings in money a day: price of an hour of one device.", metavar="PRICE"
    ),
]
Currency = Annotated[
    str | None,
    typer.Option("--currency", help="What the price is in. Default: USD.", metavar="NAME", show_default=False),
]
LimitsFile = Annotated[
    Path | None,
    typer.Option(
        "--limits", help="TOML file with limits that replace the defaults; see `rules`.", metavar="FILE", readable=False
    ),
]


Format = Literal["table", "json", "csv"]
"""How a command prints its answer."""

LanguageOption = Annotated[
    Language, worded(LANGUAGES, "--lang", "--language", help="Language of findings and verdict: en or zh (Chinese).")
]
FormatOption = Annotated[
    Format | None, worded(get_args(Format), "--format", "-f", help="Output format. Default: table.", show_default=False)
]
AsJson = Annotated[bool, typer.Option("--json", help="Same as --format json.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="Same as --format csv.")]
AsCsvOfTables = Annotated[
    bool, typer.Option("--csv", help="Same as --format csv: prints one table, the first or the one given by --table.")
]
OutputFile = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Write to FILE instead of standard output.", metavar="FILE"),
]
Wide = Annotated[bool, typer.Option("--wide", "-w", help="Show all columns and full names, regardless of width.")]


def one_table(names: list[str], *, default: str = "all; the first with --csv, --search, --filter or --sort") -> object:
    """The option `--table` of a command with these tables."""
    return Annotated[
        str | None,
        typer.Option(
            "--table",
            help=f"Show only this table: {', '.join(names)}. Default: {default}.",
            metavar="NAME",
            show_default=False,
            autocompletion=lambda: names,
        ),
    ]
