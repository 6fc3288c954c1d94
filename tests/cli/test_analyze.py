"""`stepscope analyze` on the shipped recording and on damaged input."""

from __future__ import annotations

import gzip
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import jsonschema
import polars as pl
import pytest

import stepscope.report
from every_format import FORMATS
from stepscope.advice import Finding
from stepscope.advice.daily import Prices
from stepscope.advice.finding import Related
from stepscope.analysis.job.segments import WORK
from stepscope.analysis.step.idle import CAUSES
from stepscope.cli import main
from stepscope.cli.analyze import _show_findings
from stepscope.cli.output import Output
from stepscope.pages import job
from stepscope.report.answers import Answers
from stepscope.report.findings import place_line
from stepscope.run import Run
from stepscope.tables.steps import WINDOWS
from tests.cli.calling import document, printed

EXAMPLE = Path(__file__).parents[2] / "examples" / "ddp_gloo_4rank_slow_loader"
SCHEMA = Path(stepscope.report.__file__).parent / "analysis.schema.json"


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A copy of the shipped recording that a test may damage."""
    return Path(shutil.copytree(EXAMPLE, tmp_path / "recording"))


def test_the_slow_loader_of_the_example_is_named(capfd) -> None:
    found = document(capfd, "analyze", EXAMPLE)

    (slow,) = found["slow_ranks"]
    assert (slow["rank"], slow["kind"]) == (2, "data_loading")
    assert 40e6 < slow["excess_ns"] < 90e6
    assert found["findings"][0]["where"] == {"rank": 2}


def test_the_json_follows_its_schema(capfd) -> None:
    found = document(capfd, "analyze", EXAMPLE)

    jsonschema.validate(found, json.loads(SCHEMA.read_text()))


@pytest.mark.parametrize("form", FORMATS)
def test_the_json_of_each_format_follows_the_schema(capfd, tmp_path: Path, form: str) -> None:
    FORMATS[form](tmp_path)

    found = document(capfd, "analyze", tmp_path, "--no-store")

    jsonschema.validate(found, json.loads(SCHEMA.read_text()))


def test_the_schema_has_all_causes_of_idle_time_and_all_kinds_of_windows() -> None:
    sections = json.loads(SCHEMA.read_text())["properties"]

    assert sections["idle"]["items"]["properties"]["cause"]["enum"] == list(CAUSES)
    assert sections["slow_ranks"]["items"]["properties"]["kind"]["enum"] == list(WORK)
    assert sections["steps"]["items"]["properties"]["window"]["enum"] == list(WINDOWS)


def test_the_parts_of_every_step_sum_to_its_window(capfd) -> None:
    for row in document(capfd, "analyze", EXAMPLE)["steps"]:
        parts = ("computing_ns", "communication_not_overlapped_ns", "memory_not_overlapped_ns", "free_ns")
        assert sum(row[p] for p in parts) == row["window_ns"]


def test_the_terminal_says_the_verdict_first(capfd) -> None:
    out = printed(capfd, "analyze", EXAMPLE)
    assert out.startswith("Rank 2 waits for data")
    assert "Fix:" in out
    assert "Time by rank" in out


def test_all_findings_are_shown_those_beyond_the_third_in_a_line(capfd) -> None:
    exposed = {
        "exposed_ns": 5_000_000,
        "step_ns": 50_000_000,
        "ratio": 0.1,
        **dict.fromkeys(("share_ratio", "kind", "rate")),
    }
    findings = [Finding("memory-copies", "exposed", exposed, 10**6 * (9 - n), 0.1, replayed=True) for n in range(1, 6)]

    _show_findings(Output(), Answers({}, findings), "en")

    out = capfd.readouterr().out
    assert out.count("Why:") == 3
    assert "4. The device only copies memory" in out
    assert "Saves about 5.00 ms per step (10%); severity: high [memory-copies]" in out
    assert "5. The device only copies memory" in out


def test_operators_show_their_mean_beside_their_own_time() -> None:
    totals = {"count": 4, "total_ns": 4000, "self_ns": 400, "min_ns": 500, "max_ns": 1500}
    table = pl.DataFrame([{"rank": 0, "name": "aten::mm", **totals}])

    shown = job.operators(Run.from_frames({}), table).rows

    assert shown.select("self_ns", "total_ns", "mean_ns").row(0) == (400, 4000, 1000)


def test_kernels_are_shares_of_all_device_work_and_point_to_communication() -> None:
    common = {"rank": 0, "type": None, "core": None, "count": 1, "min_ns": 1, "max_ns": 1}
    kernels = [
        {**common, "kind": "compute", "name": "gemm", "total_ns": 100},
        {**common, "kind": "communication", "name": "nccl", "total_ns": 300},
    ]

    derived = job.kernels(Run.from_frames({}), pl.DataFrame(kernels))

    assert "see Communication" in derived.more
    assert derived.rows.select("name", "share_ratio").rows() == [("gemm", 0.25)]


def test_a_second_analysis_reads_the_store_and_says_the_same(capfd, monkeypatch) -> None:
    first = document(capfd, "analyze", EXAMPLE)
    monkeypatch.setattr("stepscope.sources.registry.SOURCES", _readers_that_fail())

    assert document(capfd, "analyze", EXAMPLE) == first


def _readers_that_fail() -> list[object]:
    """The sources, whose `read` may no longer be called."""
    from stepscope.sources.registry import SOURCES

    class Closed:
        def __init__(self, source: object) -> None:
            self._source = source

        def __getattr__(self, name: str) -> object:
            if name == "read":
                raise AssertionError("the input was read again")
            return getattr(self._source, name)

    return [Closed(source) for source in SOURCES]


def test_ranks_and_steps_can_be_selected(capfd) -> None:
    every = document(capfd, "analyze", EXAMPLE)
    wanted = sorted({row["step"] for row in every["steps"]})[1:3]

    found = document(capfd, "analyze", EXAMPLE, "--ranks", "0,2-3", "--steps", f"{wanted[0]}-{wanted[1]}")

    assert {row["rank"] for row in found["steps"]} == {0, 2, 3}
    assert {row["step"] for row in found["steps"]} == set(wanted)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--ranks", "9"], "no rank 9"),
        (["--ranks", "x"], "x"),
        (["--steps", "900"], "no step 900"),
        (["--json", "/nowhere/at/all.json"], "cannot write"),
    ],
)
def test_senseless_words_give_one_line_and_exit_2(capfd, words, text) -> None:
    assert main(["analyze", str(EXAMPLE), *words]) == 2

    captured = capfd.readouterr()
    assert text in captured.err
    assert "Traceback" not in captured.err


def test_nothing_to_read_exits_2_and_says_what_to_do(capfd, tmp_path) -> None:
    assert main(["analyze", str(tmp_path)]) == 2
    err = printed(capfd, "analyze", tmp_path / "absent", code=2)
    assert "no recording that can be read" in err
    assert "absent" in err


def damage(path: Path, kind: str) -> None:
    """Spoil one trace in a named way."""
    text = gzip.decompress(path.read_bytes())
    plain = path.with_suffix("")
    if kind == "empty":
        path.write_bytes(b"")
        return
    if kind == "cut gzip":
        path.write_bytes(path.read_bytes()[:2000])
        return
    path.unlink()
    if kind == "no trace":
        plain.write_text('{"weights": [1, 2, 3]}')
    elif kind == "deep":
        plain.write_text('{"traceEvents": [' + '{"a":' * 200_000 + "}" * 200_000 + "]}")
    elif kind == "cut json":
        plain.write_bytes(text[: len(text) // 2])
    elif kind == "nan":
        trace = json.loads(text)
        spans = [e for e in trace["traceEvents"] if e.get("ph") == "X"]
        spans[5]["dur"], spans[6]["dur"], spans[7]["ts"] = float("nan"), -7, float("nan")
        plain.write_text(json.dumps(trace))
    elif kind == "not json":
        plain.write_bytes(b'{"traceEvents": [{"ph": "X", oops')


@pytest.mark.parametrize("kind", ["empty", "cut gzip", "no trace", "deep", "cut json", "nan", "not json"])
def test_one_damaged_file_is_named_and_hides_no_good_one(capfd, recording, kind) -> None:
    victim = min(p for p in recording.iterdir() if "rank-3" in p.name)
    damage(victim, kind)

    assert main(["analyze", str(recording), "--json", str(recording.parent / "out.json")]) == 0

    captured = capfd.readouterr()
    found = json.loads((recording.parent / "out.json").read_text())
    assert "Traceback" not in captured.out + captured.err
    assert {0, 1, 2} <= {row["rank"] for row in found["ranks"]}
    assert (2, "data_loading") in {(row["rank"], row["kind"]) for row in found["slow_ranks"]}
    told = [*found["unread"], *(i for i in found["issues"] if i["severity"] != "note")]
    stem = victim.name.split(".")[0]
    assert any(stem in entry["file"] and entry["remedy"] for entry in told), told


def test_two_files_of_one_rank_are_told(capfd, recording) -> None:
    original = min(p for p in recording.iterdir() if "rank-1" in p.name)
    shutil.copy(original, recording / f"copy-of-{original.name}")

    found = document(capfd, "analyze", recording)

    assert len(found["ranks"]) == 4
    assert any("copy-of" in str(issue) for issue in found["issues"])


def test_a_directory_of_unrelated_files_is_passed_by(capfd, recording) -> None:
    for n in range(300):
        (recording / f"notes-{n}.txt").write_text("nothing")

    assert len(document(capfd, "analyze", recording)["ranks"]) == 4


def test_the_input_directory_is_left_as_it_was(recording) -> None:
    before = {p: p.stat().st_mtime_ns for p in recording.rglob("*")}

    main(["analyze", str(recording)])

    assert {p: p.stat().st_mtime_ns for p in recording.rglob("*")} == before


@pytest.mark.parametrize("packed", [True, False])
def test_a_rank_of_which_a_part_was_lost_is_not_called_slow(capfd, recording: Path, packed: bool) -> None:
    file = next(recording.glob("rank-1.*"))
    if packed:
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    else:
        text = gzip.decompress(file.read_bytes())
        file.unlink()
        file.with_suffix("").write_bytes(text[: len(text) * 2 // 3])

    found = document(capfd, "analyze", recording)

    assert [(row["rank"], row["kind"]) for row in found["slow_ranks"]] == [(2, "data_loading")]
    assert "error" in {issue["severity"] for issue in found["issues"]}


def test_a_full_disk_costs_no_older_report(capfd, recording: Path, tmp_path: Path, monkeypatch) -> None:
    report = tmp_path / "report.json"
    report.write_text("older")

    opened = Path.open

    def full(path: Path, *words: str, **options: str) -> IO[Any]:
        if not path.name.startswith(f".{report.name}"):
            return opened(path, *words, **options)
        path.touch()
        return opened(Path("/dev/full"), *words, **options)

    monkeypatch.setattr(Path, "open", full)
    assert "No space left" in printed(capfd, "analyze", recording, "--json", report, code=2)
    assert report.read_text() == "older"
    assert list(tmp_path.glob(".report*")) == []


def test_findings_and_verdict_come_in_chinese_with_the_same_figures(capfd) -> None:
    found = {}
    for language in ("en", "zh"):
        found[language] = document(capfd, "analyze", EXAMPLE, "--language", language)
        jsonschema.validate(found[language], json.loads(SCHEMA.read_text()))

    assert found["zh"]["language"] == "zh"
    assert found["zh"]["verdict"].startswith("rank 2 在等待数据（每步 23.20 ms，14%）。")
    assert found["en"]["verdict"].startswith("Rank 2 waits for data (23.20 ms per step, 14%). ")
    texts = ("summary", "cause", "action", "saving_basis")
    for one, other in zip(found["en"]["findings"], found["zh"]["findings"], strict=True):
        assert all(one[name].isascii() and not other[name].isascii() for name in texts)
        assert {**one, **dict.fromkeys(texts)} == {**other, **dict.fromkeys(texts)}


def test_the_terminal_and_csv_are_chinese_too(capfd) -> None:
    text = printed(capfd, "analyze", EXAMPLE, "--language", "zh", "--quiet")
    table = printed(capfd, "analyze", EXAMPLE, "--language", "zh", "--csv")

    assert text.startswith("rank 2 在等待数据")
    assert "原因：" in text and "措施：" in text and "严重程度：高 [slow-rank]" in text
    assert "rank 2 在等待数据" in table and table.startswith("rule,severity,summary,cause,action,saving_ns")


def test_the_range_of_a_saving_holds_it(capfd) -> None:
    (finding, *_) = document(capfd, "analyze", EXAMPLE)["findings"]
    assert (
        finding["saving_low_ns"] < finding["saving_ns"] < finding["saving_high_ns"] < finding["evidence"]["excess_ns"]
    )
    assert finding["saving_basis"].startswith("from the lower to the upper quartile")


def test_what_follows_from_a_finding_stands_below_it_with_the_reason(capfd: pytest.CaptureFixture[str]) -> None:
    unknown = dict.fromkeys(("share_ratio", "kind", "rate"))
    exposed = {"exposed_ns": 5_000_000, "step_ns": 50_000_000, "ratio": 0.1, **unknown}
    code = ("/a/very/long/way/to/the/project/with/many/directories/in/it/training/train.py(12): step",)
    root = Finding(
        "memory-copies",
        "exposed",
        exposed,
        10**6,
        0.1,
        replayed=True,
        code=code,
        where={"operators": ["aten::mm", "aten::add"]},
    )
    effect = Finding(
        "memory-copies", "exposed", exposed, 10**5, 0.01, explained_by=(Related("memory-copies", "exposed", (3,)),)
    )
    apart = replace(root, saving_ns=10**4, code=())

    _show_findings(Output(), Answers({}, [root, effect, apart]), "en", Prices(10, "GPU", 2))

    shown = capfd.readouterr().out
    assert "   At: /a/very/long/way/to/the/project/with/many/directories/in/it/training/train.py(12): step" in shown
    assert "; operators: aten::mm and aten::add" in shown
    assert "(10%); 24.0 GPU-hours, 48.0 USD a day; severity: high [memory-copies]" in shown
    assert "   Because of memory-copies (rank 3): The device only copies" in shown
    assert "\n2. The device only" in shown
    assert "3. " not in shown


def test_a_place_is_cut_in_its_directories() -> None:
    code = ("/a/very/long/way/to/the/project/with/many/directories/in/it/training/train.py(12): step", "b.py(3): f")

    unknown = dict.fromkeys(("share_ratio", "kind", "rate"))
    exposed = {"exposed_ns": 5_000_000, "step_ns": 50_000_000, "ratio": 0.1, **unknown}
    line = place_line(Finding("memory-copies", "exposed", exposed, code=code), "en", 60)

    assert line == "At: .../in/it/training/train.py(12): step (and 1 more)"
    assert place_line(Finding("memory-copies", "exposed", exposed)) == ""


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--gpus", "0"], "give a number of at least 1"),
        (["--currency", "EUR"], "give --gpu-hour-price as well"),
        (["--gpu-hour-price", "-2"], "give a price of at least 0"),
    ],
)
def test_impossible_prices_are_refused(words: list[str], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", str(EXAMPLE), *words]) == 2
    assert problem in capsys.readouterr().err


def test_the_language_has_the_short_name_that_reports_take(capfd) -> None:
    assert printed(capfd, "analyze", EXAMPLE, "-q", "--lang", "zh") == printed(
        capfd, "analyze", EXAMPLE, "-q", "--language", "zh"
    )
