"""The log of a command that runs for long."""

from __future__ import annotations

import logging
import sys

from stepscope.present import printable


def log_to_stderr() -> None:
    """Write what happens to standard error, with the time."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.getLogger("stepscope")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)


class _Formatter(logging.Formatter):
    """Texts that others have sent, e.g. names of hosts, cannot steer the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """See the base class."""
        return printable(super().format(record), keep="\n\t")
