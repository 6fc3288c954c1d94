"""Loading the compiled decoder: what it leaves alone in the process, and what happens if it is missing or wanted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from stepscope.sources.native import library
from stepscope.sources.native.library import GivenColumns, NewColumn, load

IMPORT = "from stepscope.sources.native import library; print(library.is_available())"


def python(code: str, wanted: str | None) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own, with `STEPSCOPE_NATIVE` set or not."""
    environment = {name: value for name, value in os.environ.items() if name != "STEPSCOPE_NATIVE"}
    environment |= {"STEPSCOPE_NATIVE": wanted} if wanted is not None else {}
    return subprocess.run([sys.executable, "-c", code], check=False, env=environment, capture_output=True, text=True)


def test_functions_of_the_interpreter_keep_their_prototypes() -> None:
    code = (
        "import ctypes, polars as pl\n"
        "names = ('PyCapsule_New', 'PyCapsule_GetPointer')\n"
        "before = [(getattr(ctypes.pythonapi, n).restype, getattr(ctypes.pythonapi, n).argtypes) for n in names]\n"
        "from stepscope.sources import nesting\n"
        "frame = pl.DataFrame({'start_ns': [0, 1], 'duration_ns': [9, 2], 'thread': [1, 1]})\n"
        "assert nesting.enclosing(frame)['parent'].to_list() == [None, 0]\n"
        "after = [(getattr(ctypes.pythonapi, n).restype, getattr(ctypes.pythonapi, n).argtypes) for n in names]\n"
        "assert before == after, after\n"
    )

    assert python(code, None).stderr == ""


def test_it_can_be_switched_off() -> None:
    assert python(IMPORT, "0").stdout == "False\n"


def test_a_decoder_that_is_wanted_must_be_there(tmp_path: Path) -> None:
    code = f"import pathlib; pathlib.Path.is_file = lambda path: path.name != '_native.so'; {IMPORT}"

    assert python(code, None).stdout == "False\n"
    assert "the decoder was not compiled" in python(code, "1").stderr


def test_what_is_no_decoder_is_not_loaded(tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("not a library")

    with pytest.raises(ImportError, match="not compiled"):
        load(tmp_path / "missing.so")
    with pytest.raises(ImportError, match="cannot be loaded"):
        load(tmp_path / "text.so")


@pytest.mark.skipif(not library.is_available(), reason="no compiled decoder here")
def test_a_decoder_of_another_version_is_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_VERSION", -1)

    with pytest.raises(ImportError, match="version"):
        load()


@pytest.mark.skipif(not library.is_available(), reason="no compiled decoder here")
def test_a_column_that_polars_does_not_take_is_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    parent, depth, ranges = NewColumn(), NewColumn(), pl.Series([0, 0])
    given = GivenColumns(ranges, ranges, ranges)
    assert library.loaded().ss_nest(*given.pointers, 2, 1, *parent.pointers, *depth.pointers) == 0
    monkeypatch.setattr(pl, "Series", lambda column: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        parent.series()

    release = 8  # the ninth word of an `ArrowArray`
    assert parent._array.words[release] == 0
    assert depth._array.words[release] != 0
    library.loaded().ss_drop(*depth.pointers)
