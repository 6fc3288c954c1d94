"""What `stepscope record --live` says when its command is over: what was traced and what to do next, or why nothing."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from stepscope.cli.recorded import counted_steps, cut_off, why_none_trained
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
    ranks = {one["rank"] for one in started}
    jobs = list(dict.fromkeys(Path(one["directory"]).parent for one in started))
    problems = "".join(
        f" (records are missing: {text})" for text in dict.fromkeys(one["problem"] for one in ended) if text
    )
    places = " ".join(shlex.quote(str(job)) for job in jobs)
    killed = cut_off(ranks - {one["rank"] for one in ended}, "the last seconds")
    traced = f"{plural(len(ranks), 'rank')} traced{_steps(ended)} in {places}{killed}{problems}"
    return f"{traced}; next: stepscope analyze {places}"


def _steps(ended: list[dict[str, Any]]) -> str:
    if not ended:
        return ""
    counted = counted_steps([one["steps"] for one in ended])
    return f", {counted}, {plural(sum(one['ranges'] for one in ended), 'range')}"


def _values(said: Signs, kind: str) -> list[dict[str, Any]]:
    return [json.loads(text) for text in said.of(kind)]
