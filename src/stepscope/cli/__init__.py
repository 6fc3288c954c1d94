"""The `stepscope` command: errors become exit codes here and nowhere else."""

from __future__ import annotations

import sys

EXIT_OK, EXIT_FAILED = 0, 2


def main(arguments: list[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: Words after the program's name; those of the process by default.

    Returns:
        0 if the command did its work (inputs that it could not read are listed), 2 if nothing was readable or the
        words make no sense.
    """
    from stepscope.cli.app import app
    from stepscope.errors import StepscopeError

    words = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in words
    try:
        result = app(words, prog_name="stepscope", standalone_mode=False)
    except StepscopeError as error:
        if debug:
            raise
        return _fail(str(error))
    except BrokenPipeError:  # the reader, e.g. `head`, has seen enough
        sys.stderr.close()
        return EXIT_OK
    except KeyboardInterrupt:
        return _fail("interrupted")
    except SystemExit as stop:
        return int(stop.code or 0)
    except Exception as error:
        if debug:
            raise
        return _fail_unexpected(error)
    return int(result or 0)


def _fail(message: str) -> int:
    print(f"stepscope: {message}", file=sys.stderr)
    return EXIT_FAILED


def _fail_unexpected(error: Exception) -> int:
    """Usage errors of the command-line library show themselves; anything else is a fault of ours."""
    show = getattr(error, "show", None)
    if show is not None:
        show(file=sys.stderr)
        return EXIT_FAILED
    return _fail(
        f"internal error: {type(error).__name__}: {error}. Run the same command with --debug and report what it prints."
    )
