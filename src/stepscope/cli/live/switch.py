"""`stepscope live switch`: switch light tracing of a running job on and off."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stepscope.cli.live.connecting import ChosenManager, asks_manager, status_of
from stepscope.cli.options import argument
from stepscope.errors import StepscopeError

if TYPE_CHECKING:
    from stepscope.live.control.client import Client, Switched
    from stepscope.live.show.status import Status

EXIT_INCOMPLETE = 1
"""Exit code if a rank has not applied the state."""
SHOWN_FAILURES = 10


@asks_manager
def switch(
    words: Annotated[
        list[str] | None,
        argument(
            "[JOB] [SWITCH=on|off]...",
            "Task id of the job (default: the one that the manager serves), then switches: step, fp (forward passes), "
            "dataloader, checkpoint, communication or all. Without switches: show them.",
        ),
    ] = None,
    wait: Annotated[
        float,
        typer.Option("--wait", help="Wait this long until all ranks have applied the switches.", metavar="SECONDS"),
    ] = 10.0,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Return once the manager has taken the switches; exit code 0.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
    *,
    manager: ChosenManager,
) -> int:
    """Switch light tracing of a running job on and off, e.g. `stepscope live switch communication=on`.

    Any combination works; switches that are not named stay as they are. What was switched is kept by the manager: ranks
    that are restarted, or come later, get it as well.

    The exit code is 0 if all ranks have applied it, 1 if some have not, 2 if nothing was switched.
    """
    from stepscope.live.control.bounds import BOUNDS

    job, changes = _parsed(words or [])
    if not 0 <= wait <= BOUNDS.wait_s:
        raise StepscopeError(f"--wait {wait:g}: give 0 to {BOUNDS.wait_s:g} seconds")
    wait_s = 0.0 if no_wait else wait
    if not changes:
        return _show(manager.call(status_of, job), as_json)

    async def ask(client: Client) -> tuple[Switched, float, Status]:
        began_s = time.perf_counter()
        switched = await client.switch(changes, wait_s=wait_s)
        return switched, time.perf_counter() - began_s, await status_of(client)

    switched, took_s, known = manager.call(ask, job)
    answer = _answer(switched, took_s, known)
    if as_json:
        _print_json(answer)
    else:
        _say(_lines(answer, waited=not no_wait))
    return 0 if no_wait or _is_complete(answer) else EXIT_INCOMPLETE


def _parsed(words: list[str]) -> tuple[str, dict[str, str]]:
    """The job, if one is named, and the switches as words.

    Raises:
        StepscopeError: For a switch without a value.
        InvalidSwitch: If one of them is none.
    """
    from stepscope.live.kinds import Kind
    from stepscope.live.switches import parse_words

    job = ""
    if words and words[0].lower() in {"all", *(kind.value for kind in Kind)}:
        raise StepscopeError(f"{words[0]}: on or off? Example: stepscope live switch {words[0].lower()}=on")
    if words and "=" not in words[0]:
        job, words = words[0], words[1:]
    return job, {kind.value: "on" if state else "off" for kind, state in parse_words(words).items()}


def _answer(switched: Switched, took_s: float, known: Status) -> dict[str, Any]:
    """What was switched, and which ranks have applied it."""
    from stepscope.live.kinds import Kind

    there = {*switched.applied, *switched.pending, *switched.failed}
    return {
        "job": known.job,
        "revision": switched.revision,
        "on": switched.on,
        "off": [kind.value for kind in Kind if kind.value not in switched.on],
        "applied": switched.applied,
        "pending": switched.pending,
        "failed": {str(rank): reason for rank, reason in switched.failed.items()},
        "lost": sorted(rank.rank for rank in known.ranks if rank.rank not in there),
        "world_size": known.world_size,
        "took_ms": round(took_s * 1000, 1),
    }


def _is_complete(answer: dict[str, Any]) -> bool:
    applied = len(answer["applied"])
    return applied > 0 and applied >= (answer["world_size"] or 0) and not (answer["pending"] or answer["failed"])


def _lines(answer: dict[str, Any], waited: bool) -> Iterator[str]:
    from stepscope.present import plural
    from stepscope.selection import describe_numbers

    yield _state(answer["on"], answer["off"])
    applied, pending, failed, lost = (answer[name] for name in ("applied", "pending", "failed", "lost"))
    there = len(applied) + len(pending) + len(failed)
    if not there:
        yield "No rank takes part at the moment; ranks get the switches when they register"
    elif len(applied) == there:
        yield (
            f"Applied by all {there} ranks within {answer['took_ms']:,.0f} ms"
            if there > 1
            else (f"Applied by rank {applied[0]} within {answer['took_ms']:,.0f} ms")
        )
    elif waited:
        yield f"Applied by {len(applied)} of {there} ranks within {answer['took_ms'] / 1000:,.1f} s"
    if pending:
        yield f"Not applied yet by {plural(len(pending), 'rank')}: {describe_numbers(pending)}"
    for rank, reason in list(failed.items())[:SHOWN_FAILURES]:
        yield f"Rank {rank} cannot apply them: {reason}"
    if len(failed) > SHOWN_FAILURES:
        yield f"{plural(len(failed) - SHOWN_FAILURES, 'more rank')} cannot apply them"
    if lost:
        yield f"Lost, so they get the switches when they return: {describe_numbers(lost)}"
    missing = (answer["world_size"] or 0) - there - len(lost)
    if missing > 0:
        yield f"{plural(missing, 'rank')} of {answer['world_size']:,} have not registered"


def _state(on: list[str], off: list[str]) -> str:
    return f"on: {', '.join(on) or '-'}; off: {', '.join(off) or '-'}"


def _show(known: Status, as_json: bool) -> int:
    """Show the switches without changing them."""
    import msgspec

    from stepscope.present import plural
    from stepscope.selection import describe_numbers

    switches = known.switches
    if as_json:
        _print_json({"job": known.job, **msgspec.to_builtins(switches)})
        return 0
    lines = [_state(switches.on, switches.off)]
    if switches.revision:
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(switches.at_ns / 1e9))
        lines.append(f"Requested by {switches.by or 'unknown'}, {at}")
    else:
        lines.append("Nobody has switched yet, so each rank records what it was started with")
    there = switches.applied + len(switches.pending) + len(switches.failed)
    lines.append(f"Applied by {switches.applied} of {plural(there, 'rank')}")
    if switches.pending:
        lines.append(f"Not applied yet by: {describe_numbers(switches.pending)}")
    lines += [f"Rank {failed.rank} cannot apply them: {failed.error}" for failed in switches.failed[:SHOWN_FAILURES]]
    _say(iter(lines))
    return 0


def _say(lines: Iterator[str]) -> None:
    from stepscope.present import printable

    for line in lines:
        print(printable(line))


def _print_json(content: dict[str, Any]) -> None:
    import json

    print(json.dumps(content))
