"""Let MindInsight read what stepscope wrote, and compare its answers with our own tables.

    python benchmarks/clients/mindinsight.py --mindinsight VENV/bin OUTPUT_DIRECTORY

The output directory holds `profiler/`. A copy is served on this host, the requests of the pages that apply are sent,
and the answers are compared. Exits with 1 if any answer is an error or wrong.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from pathlib import Path
from typing import Any

from communication import communication_pages
from facts import Facts, facts_of, recorded_run
from mindinsight_pages import PAGE_ROWS, Page, pages
from server import Server, serving

_INFO = re.compile(r"profiler_info_(\d+)\.json")


def main() -> None:
    """Serve, ask, compare, print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("directory", type=Path, help="output directory, with profiler/ in it")
    parser.add_argument("--mindinsight", type=Path, required=True, help="bin directory of its environment")
    arguments = parser.parse_args()
    profiler = arguments.directory / "profiler"
    facts = _facts(arguments.directory)
    with (
        tempfile.TemporaryDirectory() as room,
        serving(arguments.mindinsight.absolute(), profiler, Path(room)) as server,
    ):
        asked = (*pages(profiler, facts, queue_records), *communication_pages(profiler, facts))
        wrong = [page.name for page in asked if not _answered(server, page)]
    print(f"\n{len(wrong)} wrong answers" if wrong else "\nall answers as expected")
    raise SystemExit(1 if wrong else 0)


def _facts(directory: Path) -> dict[int, Facts]:
    """Figures of each rank that has a profiler_info, without which no client sees it."""
    listed = sorted(int(match[1]) for p in (directory / "profiler").iterdir() if (match := _INFO.fullmatch(p.name)))
    run = recorded_run(directory)
    if run is None:
        raise SystemExit(f"{directory}/profiler/recording: no raw data to compare with")
    known = facts_of(run)
    if listed != sorted(known):
        raise SystemExit(f"recorded ranks {sorted(known)}, but profiler_info of ranks {listed}")
    return known


def _answered(server: Server, page: Page) -> bool:
    """Ask, print a line; whether all was right."""
    status, text = server.ask(page.path, page.params, page.body)
    problem = text.decode(errors="replace")[:200] if status != 200 else None
    if problem is None:
        try:
            problem = page.check(_with_further_rows(server, page, json.loads(text)))
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            problem = f"unexpected answer ({type(error).__name__}: {error}): {text.decode(errors='replace')[:120]}"
    print(f"{page.name:75} {status} {len(text):9}  {problem or 'ok'}")
    return problem is None


def _with_further_rows(server: Server, page: Page, answer: Any) -> Any:
    """A table with the rows of its other pages."""
    if not isinstance(answer, dict) or page.body is None or "object" not in answer:
        return answer
    for number in range(1, -(-answer["size"] // PAGE_ROWS)):
        body = {**page.body, "group_condition": {"limit": PAGE_ROWS, "offset": number}}
        _, text = server.ask(page.path, page.params, body)
        answer["object"] += json.loads(text)["object"]
    return answer


def queue_records(file: Path) -> int:
    """Records of the queue in a file of the input pipeline: lines of type 1."""
    return sum(line.startswith("1 ") for line in file.read_text().splitlines())


if __name__ == "__main__":
    main()
