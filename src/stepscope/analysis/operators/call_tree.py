"""What ran in what: the tree of Python functions, modules, operators and kernels of a rank, for flame graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.batches import batches_by_time
from stepscope.analysis.methods.call_paths import CallTree, Frame, add_calls
from stepscope.analysis.methods.launch_owners import launched_in, owners
from stepscope.analysis.methods.module_ranges import BETWEEN, PYTHON_MODULE, is_module, module_calls, modules_at
from stepscope.analysis.registry import analysis
from stepscope.errors import StepscopeError, Unavailable
from stepscope.tables import KERNELS, OPERATORS, STACKS, THREADS
from stepscope.tables.base import Column
from stepscope.tables.slices import MODULE_MARKS

By = Literal["", "python", "module", "operator"]
WAYS: tuple[By, ...] = ("python", "module", "operator")

NO_CALLS = "no calls of the host were recorded: record a trace with PyTorch's, MindSpore's or Ascend's profiler"
NO_FRAMES = "no Python functions were recorded: record with `stepscope record --stacks` (with_stack=True)"
NO_MODULES = (
    "no modules were recorded: record with `stepscope record --stacks` (with_stack=True), or on Ascend mark them as "
    "ranges of mstx's domain `Module`"
)

UNKNOWN: Frame = ("launched by unknown calls", "thread")
BACKWARD: Frame = ("backward", "phase")

_HOST = ("operator", "annotation", "runtime", "compile", "gc")
"""Ranges of the host that are calls, besides Python functions; `queue` only passes work on."""

_COUNTED = r"#\d+$"
"""End of names of ranges that number them, e.g. steps."""

_ADDRESS = r" at 0x[0-9a-fA-F]+"
_BUILT_IN = r"^<built-in (?:method|function) (\S+)(?: of .*)?>$"

COLUMNS = columns(
    "rank",
    Column("node", "int64", "Number of the row, from 0: each is followed by those in it.", nullable=False),
    Column("parent", "int64", "Row of the call around it; null at the top."),
    Column("depth", "int32", "Calls around it.", nullable=False),
    Column(
        "name", "string", "Name of the call, without numbers of steps; `file(line): function` of Python.", title="call"
    ),
    Column(
        "kind",
        "string",
        "What it is.",
        values=("thread", "python", "module", "phase", *_HOST, "kernel"),
        importance=40,
    ),
    Column("calls", "int64", "Number of calls with these calls around them.", importance=36),
    Column("host_ns", "int64", "Their time on the host, with all calls in them.", title="host", importance=60),
    Column("host_self_ns", "int64", "Part of it outside of the calls in them.", title="host, own", importance=50),
    Column("device_ns", "int64", "Device work launched by them and by calls in them.", title="device", importance=59),
    Column("device_self_ns", "int64", "Device work itself: only kernels have it.", title="kernel", importance=30),
    meaning("share_ratio", "`host_ns` over that of the whole tree."),
    keep="name host_ns device_ns calls share_ratio host_self_ns",
)


@analysis("rank", COLUMNS)
def call_tree(
    slices: pl.LazyFrame,
    operators: pl.LazyFrame | None,
    kernels: pl.LazyFrame | None,
    flows: pl.LazyFrame | None,
    stacks: pl.LazyFrame | None,
    threads: pl.LazyFrame | None,
    by: str = "",
) -> pl.DataFrame:
    """Sum up what runs in what, on all threads of the host, and the device work that it launches.

    Args:
        slices: Ranges of the host.
        operators: Operators, with their stacks.
        kernels: Device work.
        flows: From forward to backward operators.
        stacks: Texts of stacks.
        threads: Names of threads.
        by: What is above operators: `python` functions, `module`s, or nothing (`operator`). Default: Python functions
            if they were recorded.

    Raises:
        Unavailable: If nothing of this kind was recorded.
        StepscopeError: If `by` is none of these.
    """
    if by not in ("", *WAYS):
        raise StepscopeError(f"«--by» {by}: choose one of {', '.join(WAYS)}")
    known = OPERATORS.or_empty(operators)
    has_python, has_modules, has_host = _has(slices)
    begun = _recorded_stacks(known, stacks) if by in ("", "python") and not has_python else {}
    chosen = by or ("python" if has_python or begun else "operator")
    if not has_host:
        raise Unavailable(NO_CALLS)
    if chosen == "python" and not (has_python or begun):
        raise Unavailable(NO_FRAMES)
    if chosen == "module" and not has_modules:
        raise Unavailable(NO_MODULES)
    included = _included(slices, chosen)
    work = KERNELS.or_empty(kernels)
    owned = _owners(work, known, included, slices)
    moved = _backward(slices, known, flows) if chosen == "module" else {}
    tree = CallTree()
    labels = _labels(slices, threads)
    parts = (_named(batch, labels) for batch in batches_by_time(included, "start_ns"))
    nodes = add_calls(tree, parts, frozenset(owned["slice"].unique()), moved, begun)
    _add_kernels(tree, work, owned, nodes)
    rank = slices.select("rank").head(1).collect().item()
    rows = tree.rows()
    total = rows.filter(pl.col("depth") == 0)["host_ns"].sum()
    found = rows.with_columns(rank=pl.lit(rank, pl.Int32), share_ratio=pl.col("host_ns") / max(total, 1))
    return found.select(column.name for column in COLUMNS)


def _has(slices: pl.LazyFrame) -> tuple[bool, bool, bool]:
    """Whether there are Python functions, modules, and calls of the host at all."""
    is_python = pl.col("category") == "python"
    asked = slices.select(
        python=is_python.any(), module=is_module().any(), host=(is_python | pl.col("category").is_in(_HOST)).any()
    )
    python, module, host = asked.collect(engine="streaming").row(0)
    return bool(python), bool(module), bool(host)


def _included(slices: pl.LazyFrame, chosen: str) -> pl.LazyFrame:
    """Ranges that are calls of the tree."""
    is_call = pl.col("category").is_in(_HOST) & (pl.col("process") != MODULE_MARKS).fill_null(value=True)
    if chosen == "python":
        is_call |= pl.col("category") == "python"
    elif chosen == "module":
        is_call |= is_module()
    found = slices.filter(is_call)
    return found.select("rank", "slice", "thread", "start_ns", "duration_ns", "name", "category", module=is_module())


def _named(batch: pl.DataFrame, labels: Mapping[str | None, str]) -> pl.DataFrame:
    """Calls in order of time, the outermost first, with the names that calls of a kind share."""
    plain = pl.col("name").str.replace(_COUNTED, "").str.replace(_BUILT_IN, "<built-in $1>").str.replace(_ADDRESS, "")
    named = plain.str.strip_prefix(PYTHON_MODULE)
    names = batch.select("name").unique().with_columns(shown=named)
    kind = pl.when("module").then(pl.lit("module")).otherwise("category")
    rows = batch.join(names, on="name", maintain_order="left").with_columns(
        name="shown",
        kind=kind,
        is_module="module",
        thread=pl.col("thread").replace_strict(dict(labels), default="thread", return_dtype=pl.String),
    )
    return rows.sort("start_ns", -pl.col("duration_ns"), "slice")


def _labels(slices: pl.LazyFrame, threads: pl.LazyFrame | None) -> dict[str | None, str]:
    """What each thread is called: by the name that was recorded, with its number if several have it."""
    numbers = slices.select("thread").unique().collect(engine="streaming")["thread"].drop_nulls().sort().to_list()
    named = THREADS.or_empty(threads).select("thread", "thread_name").drop_nulls().unique().collect()
    names: dict[str, str] = dict(named.sort("thread", "thread_name").iter_rows())
    return {thread: _label(thread, names.get(thread)) for thread in numbers} | {None: "thread"}


def _label(thread: str, name: str | None) -> str:
    return f"thread {thread}" if not name or thread in name else f"{name} (thread {thread})"


def _recorded_stacks(operators: pl.LazyFrame, stacks: pl.LazyFrame | None) -> dict[int, Sequence[Frame]]:
    """The Python functions that called operators, outermost first, where a source has them as texts of operators."""
    texts = STACKS.or_empty(stacks).select("stack", "text").collect()
    frames: dict[int, Sequence[Frame]] = {
        number: [(line.strip(), "python") for line in reversed(text.splitlines()) if line.strip()]
        for number, text in texts.iter_rows()
    }
    called = operators.filter(pl.col("stack").is_not_null()).select("slice", "stack").collect(engine="streaming")
    return {number: frames[stack] for number, stack in called.iter_rows() if frames.get(stack)}


def _owners(work: pl.LazyFrame, operators: pl.LazyFrame, included: pl.LazyFrame, slices: pl.LazyFrame) -> pl.DataFrame:
    """The call that launched each piece of device work: `kernel`, `slice`."""
    by_operator = owners(work, operators, slices)
    rest = (
        work.filter(pl.col("correlation").is_not_null())
        .select("rank", "kernel", "correlation")
        .join(by_operator.lazy().select("rank", "kernel"), on=["rank", "kernel"], how="anti")
        .collect(engine="streaming")
    )
    if rest.is_empty():
        return by_operator
    outside = included.filter(pl.col("category") != "runtime").select("rank", "slice")
    return pl.concat([by_operator, launched_in(rest, outside, slices).drop_nulls("slice")])


def _add_kernels(tree: CallTree, work: pl.LazyFrame, owned: pl.DataFrame, nodes: Mapping[int, int]) -> None:
    """Add device work below what launched it."""
    joined = work.select("rank", "kernel", "name", "duration_ns").join(owned.lazy(), on=["rank", "kernel"], how="left")
    sums = joined.group_by("slice", "name").agg(pl.len().alias("calls"), pl.col("duration_ns").sum())
    rows = sums.sort("slice", "name", nulls_last=True).collect(engine="streaming")
    for number, name, calls, duration in rows.select("slice", "name", "calls", "duration_ns").iter_rows():
        base = nodes.get(number)
        node = tree.child(tree.path([UNKNOWN]) if base is None else base, (name or "", "kernel"))
        tree.add(node, calls, device_ns=duration)


def _backward(slices: pl.LazyFrame, operators: pl.LazyFrame, flows: pl.LazyFrame | None) -> dict[int, Sequence[Frame]]:
    """Operators of the backward pass that are in no module, with the path of the module of their forward operator."""
    calls = module_calls(slices)
    asked = operators.select("slice", "thread", "start_ns", "duration_ns").collect(engine="streaming")
    placed = modules_at(calls, asked, flows).filter(pl.col("phase") == "backward")
    outer = _outermost(placed)
    around: dict[str, str | None] = dict(calls.select("path", "parent").unique().sort("path", "parent").iter_rows())
    paths: dict[str, Sequence[Frame]] = {}
    return {
        number: paths.setdefault(path, [*_frames(path, around), BACKWARD])
        for number, path in outer.select("slice", "path").iter_rows()
    }


def _outermost(placed: pl.DataFrame) -> pl.DataFrame:
    """Operators that lie in no other one of the same module and thread."""
    rows = placed.sort("thread", "start_ns", -pl.col("duration_ns"), "slice", nulls_last=True)
    end = pl.col("start_ns") + pl.col("duration_ns")
    before: Any = end.cum_max().shift(1).over("thread", "path")
    return rows.filter((before <= pl.col("start_ns")).fill_null(value=True))


def _frames(path: str, around: Mapping[str, str | None]) -> list[Frame]:
    """The modules of a path, outermost first."""
    outer = around.get(path)
    if outer is None:
        return [(path, "module")]
    return [*_frames(outer, around), (path.removeprefix(f"{outer}{BETWEEN}"), "module")]
