"""Opening a run for a command, with progress on the way."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stepscope.cli.progress import ProgressBar
from stepscope.run import Run, open_run


def opened(
    paths: Sequence[Path],
    *,
    ranks: str | None,
    steps: str | None,
    use_store: bool,
    quiet: bool = False,
) -> Run:
    """Open the run under `paths`, with a progress bar if that takes a while.

    Raises:
        NothingReadable: If no input could be read.
        StepscopeError: If the selection of ranks or steps is empty or no list of numbers.
    """
    with ProgressBar(quiet=quiet) as progress:
        return open_run(list(paths), use_store=use_store, ranks=ranks, steps=steps, progress=progress)
