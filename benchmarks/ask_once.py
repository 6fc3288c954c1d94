"""Ask one recording one question, or list the questions; see `peaks.py`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

from ask import questions
from stepscope import open_run
from stepscope.cli import main as command_line
from stepscope.errors import Unavailable
from stepscope.run import kept_answers

LIST, COMMAND = "list", "command"


def main(path: Path, kind: str, words: Sequence[str]) -> int:
    """Ask it, or print a line for each question: its kind, a tab, its name.

    Args:
        path: The recording.
        kind: `list`, `command`, or a kind of `ask.py`.
        words: A command without the path, or the name of a question.
    """
    if kind == COMMAND:
        sys.argv[1:] = [words[0], str(path), *words[1:]]
        return command_line()
    run = open_run([path])
    for of_kind, name, ask in questions(run):
        if kind == LIST:
            print(of_kind, name, sep="\t")
        elif [of_kind, name] == [kind, *words]:
            with suppress(Unavailable):  # that there is no answer is an answer
                ask(run)
    return 0


if __name__ == "__main__":
    with patch.object(kept_answers, "code_version", return_value=None):  # no answer is kept, so all is computed
        sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
