"""The log of a command that runs for long."""

from __future__ import annotations

import logging
import sys


def log_to_stderr() -> None:
    """Write what happens to standard error, with the time."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.getLogger("stepscope")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
