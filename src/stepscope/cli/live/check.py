"""`stepscope live check`: measure devices and links of a running job between two steps."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from statistics import median, median_low
from typing import TYPE_CHECKING, Annotated

import typer

from stepscope.cli.live.capture import EXIT_INCOMPLETE, chosen_ranks, taking_part
from stepscope.cli.live.connecting import ChosenManager, JobArgument, asks_manager, status_of
from stepscope.errors import StepscopeError

if TYPE_CHECKING:
    from stepscope.live.control.client import Answers, Client
    from stepscope.live.messages import Checked

MOST_RANKS = 8
"""Links are measured pair by pair, for which all of them stand still."""
ROUNDS = 3
"""How often a matrix product is timed, at different steps, to tell a slow device from a busy moment."""
ALIKE = 0.05
"""Devices of one kind that differ by less are alike (chosen by us: clocks and chips differ by a few percent)."""


@asks_manager
def check(
    job: JobArgument = "",
    ranks: Annotated[
        str | None,
        typer.Option(help="Ranks to measure, at most 8, e.g. 0,3. Default: all.", metavar="LIST", show_default=False),
    ] = None,
    gemm: Annotated[bool, typer.Option(help="Time a matrix product on each device.")] = True,
    link: Annotated[
        bool, typer.Option("--link", help="Time transfers between the hosts of each pair of ranks.")
    ] = False,
    wait: Annotated[float, typer.Option(help="Wait this long for the results.", metavar="SECONDS")] = 120.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
    *,
    manager: ChosenManager,
) -> int:
    """Measure devices and links of a running job between two of its steps, e.g. `stepscope live check --ranks 0,3`.

    The matrix product is timed at three steps, for each of which training stands still for about 0.2 s; for links, once
    for up to 3 s. Links are measured over TCP between the hosts: not NVLink, InfiniBand or RoCE. PyTorch only.

    The exit code is 0 if all ranks have results, 1 if some have not.
    """
    from stepscope.live.messages import Checked
    from stepscope.present import printable

    kinds = [*(["gemm"] if gemm else []), *(["link"] if link else [])]
    if not kinds:
        raise StepscopeError("nothing to measure: leave out --no-gemm, or add --link")

    async def ask(client: Client) -> list[Answers]:
        there = taking_part(await status_of(client))
        chosen = chosen_ranks(ranks, there) or there
        if len(chosen) > MOST_RANKS:
            raise StepscopeError(f"{len(chosen):,} ranks are too many; name up to {MOST_RANKS}, e.g. --ranks 0,3")
        asked = [await client.check(chosen, kinds, wait_s=wait)]
        while gemm and len(asked) < ROUNDS and not (asked[-1].pending or _failed(asked[-1])):
            asked.append(await client.check(chosen, ["gemm"], wait_s=wait))
        return asked

    asked = manager.call(ask, job)
    results = [one for one in asked[0].results if isinstance(one, Checked)]
    pending = sorted({rank for one in asked for rank in one.pending})
    rounds = _rounds(asked)
    if as_json:
        rows = [
            {"rank": one.rank, "results": one.results, "gemm_rounds_ns": rounds.get(one.rank, []), "error": one.error}
            for one in results
        ]
        print(json.dumps({"check": asked[0].id, "ranks": rows, "pending": pending}))
    else:
        for line in _lines(results, rounds, pending):
            print(printable(line))
    return EXIT_INCOMPLETE if pending or not results or any(_failed(one) for one in asked) else 0


def _failed(answers: Answers) -> bool:
    """Whether a rank could not measure."""
    return any(one.error for one in answers.results)


def _rounds(asked: Sequence[Answers]) -> dict[int, list[int]]:
    """The times of the matrix product on each rank, in ns, one of each round."""
    found: dict[int, list[int]] = {}
    for one in (result for answers in asked for result in answers.results):
        time_ns = getattr(one, "results", {}).get("gemm_ns")
        if time_ns:
            found.setdefault(one.rank, []).append(time_ns)
    return found


def _compared(rank: int, rounds: Mapping[int, Sequence[int]]) -> str:
    """How a device compares with that of the median rank; a ratio only if no round of one is like one of the other."""
    if len(rounds) < 2:
        return ""
    medians = {each: median(times) for each, times in rounds.items()}
    typical = median_low(medians.values())
    usual = next(times for each, times in rounds.items() if medians[each] == typical)
    ratio = medians[rank] / typical
    is_apart = min(rounds[rank]) > max(usual) or max(rounds[rank]) < min(usual)
    if not is_apart or abs(ratio - 1) < ALIKE:
        return ", no clear difference"
    return f", {ratio:.2f}x the median"


def _lines(results: list[Checked], rounds: Mapping[int, Sequence[int]], pending: list[int]) -> Iterator[str]:
    from stepscope.live.capture.links import SENT_BYTES, links_in
    from stepscope.present import duration
    from stepscope.selection import named_numbers

    for one in sorted(results, key=lambda each: each.rank):
        if times := rounds.get(one.rank):
            time_ns = median(times)
            rate = one.results["gemm_flops"] / time_ns / 1000
            span = f" ({duration(min(times))} to {duration(max(times))})" if len(times) > 1 else ""
            yield (
                f"Rank {one.rank}: matrix product {duration(round(time_ns))}{span}, {rate:.2f} TFLOP/s"
                f"{_compared(one.rank, rounds)}"
            )
        for link in links_in(one.results):
            rate = SENT_BYTES / link.sent_ns
            yield f"Rank {one.rank} to {link.peer}: {rate:.2f} GB/s, round trip {duration(link.trip_ns)}"
        if one.error:
            yield f"Rank {one.rank}: {one.error}"
    if pending:
        yield f"No answer from {named_numbers('rank', pending)}"
