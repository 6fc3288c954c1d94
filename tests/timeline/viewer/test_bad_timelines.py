"""Timelines of what no recording should hold open in the viewer, which loses nothing of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from browser import Page, missing, seen

sys.path.append(str(Path(__file__).parents[1]))

from runs import BASE_NS, FORMS, host_run, written

from stepscope.timeline import Format

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"missing: {missing()}")

NAMES = ("a\x00b\x1b[31m", "\u2028\x85\x7f", "</script>", "\U0001f600\u202e", "", "x" * 1_000_000)


def bad_ranges(form: Format) -> list[dict[str, object]]:
    """Odd names, an endless length, deep nesting, a staircase, equal ranges, and many threads."""
    odd = [{"start": 10 * place, "length": 5, "name": name, "thread": name[:9]} for place, name in enumerate(NAMES)]
    first = -BASE_NS if form == "perfetto" else 0  # numbers of JSON are not exact at such distances
    far = [{"start": first, "length": (1 << 63) - 1, "thread": "far"}]
    deep = [{"start": depth, "length": 1000 - 2 * depth, "thread": "deep"} for depth in range(300)]
    stairs = [{"start": step, "length": 100, "thread": "stairs"} for step in range(60)]
    equal = [{"start": 0, "length": 5, "thread": "equal"}] * 100 + [{"start": 5, "length": 0, "thread": "equal"}] * 100
    threads = [{"start": place, "length": 3, "thread": f"thread {place}"} for place in range(100)]
    return [*odd, *far, *deep, *stairs, *equal, *threads]


@pytest.mark.parametrize("form", FORMS)
def test_all_of_a_bad_recording_is_shown(form: Format, tmp_path: Path, page: Page) -> None:
    ranges = bad_ranges(form)

    file = written(host_run(ranges), tmp_path, form=form).file
    shown = seen(file, ["select count(distinct name) as n from slice"], page=page)

    assert shown.state == "open"
    assert not shown.has_badge
    assert shown.lost == {}
    assert shown.slices == len(ranges)
    assert shown.answers == [[{"n": len(NAMES) + 1}]]
