"""The errors that stepscope raises on purpose. Each message names the thing, the place and the remedy."""

from stepscope.paths import shown


class StepscopeError(Exception):
    """Base of all errors that a user can act on; the CLI prints its text and no traceback."""


class NothingReadable(StepscopeError):
    """No input under the given paths could be read."""


class UnreadableInput(StepscopeError):
    """One input cannot be read at all; the others still can.

    Args:
        path: File or directory that failed.
        problem: What is wrong with it, with the place where known (byte, line, table).
        remedy: What the user can do about it.
    """

    def __init__(self, path: object, problem: str, remedy: str) -> None:
        self.path = shown(str(path))
        super().__init__(f"{self.path}: {problem}. {remedy}")
        self.problem = problem
        self.remedy = remedy


class UnknownColumn(StepscopeError):
    """A column that a table does not have; the text lists those that it has."""


class Unavailable(StepscopeError):
    """An answer that this data cannot give; the text is the reason that a surface shows instead."""


class ProfilerPathError(StepscopeError):
    """There is no recording where one was asked for."""
