"""Flame graphs as files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest

from stepscope.cli import main
from stepscope.errors import StepscopeError
from stepscope.export.flame.drawing import page, svg
from stepscope.export.flame.frames import difference_of, flame_of
from stepscope.export.flame.stacks import collapsed, speedscope

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "ddp_gloo_4rank_slow_loader")
HOSTILE = "</script><script>alert(1)</script>;&\x1b[31m\n"

TREE = pl.DataFrame(
    {
        "node": [0, 1, 2, 3],
        "parent": [None, 0, 1, 0],
        "depth": [0, 1, 2, 1],
        "name": ["thread 1", "step", HOSTILE, "save"],
        "kind": ["thread", "annotation", "operator", "python"],
        "calls": [0, 2, 4, 1],
        "host_ns": [100, 70, 30, 30],
        "host_self_ns": [0, 40, 30, 30],
        "device_ns": [9, 9, 9, 0],
        "device_self_ns": [0, 0, 9, 0],
    }
)


def test_stacks_have_own_times_and_names_that_break_no_line() -> None:
    lines = b"".join(collapsed(flame_of(TREE, "run", "host"))).decode().splitlines()

    assert lines[0] == "thread 1;step 40" and lines[2] == "thread 1;save 30"
    assert re.fullmatch(r"thread 1;step;[^;]* 30", lines[1]) and "\x1b" not in lines[1]
    assert len(lines) == 3


def test_speedscope_has_a_profile_for_each_time_in_which_calls_begin_and_end_one_in_another() -> None:
    flames = [flame_of(TREE, "run", "host"), flame_of(TREE, "run", "device")]
    found = json.loads(b"".join(speedscope(flames)))

    names = [frame["name"] for frame in found["shared"]["frames"]]
    assert [profile["endValue"] for profile in found["profiles"]] == [100, 9]
    for profile in found["profiles"]:
        opened, at = [], 0
        for event in profile["events"]:
            assert event["at"] >= at
            at = event["at"]
            if event["type"] == "O":
                opened.append(event["frame"])
            else:
                assert opened.pop() == event["frame"]
        assert not opened and at == profile["endValue"]
    host = [(event["type"], names[event["frame"]], event["at"]) for event in found["profiles"][0]["events"]]
    assert host[:2] == [("O", "thread 1", 0), ("O", "step", 0)]
    assert host[5:] == [("O", "save", 70), ("C", "save", 100), ("C", "thread 1", 100)]


def test_a_speedscope_file_grows_with_the_calls_and_not_with_their_depth() -> None:
    deep = 3000
    chain = pl.DataFrame(
        {
            "parent": [None, *range(deep - 1)], "depth": range(deep), "name": ["f"] * deep, "kind": ["python"] * deep,
            "calls": [1] * deep, "host_ns": range(deep, 0, -1), "host_self_ns": [1] * deep,
            "device_ns": [0] * deep, "device_self_ns": [0] * deep,
        }
    )  # fmt: skip
    flame = flame_of(chain, "run", "host")

    assert sum(map(len, speedscope([flame]))) < 100 * deep
    assert len(ElementTree.fromstring(b"".join(svg(flame))).findall("{*}g")) == deep


def test_a_picture_places_calls_in_the_calls_around_them() -> None:
    root = ElementTree.fromstring(b"".join(svg(flame_of(TREE, "run", "host"))))

    boxes = [group.find("{*}rect") for group in root.findall("{*}g")]
    places = [(float(box.get("x", "")), float(box.get("width", ""))) for box in boxes if box is not None]
    assert places == [(10, 1180), (10, 826), (10, 354), (836, 354)]
    assert "alert(1)" in (root.findall("{*}g")[2].findtext("{*}title") or "")


def test_names_do_not_end_the_script_of_a_page() -> None:
    text = page([flame_of(TREE, "<b>run</b>", "host")]).decode()

    assert text.count("</script>") == 2 and "<b>" not in text
    data = re.search(r'id="data">(.*?)</script>', text, re.S)
    assert data and json.loads(data[1])["graphs"][0]["rows"][2][1].startswith("</script><script>alert(1)")


def test_a_title_and_names_with_characters_that_xml_does_not_have_break_no_picture() -> None:
    rows = TREE.with_columns(name=pl.col("name") + "\ufffe\x01")
    title = "a\x01b\udcff\uffff<i>"

    root = ElementTree.fromstring(b"".join(svg(flame_of(rows, title, "host"))))

    assert root.findtext("{*}text") == "a b  <i>"
    assert b"\x01" not in page([flame_of(rows, title, "host")])


def test_short_calls_are_left_out_and_counted() -> None:
    flame = flame_of(TREE, "run", "host", least_ratio=0.5)

    assert (flame.rows["name"].to_list(), flame.left_out) == (["thread 1", "step"], 2)
    with pytest.raises(StepscopeError, match="there is no device time"):
        flame_of(TREE.with_columns(device_ns=pl.lit(0)), "run", "device")


@pytest.mark.parametrize("ending", ["html", "svg", "json", "folded"])
def test_the_ending_of_the_file_says_what_is_drawn(tmp_path: Path, capfd, ending: str) -> None:
    target = tmp_path / f"flame.{ending}"

    assert main(["flame", EXAMPLE, "--rank", "2", "-o", str(target)]) == 0

    head = target.read_bytes()[:2000].decode(errors="replace")
    assert {"html": "<!doctype html>", "svg": "<svg", "json": "speedscope", "folded": "thread"}[ending] in head
    assert capfd.readouterr().err.strip() == str(target)


def test_a_table_is_printed_otherwise(tmp_path: Path, capfd) -> None:
    assert main(["flame", EXAMPLE, "--rank", "2"]) == 0
    assert capfd.readouterr().out.startswith("Calls, each with the calls in it")
    assert main(["flame", EXAMPLE, "--json", "-o", str(tmp_path / "tree.json")]) == 0
    assert "call_tree" in json.loads((tmp_path / "tree.json").read_text())["tables"]
    assert main(["flame", EXAMPLE, "--as", "svg", "--csv"]) == 2
    assert "leave out the other one" in capfd.readouterr().err


def _differing() -> pl.DataFrame:
    figures = {"base_host_ns": [100, 70, 0], "new_host_ns": [120, 70, 30]}
    figures |= {name.replace("_host", "_matched_host"): values for name, values in figures.items()}
    more = {f"{side}_{name}": [0] * 3 for side in ("base", "new") for name in ("host_self_ns", "device_ns")}
    places = {"parent": [None, 0, 0], "depth": [0, 1, 1], "name": ["thread 1", "step", "save"], "kind": ["python"] * 3}
    return pl.DataFrame({**places, **figures, **more})


def test_a_differential_graph_colours_what_is_slower_and_faster() -> None:
    new, base = (difference_of(_differing(), "run", "host", side) for side in ("new", "base"))
    assert new is not None and base is not None

    fills = [re.findall(r'rx="1.5" fill="(.*?)"', b"".join(svg(flame)).decode()) for flame in (new, base)]
    slower, same = "#d64541", "#dedede"
    assert fills == [[slower, same, slower], [slower, same]]
    faster = difference_of(_differing().with_columns(new_matched_host_ns=pl.lit(70)), "run", "host", "base")
    assert faster is not None and '#3a7cc7"' in b"".join(svg(faster)).decode()
    assert difference_of(_differing(), "run", "device", "new") is None


def test_a_run_with_itself_differs_nowhere(tmp_path: Path, capfd) -> None:
    target = tmp_path / "difference.svg"

    assert main(["compare", EXAMPLE, EXAMPLE, "--flame", str(target)]) == 0

    assert set(re.findall(r'rx="1.5" fill="(.*?)"', target.read_text())) == {"#dedede"}
    assert main(["compare", EXAMPLE, EXAMPLE, "--flame", "x.txt"]) == 2
    assert ".html or .svg" in capfd.readouterr().err
