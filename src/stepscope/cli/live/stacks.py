"""`stepscope live stacks`: where the ranks of a running job are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from stepscope.cli.live.capture import EXIT_INCOMPLETE, chosen_ranks, taking_part
from stepscope.cli.live.connecting import ChosenManager, JobArgument, asks_manager, status_of

if TYPE_CHECKING:
    from stepscope.live.control.client import Client


@asks_manager
def stacks(
    job: JobArgument = "",
    ranks: Annotated[
        str | None, typer.Option(help="Ranks to look at, e.g. 0,3-5. Default: all.", metavar="LIST", show_default=False)
    ] = None,
    tree: Annotated[bool, typer.Option("--tree", help="Show whole stacks, as one tree over all ranks.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON, with whole stacks.")] = False,
    *,
    manager: ChosenManager,
) -> int:
    """Show where the training threads of all ranks are, e.g. when a job hangs. Needs py-spy on each node.

    Ranks that are in the same call of the same line are shown together; those in other places than most come last.

    The exit code is 0 if there are stacks of all ranks, 1 if some are missing.
    """
    import msgspec

    from stepscope.live.capture.stacks import NoStacks, lines_of_tree, merged, threads_in
    from stepscope.present import printable
    from stepscope.selection import describe_numbers, named_numbers

    async def ask(client: Client) -> dict[int, tuple[str, str]]:
        return await client.stacks(chosen_ranks(ranks, taking_part(await status_of(client))))

    taken = manager.call(ask, job)
    found, missing = {}, {}
    for rank, (text, error) in sorted(taken.items()):
        try:
            if error:
                raise NoStacks(error)
            found[rank] = threads_in(text)
        except NoStacks as problem:
            missing[rank] = str(problem)
    places = merged(found)
    if as_json:
        answer = {"places": msgspec.to_builtins(places), "missing": {str(rank): why for rank, why in missing.items()}}
        print(json.dumps(answer))
        return EXIT_INCOMPLETE if missing or not found else 0
    lines = [*lines_of_tree(found)] if tree else [_capital(one.sentence()) for one in places]
    reasons: dict[str, list[int]] = {}
    for rank, reason in missing.items():
        reasons.setdefault(reason, []).append(rank)
    lines += [f"No stacks of {named_numbers('rank', those)}: {reason}" for reason, those in reasons.items()]
    if tree and found:
        lines.append(f"In brackets: ranks, of {describe_numbers(found)}")
    for line in lines:
        print(printable(line))
    return EXIT_INCOMPLETE if missing or not found else 0


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
