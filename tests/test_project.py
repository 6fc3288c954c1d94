"""What holds for the project as a whole rather than for one module."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HEAVY = ("polars", "typer", "rich", "msgspec", "isal", "torch", "mindspore", "ray")
LINK = re.compile(r"\[[^\]]*\]\((?!\w+:|#)([^)#\s]+)")
PAGES = sorted(page for page in (*ROOT.glob("*.md"), *ROOT.glob("[!.]*/**/*.md")) if "out" not in page.parts)


def _modules_after(statement: str) -> set[str]:
    """Top-level names of the modules that a fresh interpreter holds after a statement."""
    code = f"import json, sys; {statement}; print(json.dumps([name.split('.')[0] for name in sys.modules]))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(result.stdout))


def test_importing_the_package_loads_no_heavy_library() -> None:
    loaded = _modules_after("import stepscope")

    assert "stepscope" in loaded
    assert not loaded & set(HEAVY)


def test_importing_the_library_and_opening_a_run_change_no_more_of_the_process_than_polars_does() -> None:
    def state_after(statements: str) -> str:
        code = f"""
import gc, os, signal, sys
{statements}
assert "polars" in sys.modules
print(sorted(os.environ.items()), os.getcwd(), gc.get_threshold(), signal.getsignal(signal.SIGTERM))
"""
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    example = ROOT / "examples" / "ddp_gloo_4rank_slow_loader"
    opened = (
        f"import stepscope; stepscope.Profiler; assert stepscope.open_run({str(example)!r}).analyse('breakdown').height"
    )

    assert state_after(opened) == state_after("import polars")


@pytest.mark.parametrize(
    "start",
    [
        "sys.argv = ['stepscope', 'info', {0!r}]; from stepscope.cli import main; main()",
        "sys.argv = ['export', {0!r}]; import runpy; runpy.run_module('stepscope.export', run_name='__main__')",
    ],
)
def test_a_process_of_our_own_spares_memory_before_polars_is_loaded(start: str, tmp_path: Path) -> None:
    code = f"""
import os, sys
class Finder:
    def find_spec(self, name, path, target=None):
        if name == "polars":
            print("set" if "_RJEM_MALLOC_CONF" in os.environ else "too late", file=sys.stderr)
            os._exit(0)
sys.meta_path.insert(0, Finder())
{start.format(str(tmp_path))}
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ran.stderr == "set\n"


def test_the_version_is_the_installed_one() -> None:
    from importlib.metadata import PackageNotFoundError, version

    import stepscope

    try:
        installed = version("stepscope")
    except PackageNotFoundError:
        pytest.skip("stepscope is not installed here, only on the path")

    assert stepscope.__version__ == installed


@pytest.mark.parametrize("page", PAGES, ids=[page.relative_to(ROOT).as_posix() for page in PAGES])
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    targets = LINK.findall(page.read_text(encoding="utf-8"))

    dead = [target for target in targets if not (page.parent / target).exists()]

    assert dead == []
