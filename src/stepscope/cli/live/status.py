"""`stepscope live status`: what a running job is doing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from stepscope.cli.live.connecting import ChosenManager, JobArgument, asks_manager
from stepscope.cli.options import LanguageOption

if TYPE_CHECKING:
    from stepscope.live.show.status import Status

EXIT_SLOW = 1
"""Exit code if a verdict is open."""
NARROWEST = 80


@asks_manager
def status(
    job: JobArgument = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole status as JSON.")] = False,
    language: LanguageOption = "en",
    *,
    manager: ChosenManager,
) -> int:
    """Show what a running job is doing: who is slow, which ranks take part, what is recorded, where records are.

    The exit code is 0 if no rank is slow, 1 if a verdict is open, 2 if the manager cannot be asked.
    """
    from stepscope.live.show.status import from_json

    text = manager.call(lambda client: client.status(), job)
    known = from_json(text)
    if as_json:
        print(text.decode())
    else:
        show(known, language)
    return EXIT_SLOW if known.open else 0


def show(known: Status, language: LanguageOption) -> None:
    """Print a status; sentences are wrapped in a terminal, and the table has 80 columns in files."""
    from stepscope.cli.output import Output
    from stepscope.live.show.status_lines import lines_of

    out = Output()
    width = min(out.room or NARROWEST, 120)
    for line in lines_of(known, width, language):
        out.say(line, indent=len(line) - len(line.lstrip()) + 2)
