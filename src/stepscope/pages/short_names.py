"""Short names of kernels and operators, for tables on a screen."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

import polars as pl

DEEPEST = 12
"""Arguments inside one another that are left out."""

MOST_WORDS = 3
"""Words of template arguments by which names are told apart; if more are needed, the names stay whole."""

AUTOGRAD = "autograd::engine::evaluate_function: "

SEQUENCE = "sequence"
"""The column of names in a row."""

_SIGNATURE = re.compile(r"^void |::\S*\(|^nccl\w*\(")
_FIRST_ARGUMENT = re.compile(r"<(?:\w+::)*(\w+)")
_WORD = re.compile(r"\w+")

_PLAIN = frozenset(
    [
        "at",
        "native",
        "c10",
        "std",
        "detail",
        "binary_internal",
        "anonymous",
        "namespace",
        "lambda",
        "operator",
        "const",
        "void",
        "unsigned",
        "signed",
        "bool",
        "char",
        "short",
        "int",
        "long",
        "float",
        "double",
        "Array",
        "array",
        "TensorIterator",
        "TensorIteratorBase",
    ]
)
"""Words that say least of a kernel."""


def readable(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows whose texts have kernels without template arguments, parameters and namespaces, and operators without
    autograd's prefix. Names that differ in a column still do."""
    changed = [
        short(name) if name == SEQUENCE else pl.Series(name, _shortened(rows[name]), dtype=pl.String)
        for name, dtype in rows.schema.items()
        if dtype == pl.String and (name == SEQUENCE or _is_named(rows[name]))
    ]
    return rows.with_columns(changed) if changed else rows


def short(column: str) -> pl.Expr:
    """Names, or sequences of them, without template arguments, parameters and namespaces: `gemm -> add x2`."""
    text = (
        pl.col(column)
        .str.replace_all(r" \(x(\d+)\)", " x$1")
        .str.replace_all("(anonymous namespace)::", "", literal=True)
    )
    for inner in (r"\([^()]*\)", r"<[^<>]*>"):  # a `>` in parentheses compares
        for _ in range(DEEPEST):
            text = text.str.replace_all(inner, "")
    plain = text.str.replace_all(r"\bvoid ", "").str.replace_all(r"\w+::", "").str.strip_chars()
    return pl.when(plain != "").then(plain).otherwise(column).alias(column)


def _is_named(names: pl.Series) -> bool:
    return any(_is_kernel(name) or name.startswith(AUTOGRAD) for name in {*names.drop_nulls()})


def _is_kernel(name: str) -> bool:
    """Whether a name is the signature of a function in C++."""
    return bool(_SIGNATURE.search(name))


def _function(name: str, short_name: str) -> str:
    """The name of a kernel's function, less the type that it returns; of `Kernel<gemm>(...)` also what it is of."""
    text = short_name.rsplit(" ", maxsplit=1)[-1]
    of = _FIRST_ARGUMENT.search(name) if text.lower() == "kernel" else None
    return f"{text}<{of[1]}>" if of else text


def _shortened(names: pl.Series) -> list[str | None]:
    """The names of a column, in short."""
    every = names.drop_nulls().unique().sort().to_list()
    kernels = [name for name in every if _is_kernel(name) and not name.startswith(AUTOGRAD)]
    short_names = pl.DataFrame({"name": kernels}, schema={"name": pl.String}).select(short("name")).to_series()
    plain = {name: _function(name, text) for name, text in zip(kernels, short_names, strict=True)}
    alike = defaultdict(list)
    for name in every:
        alike[plain.get(name, name.removeprefix(AUTOGRAD))].append(name)
    found: dict[str, str] = {}
    for text, group in alike.items():
        found |= {group[0]: text} if len(group) == 1 else _told_apart(text, group)
    return [None if name is None else found[name] for name in names]


def _told_apart(text: str, group: Sequence[str]) -> dict[str, str]:
    """Names that are the same in short, with the rarest of their words that tell them apart."""
    words = {name: list(dict.fromkeys(_WORD.findall(name))) for name in group}
    counts = Counter(word for each in words.values() for word in each)
    return {name: _with_words(text, name, words, counts) for name in group}


def _with_words(text: str, name: str, words: dict[str, list[str]], counts: Counter[str]) -> str:
    rest, chosen = {other for other in words if other != name}, list[str]()
    for word in sorted(words[name], key=lambda word: (word in _PLAIN or word.isdigit(), counts[word])):
        left = {other for other in rest if word in words[other]}
        if len(left) < len(rest):
            rest, chosen = left, [*chosen, word]
        if not rest:
            break
    if rest or len(chosen) > MOST_WORDS:
        return name
    return f"{text}<{', '.join(word for word in words[name] if word in chosen)}>"
