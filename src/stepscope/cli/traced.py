"""What `stepscope record --live` says when its command is over: what was traced and what to do next, or why nothing."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from stepscope.cli.recorded import why_none_trained
from stepscope.live.worker.signs import ENDED, STARTED
from stepscope.present import plural
from stepscope.record import signs
from stepscope.record.signs import Signs


def outcome(said: Signs, framework: str | None) -> str:
    """What a command traced, given the signs of its processes and the framework to trace, if one was chosen."""
    started, ended = _values(said, STARTED), _values(said, ENDED)
    if not started:
        failed = said.of(signs.FAILED)
        return f"nothing was traced: {'; '.join(failed) if failed else why_none_trained(said, framework)}"
    ranks = sorted({one["rank"] for one in started})
    jobs = list(dict.fromkeys(Path(one["directory"]).parent for one in started))
    problems = "".join(
        f" (records are missing: {text})" for text in dict.fromkeys(one["problem"] for one in ended) if text
    )
    places = " ".join(shlex.quote(str(job)) for job in jobs)
    traced = f"{plural(len(ranks), 'rank')} traced{_steps(ended)} in {places}{_cut_off(ranks, ended)}{problems}"
    return f"{traced}; next: stepscope analyze {places}"


def _steps(ended: list[dict[str, Any]]) -> str:
    if not ended:
        return ""
    counts = [one["steps"] for one in ended]
    least, most = min(counts), max(counts)
    counted = f"{most:,}" if least == most else f"{least:,} to {most:,}"
    return f", {counted} step{'s' * (most != 1)}, {plural(sum(one['ranges'] for one in ended), 'range')}"


def _cut_off(ranks: list[int], ended: list[dict[str, Any]]) -> str:
    """Ranks that were killed."""
    cut = sorted(set(ranks) - {one["rank"] for one in ended})
    if not cut:
        return ""
    who = f"rank {cut[0]} was" if len(cut) == 1 else f"{len(cut)} ranks were"
    return f" ({who} killed: the last seconds may be missing)"


def _values(said: Signs, kind: str) -> list[dict[str, Any]]:
    return [json.loads(text) for text in said.of(kind)]
