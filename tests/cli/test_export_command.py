"""`stepscope export`: what it says was made and left out, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from calling import EXAMPLE, printed

from stepscope.cli import main


def test_what_was_made_and_left_out_is_said_in_few_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")

    text = printed(capsys, "export", EXAMPLE, "--format", "classic", "-o", tmp_path / "out")

    lines = text.splitlines()
    assert lines[0].startswith(f"{tmp_path / 'out'}: ")
    assert lines[0].endswith("as classic")
    assert lines[1].startswith("  profiler/: ")
    assert "Left out" in lines
    assert sum("of ranks 0-3: " in line for line in lines) >= 1
    assert any("flows" in line and line.endswith(": the format has no place for them") for line in lines)
    assert len(lines) < 25


def test_ranks_and_steps_are_chosen_and_programs_get_the_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = ["export", EXAMPLE, "-f", "ascend-text", "-o", out, "--ranks", "2", "--steps", "4", "--limit-mb", "0.02"]

    told = json.loads(printed(capsys, *words, "--json"))

    assert (told["output"], told["format"]) == (str(out), "ascend-text")
    assert {each["file"]: each["size_bytes"] for each in told["files"]} == {
        file.relative_to(out).as_posix(): file.stat().st_size for file in out.rglob("*") if file.is_file()
    }
    assert "trace_view.json" in {each["subject"] for each in told["left_out"]}
    assert len({each["file"].split("/")[0] for each in told["files"]}) == 1
    words[3] = "parquet"
    rows = printed(capsys, *words[:5], tmp_path / "again", "--csv").splitlines()
    assert rows[0] == "file,size_bytes"
    assert printed(capsys, *words[:5], tmp_path / "quiet", "--quiet") == ""


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--format", "pdf"], "give one of chrome, perfetto, classic"),
        (["--format", "parquet", "--limit-mb", "3"], "parquet has no timeline"),
        (["--format", "classic", "--limit-mb", "0"], "give a size above 0"),
        (["--format", "classic", "--ranks", "9"], "no rank 9"),
        (["--format", "classic", "--json", "--csv"], "conflicting formats"),
        ([], "Missing option '--format'"),
    ],
)
def test_wrong_wishes_are_refused_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], problem: str
) -> None:
    text = printed(capsys, "export", EXAMPLE, "-o", tmp_path / "out", *words, code=2)

    assert problem in text
    assert not (tmp_path / "out").exists()


def test_nothing_is_written_into_the_recording_or_over_an_export(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inside = f"{EXAMPLE}/out"
    assert "into which nothing is written" in printed(
        capsys, "export", EXAMPLE, "--format", "classic", "-o", inside, code=2
    )
    assert not Path(inside).exists()
    words = ["export", EXAMPLE, "--format", "parquet", "-o", str(tmp_path)]
    assert main(words) == 0
    capsys.readouterr()
    assert "is there already" in printed(capsys, *words, code=2)


def test_nothing_is_written_to_standard_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    example = Path(EXAMPLE).resolve()
    monkeypatch.chdir(tmp_path)

    text = printed(capsys, "export", example, "--format", "parquet", "-o", "-", code=2)

    assert "an export is written to a directory" in text
    assert not any(tmp_path.iterdir())


def test_a_damaged_input_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, file in enumerate(sorted(Path(EXAMPLE).rglob("*.json*"))):
        content = file.read_bytes()
        target = tmp_path / "in" / file.relative_to(EXAMPLE)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content[: len(content) // 2] if number == 0 else content)

    text = printed(capsys, "export", tmp_path / "in", "--format", "parquet", "-o", tmp_path / "out")

    assert "error: " in text
