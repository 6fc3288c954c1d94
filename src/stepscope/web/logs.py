"""What the server prints to standard error while it runs: one line for each thing that failed."""

from __future__ import annotations

import logging
import sys
import traceback

from stepscope.present import printable

NAMES = ("stepscope", "nicegui", "uvicorn", "asyncio", "fastapi")
"""Loggers that report here; all are quiet unless something fails."""

OF_CLIENTS = ("engineio.server", "socketio.server")
"""Loggers of what is wrong with the messages of clients, which is no failure here; reported for debugging alone."""

_NO_FAILURES = ("timeout graceful shutdown", "without completing handshake")
"""What uvicorn logs as an error when it ends, and when a WebSocket is refused."""

LONGEST = 500
"""Characters of a line; the message of an error may hold a whole document."""


class _Line(logging.Formatter):
    """One line, with the kind and text of the error; all of its traceback if asked for."""

    def __init__(self, *, debug: bool) -> None:
        super().__init__()
        self._debug = debug

    def format(self, record: logging.LogRecord) -> str:
        """See the base class."""
        error = record.exc_info[1] if record.exc_info else None
        text = record.getMessage().strip()
        if isinstance(record.msg, BaseException):  # as NiceGUI logs
            error, text = record.msg, "a page failed"
        if error is not None:
            text = f"{text}: {type(error).__name__}: {error}"
        line = printable(" ".join(text.split()))
        line = f"stepscope: {line if len(line) <= LONGEST else line[:LONGEST] + '...'}"
        if error is None:
            return line
        if self._debug:
            return line + "\n" + "".join(traceback.format_exception(error)).rstrip()
        return f"{line} (--debug shows where)"


class _Reported(logging.Filter):
    """Leaves out what was reported before, and what is only the end of the server."""

    def filter(self, record: logging.LogRecord) -> bool:
        """See the base class."""
        error = record.exc_info[1] if record.exc_info else None
        name = type(error).__name__ if error is not None else ""
        return name not in ("_Broken", "CancelledError") and not any(each in str(record.msg) for each in _NO_FAILURES)


def report_failures(*, debug: bool) -> None:
    """Have loggers print what fails to standard error.

    Args:
        debug: Print tracebacks as well.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Line(debug=debug))
    handler.addFilter(_Reported())
    for name in (*NAMES, *OF_CLIENTS):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(logging.WARNING if name == "stepscope" else logging.ERROR)
        logger.disabled = name in OF_CLIENTS and not debug
    logging.getLogger("stepscope.web").setLevel(logging.INFO if debug else logging.WARNING)
