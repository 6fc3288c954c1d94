"""What holds for the project as a whole rather than for one module."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HEAVY = ("polars", "typer", "rich", "msgspec", "isal", "torch", "mindspore")
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
