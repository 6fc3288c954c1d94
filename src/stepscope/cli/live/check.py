"""`stepscope live check`: measure devices and links of a running job between two steps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from statistics import median
from typing import TYPE_CHECKING, Annotated

import typer

from stepscope.cli.live.capture import EXIT_INCOMPLETE, chosen_ranks
from stepscope.cli.live.connecting import ChosenManager, JobArgument, asks_manager
from stepscope.errors import StepscopeError

if TYPE_CHECKING:
    from stepscope.live.control.client import Answers, Client
    from stepscope.live.messages import Checked

MOST_RANKS = 8
"""Links are measured pair by pair, for which all of them stand still."""


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

    Training stands still for about 0.2 s for a matrix product, and for up to 3 s for links. Links are measured over TCP
    between the hosts: not NVLink, InfiniBand or RoCE. PyTorch only.

    The exit code is 0 if all ranks have results, 1 if some have not.
    """
    from stepscope.live.messages import Checked
    from stepscope.live.show.status import from_json
    from stepscope.present import printable

    kinds = [*(["gemm"] if gemm else []), *(["link"] if link else [])]
    if not kinds:
        raise StepscopeError("nothing to measure: leave out --no-gemm, or add --link")

    async def ask(client: Client) -> Answers:
        there = [one.rank for one in from_json(await client.status()).ranks if one.state != "lost"]
        chosen = chosen_ranks(ranks, there) or there
        if len(chosen) > MOST_RANKS:
            raise StepscopeError(f"{len(chosen):,} ranks are too many; name up to {MOST_RANKS}, e.g. --ranks 0,3")
        return await client.check(chosen, kinds, wait_s=wait)

    answers = manager.call(ask, job)
    results = [one for one in answers.results if isinstance(one, Checked)]
    if as_json:
        rows = [{"rank": one.rank, "results": one.results, "error": one.error} for one in results]
        print(json.dumps({"check": answers.id, "ranks": rows, "pending": answers.pending}))
    else:
        for line in _lines(results, answers.pending):
            print(printable(line))
    return EXIT_INCOMPLETE if answers.pending or not results or any(one.error for one in results) else 0


def _lines(results: list[Checked], pending: list[int]) -> Iterator[str]:
    from stepscope.present import duration
    from stepscope.selection import named_numbers

    typical = median([one.results["gemm_ns"] for one in results if "gemm_ns" in one.results] or [0])
    for one in sorted(results, key=lambda each: each.rank):
        if "gemm_ns" in one.results:
            time_ns = one.results["gemm_ns"]
            rate = one.results["gemm_flops"] / time_ns / 1000
            yield (
                f"Rank {one.rank}: matrix product {duration(time_ns)}, {rate:.2f} TFLOP/s, "
                f"{time_ns / max(typical, 1):.2f}x the median"
            )
        for name, time_ns in one.results.items():
            if name.startswith("link_") and not name.endswith("_latency_ns"):
                peer = name.removeprefix("link_").removesuffix("_ns")
                latency_ns = one.results.get(f"link_{peer}_latency_ns", 0)
                rate = (4 << 20) / time_ns
                yield f"Rank {one.rank} to {peer}: {rate:.2f} GB/s, round trip {duration(latency_ns)}"
        if one.error:
            yield f"Rank {one.rank}: {one.error}"
    if pending:
        yield f"No answer from {named_numbers('rank', pending)}"
