"""What another program prints, within a bounded time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress


async def output_of(
    command: Sequence[str], patience_s: float, environment: Mapping[str, str] | None = None
) -> tuple[int, bytes, str]:
    """Run a program, and kill it if it takes too long or the caller is cancelled.

    Args:
        command: Program and arguments.
        patience_s: How long it may take, in seconds.
        environment: Its environment variables. Default: those of this process.

    Returns:
        Exit code, standard output and standard error.

    Raises:
        asyncio.TimeoutError: If it has not ended in time.
        OSError: If it cannot be started.
    """
    running = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
    )
    try:
        out, problems = await asyncio.wait_for(running.communicate(), patience_s)
    finally:
        if running.returncode is None:
            with suppress(ProcessLookupError):
                running.kill()
            await running.wait()
    return running.returncode or 0, out, problems.decode(errors="replace")
