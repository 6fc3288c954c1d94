"""What a mutation tool does to a piece of code: each kind of change is a mistake that a person could make."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from typing import Any

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}

ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}

_TWINS = (
    *(("min", "max"), ("min_horizontal", "max_horizontal"), ("any", "all"), ("any_horizontal", "all_horizontal")),
    *(("first", "last"), ("median", "mean")),
)
SWAPPED = {"sum": "max", **dict(_TWINS), **{other: one for one, other in _TWINS}}
"""Functions and methods that are easily taken for one another."""

DROPPED = {
    *("filter", "sort", "unique", "drop_nulls", "fill_null", "fill_nan", "reverse", "shift"),
    *("abs", "cast", "clip", "cum_sum", "over", "round"),
}
"""Methods of frames and expressions that can be left out of a chain."""

UNORDERED = ("group_by", "over", "sort")
"""Methods of which a column can be left out."""


def of(node: ast.AST) -> Iterator[Any]:
    """What may stand in a node's place; a list of statements' place is taken by a statement."""
    for kind, change in _CHANGES:
        if isinstance(node, kind):
            yield from change(node)


def _with(node: ast.AST, **fields: Any) -> Any:
    """A copy of a node with some fields changed."""
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def _comparison(node: ast.Compare) -> Iterator[ast.AST]:
    for number, operator in enumerate(node.ops):
        for other in COMPARISONS[type(operator)]:
            yield _with(node, ops=[*node.ops[:number], other(), *node.ops[number + 1 :]])


def _boolean(node: ast.BoolOp) -> Iterator[ast.AST]:
    yield _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    for number in range(len(node.values)):
        left = [*node.values[:number], *node.values[number + 1 :]]
        yield left[0] if len(left) == 1 else _with(node, values=left)


def _unary(node: ast.UnaryOp) -> Iterator[ast.AST]:
    yield node.operand


def _arithmetic(node: ast.BinOp) -> Iterator[ast.AST]:
    if type(node.op) in ARITHMETIC:
        yield _with(node, op=ARITHMETIC[type(node.op)]())
    yield node.left
    yield node.right
    if isinstance(node.left, ast.BinOp):
        yield node.left.left


def _constant(node: ast.Constant) -> Iterator[ast.AST]:
    value = node.value
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, (int, float)):
        yield ast.Constant(value + 1)
        if value:
            yield ast.Constant(type(value)(0))
    elif isinstance(value, str):
        yield ast.Constant("" if value else "other")


def _f_string(node: ast.JoinedStr) -> Iterator[ast.AST]:
    yield ast.Constant("")


def _call(node: ast.Call) -> Iterator[ast.AST]:
    function = node.func
    for number in range(len(node.keywords)):
        yield _with(node, keywords=[*node.keywords[:number], *node.keywords[number + 1 :]])
    name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
    if name in SWAPPED:
        field = "id" if isinstance(function, ast.Name) else "attr"
        yield _with(node, func=_with(function, **{field: SWAPPED[name]}))
    if isinstance(function, ast.Attribute):
        if name in DROPPED:
            yield function.value
        if name in UNORDERED and len(node.args) > 1:
            yield from (_with(node, args=left) for left in _without_one(node.args))
    if name in ("sort", "sorted"):
        yield from _other_order(node, name)


def _other_order(node: ast.Call, name: str) -> Iterator[ast.AST]:
    if any(keyword.arg in ("reverse", "descending") for keyword in node.keywords):
        return
    is_list = name == "sorted" or any(keyword.arg == "key" for keyword in node.keywords) or not node.args
    order = ast.keyword("reverse" if is_list else "descending", ast.Constant(True))
    yield _with(node, keywords=[*node.keywords, order])
    if name == "sorted":
        yield ast.Call(ast.Name("list", ast.Load()), node.args, [])


def _display(node: ast.List | ast.Tuple | ast.Set) -> Iterator[ast.AST]:
    if not isinstance(getattr(node, "ctx", None), ast.Store) and len(node.elts) > 1:
        yield from (_with(node, elts=left) for left in _without_one(node.elts))


def _without_one(nodes: list[ast.expr]) -> Iterator[list[ast.expr]]:
    return (nodes[:number] + nodes[number + 1 :] for number in range(len(nodes)))


def _if_expression(node: ast.IfExp) -> Iterator[ast.AST]:
    yield node.body
    yield node.orelse


def _comprehension(node: ast.comprehension) -> Iterator[ast.AST]:
    for number in range(len(node.ifs)):
        yield _with(node, ifs=[*node.ifs[:number], *node.ifs[number + 1 :]])


def _condition(node: ast.If | ast.While) -> Iterator[ast.AST]:
    """Other than loops that would not end, a condition may hold always or never."""
    yield _with(node, test=ast.Constant(False))
    if isinstance(node, ast.If):
        yield _with(node, test=ast.Constant(True))


def _assignment(node: ast.Assign | ast.AnnAssign) -> Iterator[ast.AST]:
    """A name's first value cannot be left out: whatever uses the name would fail."""
    value = node.value
    if value is None:
        return
    if isinstance(value, (ast.Compare, ast.BoolOp)):
        yield _with(node, value=ast.Constant(True))
        yield _with(node, value=ast.Constant(False))
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    used = {name.id for name in ast.walk(value) if isinstance(name, ast.Name)}
    if any(not isinstance(target, ast.Name) or target.id in used for target in targets):
        yield ast.Pass()


def _returned(node: ast.Return) -> Iterator[ast.AST]:
    value = node.value
    if value is None or (isinstance(value, ast.Constant) and value.value is None):
        return
    yield _with(node, value=ast.Constant(None))
    if isinstance(value, (ast.Compare, ast.BoolOp)):
        yield _with(node, value=ast.Constant(True))


def _dropped(node: ast.stmt) -> Iterator[ast.AST]:
    yield ast.Pass()


_CHANGES: tuple[tuple[Any, Callable[[Any], Iterator[ast.AST]]], ...] = (
    (ast.Compare, _comparison),
    (ast.BoolOp, _boolean),
    (ast.UnaryOp, _unary),
    (ast.BinOp, _arithmetic),
    (ast.Constant, _constant),
    (ast.JoinedStr, _f_string),
    (ast.Call, _call),
    ((ast.List, ast.Tuple, ast.Set), _display),
    (ast.IfExp, _if_expression),
    (ast.comprehension, _comprehension),
    ((ast.If, ast.While), _condition),
    ((ast.Assign, ast.AnnAssign), _assignment),
    (ast.Return, _returned),
    ((ast.Expr, ast.AugAssign, ast.Raise, ast.Continue, ast.Break), _dropped),
)
