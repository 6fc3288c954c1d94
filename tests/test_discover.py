"""Finding inputs."""

from __future__ import annotations

import gzip
import json
import os
import time
from pathlib import Path

import pytest

from builders import ToySource, write_toy
from stepscope.errors import StepscopeError
from stepscope.sources.base import Input
from stepscope.sources.discover import Discovered, discover
from stepscope.sources.kineto import KinetoSource


def find(*paths: Path) -> Discovered:
    return discover(paths, [ToySource()])


def names(found: Discovered) -> list[str]:
    return [item.path.name for item in found.inputs]


def test_files_and_directories_are_found_at_any_depth(tmp_path: Path) -> None:
    write_toy(tmp_path / "a" / "b" / "c" / "deep.json")
    write_toy(tmp_path / "top.json")
    write_toy(tmp_path / "a" / "rank" / "toy.json")

    found = find(tmp_path)

    assert sorted(names(found)) == ["deep.json", "rank", "top.json"]
    assert found.problems == []


def test_a_claimed_directory_is_not_entered(tmp_path: Path) -> None:
    write_toy(tmp_path / "rank" / "toy.json")
    write_toy(tmp_path / "rank" / "inside" / "other.json")

    assert names(find(tmp_path)) == ["rank"]


def test_a_path_named_twice_is_found_once(tmp_path: Path) -> None:
    file = write_toy(tmp_path / "one.json")

    assert names(find(file, tmp_path, file)) == ["one.json"]


def test_links_are_followed_but_not_in_circles(tmp_path: Path) -> None:
    write_toy(tmp_path / "away" / "linked.json")
    job = tmp_path / "job"
    job.mkdir()
    (job / "file.json").symlink_to(tmp_path / "away" / "linked.json")
    (job / "loop").symlink_to(job)
    (job / "nowhere").symlink_to(job / "missing")

    found = find(job)

    assert names(found) == ["file.json"]


def test_gzip_is_recognised_by_content_and_may_be_cut_off(tmp_path: Path) -> None:
    body = b'{"toy": 1, "text": "' + os.urandom(200_000).hex().encode() + b'"}'
    packed = gzip.compress(body)
    (tmp_path / "no_ending").write_bytes(packed)
    (tmp_path / "cut.json.gz").write_bytes(packed[: len(packed) // 3])
    (tmp_path / "members.gz").write_bytes(gzip.compress(b'{"to') + gzip.compress(b'y": 1}'))

    assert sorted(names(find(tmp_path))) == ["cut.json.gz", "members.gz", "no_ending"]


def test_a_reader_sees_at_most_64_kib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    monkeypatch.setattr(ToySource, "sniff", lambda _self, _file, head: seen.append(len(head)))
    (tmp_path / "plain.json").write_bytes(b"{" + b" " * 1_000_000)
    (tmp_path / "packed.gz").write_bytes(gzip.compress(b"{" + b" " * 10_000_000))

    find(tmp_path)

    assert seen == [64 << 10, 64 << 10]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("empty.json", b"", "is empty"),
        ("empty.json.gz", b"", "is empty"),
        ("empty.db", b"", "is empty"),
        ("broken.json.gz", b"\x1f\x8b\x08\x00" + b"\xff" * 100, "damaged gzip"),
        ("stub.json.gz", gzip.compress(b"{}", mtime=0)[:10], "ends before any data"),
        ("other.json", b'{"loss": 1}', "not in a trace format"),
        ("strange.json", b'{"traceEvents": []}', "not from a known profiler"),
        ("trace.json.zst", b"\x28\xb5\x2f\xfd", "compressed"),
        ("wide.json", '{"traceEvents": []}'.encode("utf-16"), "UTF-16"),
        ("wide_without_mark.json", '{"traceEvents": []}'.encode("utf-16-be"), "UTF-16"),
        ("zeros.json", b"\0" * 5000, "holds only zeros"),
        ("binary.json", b"\x89PNG\r\n\x1a\n\0\0\0", "is binary"),
        ("binary.json.gz", gzip.compress(b"\x89PNG\0\0", mtime=0), "is binary"),
        ("text.json", b"step 1 done\n", "is not valid JSON"),
        ("toml.json", b'[project]\nname = "x"\n', "not valid JSON from byte 1"),
        ("numbers.json", b"[" + b"1.25," * 40_000 + b"1]", "is JSON, but not in a trace format"),
    ],
)
def test_what_looks_like_a_trace_and_is_none_is_told(tmp_path: Path, name: str, content: bytes, problem: str) -> None:
    write_toy(tmp_path / "good.json")
    (tmp_path / name).write_bytes(content)

    found = find(tmp_path)

    assert names(found) == ["good.json"]
    assert [(Path(p.file).name, problem in p.problem, p.remedy != "") for p in found.problems] == [(name, True, True)]


def test_a_timeline_is_no_recording_though_a_reader_would_take_it(tmp_path: Path) -> None:
    made = {"made_by": "stepscope timeline"}
    events = [{"ph": "M", "name": "trace", "args": made}, {"ph": "X", "name": "gemm", "cat": "kernel", "ts": 0}]
    (tmp_path / "timeline.json").write_text(json.dumps({"traceEvents": events}), encoding="utf-8")

    found = discover([tmp_path], [KinetoSource()])

    assert found.inputs == []
    assert [each.problem for each in found.problems] == ["is a timeline that stepscope wrote"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("pyproject.toml", b'[project]\nname = "x"\n'),
        ("table.csv", b"[1,2],3\n[4,5],6\n"),
        ("train.log", b"[2024-01-01 00:00] step 1\n"),
    ],
)
def test_text_in_brackets_is_not_called_json(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)

    found = find(tmp_path)

    assert (found.problems, found.skipped) == ([], 1)


def test_names_that_are_not_utf8_are_found_and_can_be_printed(tmp_path: Path) -> None:
    write_toy(tmp_path / "good.json")
    strange = write_toy(tmp_path / "b\udcff" / "x\udcfe.json")
    (tmp_path / "empty\udcff.json").write_bytes(b"")

    found = find(tmp_path)

    assert {item.path for item in found.inputs} == {tmp_path / "good.json", strange}
    assert [problem.file for problem in found.problems] == [f"{tmp_path}/empty\\xff.json"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_told(tmp_path: Path) -> None:
    file = write_toy(tmp_path / "secret.json")
    file.chmod(0)

    assert "Permission denied" in find(tmp_path).problems[0].problem


def test_what_the_system_refuses_to_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_toy(tmp_path / "good.json")
    write_toy(tmp_path / "secret.json")
    real_open = os.open

    def refuse(path: str | Path, *args: int) -> int:
        if "secret" in str(path):
            raise PermissionError(13, "Permission denied", str(path))
        return real_open(path, *args)

    monkeypatch.setattr(os, "open", refuse)
    found = find(tmp_path)

    assert names(found) == ["good.json"]
    assert "Permission denied" in found.problems[0].problem


def test_a_file_that_the_user_names_is_never_passed_by_in_silence(tmp_path: Path) -> None:
    picture = tmp_path / "photo.png"
    picture.write_bytes(b"\x89PNG")

    assert [p.severity for p in find(picture).problems] == ["error"]


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")

    assert find(tmp_path).skipped == 1


def test_a_missing_path_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StepscopeError, match=r"gone.*no such file"):
        find(tmp_path / "gone")


def test_unrelated_files_are_counted_quickly(tmp_path: Path) -> None:
    for number in range(10_000):
        (tmp_path / f"{number}.jpg").write_bytes(b"\xff\xd8 picture")
    write_toy(tmp_path / "x.json")

    started = time.process_time()
    found = find(tmp_path)
    spent_s = time.process_time() - started

    assert (names(found), found.problems, found.skipped) == (["x.json"], [], 10_000)
    assert spent_s < 2.0


def test_many_alike_problems_become_one(tmp_path: Path) -> None:
    for number in range(500):
        (tmp_path / f"{number}.json").write_text("[1, 2]")

    problems = find(tmp_path).problems

    assert len(problems) == 21
    assert problems[-1].problem.startswith("480 more files")


def test_a_reader_that_fails_hides_no_other(tmp_path: Path) -> None:
    class Broken(ToySource):
        def sniff(self, *_: object) -> Input | None:
            raise KeyError("oops")

    write_toy(tmp_path / "x.json")

    found = discover([tmp_path], [Broken(), ToySource()])

    assert names(found) == ["x.json"]
    assert "internal error of the reader toy (KeyError" in found.problems[0].problem
    assert "oops" in (found.problems[0].trace or "")


def exported(root: Path, *files: str, complete: bool = True) -> None:
    """A list of files that were made from the recording `recording/rank-0`."""
    listed = {"format": "stepscope-exported", "recording": "recording/rank-0", "files": list(files)}
    listed |= {} if complete else {"complete": False}
    (root / "exported-0.json").write_text(json.dumps(listed))


def test_what_was_exported_is_passed_by_while_its_recording_is_there(tmp_path: Path) -> None:
    write_toy(tmp_path / "recording" / "rank-0" / "toy.json")
    (tmp_path / "recording" / "rank-0" / "recording.json").write_text("{}")
    write_toy(tmp_path / "made.json")
    write_toy(tmp_path / "tree_ascend_ms" / "inside" / "trace.json")
    write_toy(tmp_path / "own.json")
    exported(tmp_path, "made.json", "tree_ascend_ms/inside/trace.json", "gone.csv", "recording/rank-0/toy.json")

    found = find(tmp_path)

    assert sorted(names(found)) == ["own.json", "rank-0"]
    assert found.problems == []


def test_what_was_exported_and_moved_aside_is_passed_by_as_well(tmp_path: Path) -> None:
    write_toy(tmp_path / "recording" / "rank-0" / "toy.json")
    (tmp_path / "recording" / "rank-0" / "recording.json").write_text("{}")
    write_toy(tmp_path / "earlier" / "2026" / "made.json")
    exported(tmp_path / "earlier" / "2026", "made.json")

    assert names(find(tmp_path)) == ["rank-0"]


def test_what_was_exported_is_read_where_its_recording_is_gone(tmp_path: Path) -> None:
    write_toy(tmp_path / "made.json")
    write_toy(tmp_path / "tree_ascend_ms" / "inside" / "trace.json")
    exported(tmp_path, "made.json", "tree_ascend_ms/inside/trace.json")

    found = find(tmp_path)

    assert sorted(names(found)) == ["made.json", "trace.json"]
    assert found.problems == []


def test_a_damaged_list_of_exported_files_hides_nothing(tmp_path: Path) -> None:
    write_toy(tmp_path / "made.json")
    (tmp_path / "exported-0.json").write_text('{"format": "stepscope-exported", "files": ["made')

    assert names(find(tmp_path)) == ["made.json"]


def test_a_recording_wins_over_an_export_that_was_cut_off_before_it_listed_anything(tmp_path: Path) -> None:
    write_toy(tmp_path / "recording" / "rank-0_here-7_2026" / "toy.json")
    (tmp_path / "recording" / "rank-0_here-7_2026" / "recording.json").write_text('{"rank": 0}')
    write_toy(tmp_path / "profiler_info_0.json")
    write_toy(tmp_path / "rank-0_20260101000000_ascend_ms" / "trace.json")
    write_toy(tmp_path / "host_info" / "timeline_0.json")
    write_toy(tmp_path / "profiler_info_1.json")
    write_toy(tmp_path / "notes.json")

    found = find(tmp_path)

    assert sorted(names(found)) == ["notes.json", "profiler_info_1.json", "rank-0_here-7_2026"]
    (told,) = found.problems
    assert told.severity == "note"
    assert "profiler_info_0.json" in told.problem


def test_a_half_made_export_is_not_read_without_its_recording_either(tmp_path: Path) -> None:
    write_toy(tmp_path / "made.json")
    exported(tmp_path, "made.json", "missing.json", complete=False)

    found = find(tmp_path)

    assert names(found) == []
    assert [told.severity for told in found.problems] == ["error"]
    assert "unfinished" in found.problems[0].problem


def test_exports_elsewhere_and_their_recording_are_one(tmp_path: Path) -> None:
    write_toy(tmp_path / "a" / "recording" / "rank-0" / "toy.json")
    (tmp_path / "a" / "recording" / "rank-0" / "recording.json").write_text("{}")
    write_toy(tmp_path / "b" / "made.json")
    write_toy(tmp_path / "b" / "own.json")
    exported(tmp_path / "b", "made.json")

    assert sorted(names(find(tmp_path))) == ["own.json", "rank-0"]
    assert sorted(names(find(tmp_path / "b", tmp_path / "a"))) == ["own.json", "rank-0"]
    assert sorted(names(find(tmp_path / "b"))) == ["made.json", "own.json"]


def test_of_two_forms_of_one_export_the_one_that_says_more_is_read(tmp_path: Path) -> None:
    tree = "rank-0_20260101000000_ascend_ms"
    write_toy(tmp_path / tree / "trace.json")
    write_toy(tmp_path / "profiler_info_0.json")
    write_toy(tmp_path / "host_info" / "timeline_0.json")
    exported(tmp_path, "profiler_info_0.json", "host_info/timeline_0.json", f"{tree}/trace.json")

    whole = names(find(tmp_path))
    (tmp_path / tree / "trace.json").unlink()
    cut = names(find(tmp_path))

    assert whole == ["trace.json"]
    assert sorted(cut) == ["profiler_info_0.json", "timeline_0.json"]


@pytest.mark.parametrize("recording", [".", "/", "..", 7, None])
def test_a_list_with_an_odd_recording_breaks_nothing(tmp_path: Path, recording: object) -> None:
    write_toy(tmp_path / "made.json")
    listed = {"format": "stepscope-exported", "recording": recording, "files": ["made.json", ".", "", 3]}
    (tmp_path / "exported-0.json").write_text(json.dumps(listed))

    assert names(find(tmp_path)) == ["made.json"]
