"""The first page is there before Polars is loaded, which takes longer than all that the page needs."""

from __future__ import annotations

import subprocess
import sys

FIRST_PAGE = """
import sys
from pathlib import Path
from types import SimpleNamespace

class NoPolars:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "polars":
            raise AssertionError("the first page loads Polars")

sys.meta_path.insert(0, NoPolars())
import stepscope.web.ui.mounting
from stepscope.web.ui.context import Context, Web
from stepscope.web.ui.frame import assets
from stepscope.web.ui.html import rendered
from stepscope.web.ui.pages.runs import listing, table
from stepscope.web.ui.state import State

run = SimpleNamespace(
    id="a", name="job", relative="x/job", state="reading", progress=0.5, frameworks=("pytorch",), devices=(),
    formats=("kineto",), start_ns=None, changed_ns=10**18, world_size=None, ranks=0, steps=None, input_bytes=5,
    problem="", unread=0, top=None, findings={}, problem_in=lambda _: "",
)
catalogue = SimpleNamespace(entries=lambda: [run], roots=[Path("/data")], revision=0)
for language in ("en", "zh"):
    context = Context(Web(catalogue, None, None), State.of("/?search=job&sort=-size"), language)
    assert "50%" in table(context, listing(catalogue.entries(), context.state), context.state)
    rendered(context, "frame.html.j2", "header", title="Runs", context_name="")
    rendered(context, "frame.html.j2", "end")
assert assets()
assert "polars" not in sys.modules
print("ok")
"""


def test_the_list_of_runs_needs_no_polars() -> None:
    found = subprocess.run([sys.executable, "-c", FIRST_PAGE], capture_output=True, text=True, check=False)
    assert found.stdout == "ok\n", found.stderr
