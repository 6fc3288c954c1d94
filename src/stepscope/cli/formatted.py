"""What all commands share that print an answer: its format, where it goes, and how wide it is.

Such a command is a function with the parameters `form` and `wide`; `formatted` makes options of them.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any

from stepscope.cli import options as shared
from stepscope.errors import StepscopeError


def formatted(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """Give a command the options `--format`, `--json`, `--csv`, `--output`, `--wide` and `--debug`.

    It gets the `form` that was chosen and `wide`; whatever it prints goes where `--output` says.
    """

    @functools.wraps(command)
    def with_options(**words: Any) -> int | None:
        mine = {name: words.pop(name) for name in described(_options)}
        form = chosen_form(mine["form"], json=mine["json"], csv=mine["csv"])
        with written_to(mine["output"]):
            return command(**words, form=form, wide=mine["wide"])

    own = {name: each for name, each in described(command).items() if name not in ("form", "wide")}
    options = dict(described(_options))
    if "table" in own:
        options["csv"] = options["csv"].replace(annotation=shared.AsCsvOfTables)
    return signed(with_options, {**own, **options})


def _options(
    form: shared.FormatOption = None,
    json: shared.AsJson = False,
    csv: shared.AsCsv = False,
    output: shared.OutputFile = None,
    wide: shared.Wide = False,
    debug: shared.Debug = False,
) -> None:
    """The options of every such command; `--debug` is read by main()."""


def chosen_form(form: shared.Format | None, *, json: bool, csv: bool) -> shared.Format:
    """The format that the options ask for; a table by default.

    Raises:
        StepscopeError: If they ask for several.
    """
    asked: list[shared.Format | None] = [form, "json" if json else None, "csv" if csv else None]
    forms = list(dict.fromkeys(each for each in asked if each is not None))
    if len(forms) > 1:
        raise StepscopeError(f"conflicting formats {' and '.join(forms)}: choose one")
    return forms[0] if forms else "table"


@contextmanager
def written_to(target: Path | None) -> Iterator[None]:
    """Send what is printed to a file, which is written whole or not at all; None or `-`: standard output.

    Raises:
        StepscopeError: If it cannot be written.
    """
    if target is None or str(target) == "-":
        yield
        return
    beside = str(target.parent) if _is_replaced(target) and target.parent.is_dir() else None
    with SpooledTemporaryFile(
        IN_MEMORY, "w+", encoding="utf-8", errors="backslashreplace", newline="\n", dir=beside
    ) as text:
        with redirect_stdout(text):
            yield
        text.seek(0)
        write_whole(target, (part.encode() for part in iter(lambda: text.read(IN_MEMORY), "")))


IN_MEMORY = 16 << 20
"""Size of the longest text that is only in memory before it is written, and of the parts of a longer one."""


def write_whole(target: Path, text: Iterable[bytes]) -> None:
    """Write a file; a full disk costs neither an older one nor leaves half of this one.

    Raises:
        StepscopeError: If it cannot be written.
    """
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp") if _is_replaced(target) else target
    try:
        with draft.open("wb") as file:
            file.writelines(text)
        if draft != target:
            draft.replace(target)
    except OSError as error:
        if draft != target:
            draft.unlink(missing_ok=True)
        raise StepscopeError(
            f"{target}: cannot write the answer: {error.strerror}. Choose a file in a writable directory"
        ) from error


def _is_replaced(target: Path) -> bool:
    """Whether a file takes its place when it is whole; what is no file, such as /dev/null, is written to."""
    return not target.exists() or target.is_file()


@functools.cache  # the same for most commands, and slow to find out
def described(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Parameters with their annotations as objects, to be given by name."""
    # not by typing.get_type_hints, which in Python 3.10 hides the help of options that are None by default
    return {
        name: parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in inspect.signature(function, eval_str=True).parameters.items()
    }


def signed(
    function: Callable[..., int | None], parameters: Mapping[str, inspect.Parameter]
) -> Callable[..., int | None]:
    """The function with these parameters, as the command-line library sees them."""
    function.__signature__ = inspect.Signature(list(parameters.values()))  # type: ignore[attr-defined]
    function.__annotations__ = {name: parameter.annotation for name, parameter in parameters.items()}
    return function
