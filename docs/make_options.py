"""Write the table of options in docs/profiler.md from their definitions: `python docs/make_options.py`."""

from __future__ import annotations

import ast
import inspect
from dataclasses import MISSING, fields
from pathlib import Path

from stepscope.record import options

PAGE = Path(__file__).with_name("profiler.md")
BEGIN, END = "<!-- options: made by docs/make_options.py -->\n", "<!-- end of options -->"


def page(text: str) -> str:
    """The page with its table as the definitions say."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]


def table() -> str:
    """One row an option."""
    meanings = _meanings()
    rows = ["| option | default | where | a bad value | meaning |", "|---|---|---|---|---|"]
    defaults = {option.name: option.default for option in fields(options.Options) if option.default is not MISSING}
    for name, spec in options.SPECS.items():
        targets = [target for target in ("cpu", "gpu", "ascend") if target in spec.targets | spec.also]
        where = "everywhere" if len(targets) == 3 else ", ".join(targets)
        default = defaults[name]
        fallback = "Level0" if name == "profiler_level" else default
        reaction = "TypeError" if spec.raises else f"warning, `{fallback!r}`"
        rows.append(f"| `{name}` | `{default!r}` | {where} | {reaction} | {meanings[name]} |")
    return "\n".join(rows) + "\n"


def _meanings() -> dict[str, str]:
    """The text below each field of the class."""
    body = ast.parse(inspect.getsource(options.Options)).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
            assert isinstance(text.value, ast.Constant)
            found[field.target.id] = " ".join(str(text.value.value).split())
    return found


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
