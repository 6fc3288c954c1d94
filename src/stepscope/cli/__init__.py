"""The `stepscope` command: errors become exit codes here and nowhere else."""

from __future__ import annotations

import gc
import io
import os
import re
import signal
import sys
from typing import NoReturn

from stepscope._allocator import spare_memory

EXIT_OK, EXIT_FAILED, EXIT_INTERRUPTED, EXIT_TERMINATED = 0, 2, 130, 143

GARBAGE = 10_000
"""New objects before Python looks for cycles among them; a command makes few cycles and many objects that stay."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line: the words after the program's name, those of the process by default.

    Returns:
        0 if the command did its work (inputs that could not be read are listed), 2 if nothing was readable, the
        arguments are invalid, or the answer could not be written, 130 after Ctrl-C.
    """
    if arguments is not None:
        return _main(arguments)
    spare_memory()
    gc.set_threshold(GARBAGE)
    signal.signal(signal.SIGTERM, _end)
    code = _main(sys.argv[1:])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process only ends, so Ctrl-C has nothing to stop any more
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    gc.freeze()  # the process ends here: nothing is worth collecting any more
    return code


class _Terminated(BaseException):
    """SIGTERM came; no `SystemExit`, which may come from the code of a plug-in and costs only that."""


def _end(_number: int, _frame: object) -> NoReturn:
    """End as on Ctrl-C, so that nothing temporary is left behind."""
    raise _Terminated


def _main(words: list[str]) -> int:
    debug = "--debug" in words
    if debug:
        os.environ["STEPSCOPE_DEBUG"] = "1"
    try:
        _prepare_output()
        code = _run(words)
        sys.stdout.flush()  # here, where a full disk or a closed pipe can still be reported
        return code
    except BrokenPipeError:  # the reader, e.g. `head`, has seen enough
        _drop_output()
        return EXIT_OK
    except KeyboardInterrupt:
        _fail("interrupted")
        return EXIT_INTERRUPTED
    except _Terminated:
        return EXIT_TERMINATED
    except Exception as error:
        if isinstance(error, OSError):
            _drop_output()
        if debug and not hasattr(error, "show"):  # a usage error needs no traceback
            raise
        return _explain(error)


def _run(words: list[str]) -> int:
    from stepscope.cli.app import program_for

    try:
        code = int(program_for(words)(words, prog_name="stepscope", standalone_mode=False) or 0)
    except SystemExit as stop:
        return int(stop.code or 0)
    if code == EXIT_INTERRUPTED:  # what the command-line library makes of Ctrl-C
        raise KeyboardInterrupt
    return code


def _prepare_output() -> None:
    """Make sure that there is a standard output, and that it takes any character."""
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """Send what is still to be written nowhere, so that the end of the process does not fail over it again."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.close(devnull)


def _explain(error: Exception) -> int:
    """One line for an error, and its exit code."""
    from stepscope.errors import StepscopeError

    if isinstance(error, StepscopeError):
        return _fail(str(error))
    show = getattr(error, "show", None)
    if show is not None:  # a usage error of the command-line library
        error.message = _plain(str(getattr(error, "message", "")))  # type: ignore[attr-defined]
        show(file=sys.stderr)
        return EXIT_FAILED
    if isinstance(error, OSError):
        return _fail(
            f"{error.filename or 'the output'}: {error.strerror or error}. Check free disk space and permissions"
        )
    if type(error).__module__.startswith("polars") and any(name in str(error) for name in ("parquet", "small.arrow")):
        return _fail(
            f"a stored table cannot be read ({error}). Run `stepscope cache clear`, then the same command again"
        )
    return _fail(
        f"internal error: {type(error).__name__}: {error}. Run the same command with --debug and report what it prints."
    )


def _plain(problem: str) -> str:
    """A problem with a value, without the words of a parser."""
    for kind, what in (("integer", "whole number"), ("number", "number")):
        problem = re.sub(rf"Input should be a valid {kind}\b.*", f"give a {what}", problem)
    return problem


def _fail(message: str) -> int:
    from stepscope.cli.notes import note

    note(message)
    return EXIT_FAILED
