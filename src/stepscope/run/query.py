"""`query`: SQL over the tables of a run, and nothing else.

Polars' SQL has functions that open files in place of a table (`FROM read_csv('...')`). A query may come from someone
who may see a run but not the machine's files, so only functions known not to open files are allowed.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache

import polars as pl

from stepscope.errors import StepscopeError
from stepscope.tables import TABLES

_TOKEN = re.compile(
    r"""(?P<comment>--[^\n]*|/\*(?:(?!\*/|/\*).)*\*/)  # a comment in a comment is refused as an odd character
      | (?P<text>'(?:[^']|'')*')
      | (?P<quoted>"(?:[^"]|"")*")
      | (?P<number>\d[\w.]*)
      | (?P<word>[^\W\d]\w*(?!['\w]))  # no prefix of a text, e.g. E'...', whose end backslashes move
      | (?P<space>\s+)
      | (?P<mark>/(?!\*)|[][()+*%,.;:<>=!|&^~?{}@-])""",
    re.DOTALL | re.VERBOSE,
)
_STATEMENTS = {("select",), ("with",), ("show", "tables")}
_FUNCTIONS = """
abs acos acosd acot acotd asin asind atan atan2 atan2d atand cbrt ceil ceiling cos cosd cot cotd degrees div exp
floor ln log log10 log1p log2 mod pi pow power radians round sign sin sind sqrt tan tand trunc truncate width_bucket
bit_and bit_count bit_or bit_xor bit_length char_length character_length coalesce concat concat_ws ends_with
greatest if iif ifnull isnull nullif initcap instr least left length len lower lpad ltrim normalize octet_length
overlay position regexp_like regexp_matches regexp_replace replace reverse right rpad rtrim split_part starts_with
string_to_array strpos substr substring translate trim upper contains
array array_agg array_contains array_get array_length array_lower array_max array_mean array_min array_reverse
array_sort array_sum array_to_string array_unique array_upper explode unnest columns struct row
any_value approx_count_distinct avg bool_and bool_or corr count covar covar_pop covar_samp every first last listagg
max mean median min mode quantile quantile_cont quantile_disc std stddev stddev_pop stddev_samp stdev stdev_pop
stdev_samp string_agg sum var var_pop var_samp variance cume_dist dense_rank first_value lag last_value lead
nth_value ntile percent_rank rank row_number grouping cube rollup sets
cast try_cast convert current_date current_time current_timestamp date date_part date_trunc datetime day dayofweek
dayofyear extract hour interval localtime localtimestamp minute month now quarter second strftime strptime time
timestamp to_char to_date to_timestamp week year
decimal numeric float double real varchar char character binary varbinary
"""
_WORDS = """
all and any as between by case distinct else except exclude exists filter from group having ilike in intersect is
join lateral like limit not offset on or order over partition qualify regexp rename return rlike select similar some
then to union using values when where window with within
"""
_MAY_BE_CALLED = frozenset([*_FUNCTIONS.split(), *_WORDS.split()])
"""Polars' functions and parametrised types, none of which opens a file, and keywords that may precede a bracket."""
_MIXES_ROWS = frozenset(["group", "distinct", "union", "intersect", "except", "join", "unnest"])
_ENDS = frozenset(["limit", "offset", "fetch"])
"""What may follow the keys by which a query sorts."""
_UNKNOWN_TABLE = re.compile(r"relation '(\w+)' was not found")
_VALID_COLUMNS = re.compile(r"; valid columns: \[.*\]$")
"""Polars' own list of columns; the hint lists them by table."""


def query(tables: Mapping[str, pl.LazyFrame], text: str) -> pl.DataFrame:
    """Answer a SELECT over the tables of a run; missing ones are empty, so that one query works for every source.

    Raises:
        StepscopeError: If it is not `SELECT`, `WITH ... SELECT` or `SHOW TABLES`, refers to anything but tables of the
            run, or fails.
    """
    confined = _confined(text)
    context = pl.SQLContext({**_empty(), **tables})
    try:
        with suppress(pl.exceptions.PolarsError):  # what cannot be sorted so is answered as it is, or not at all
            return context.execute(_certain(confined, context), eager=True)
        return context.execute(confined, eager=True)
    except pl.exceptions.PolarsError as error:
        raise StepscopeError(f"the query failed: {_first_line(error)}.{_meant(str(error))} {_hint(text)}") from error
    except pl.exceptions.PanicException as error:  # a bug in Polars itself
        raise StepscopeError(f"the query failed inside Polars: {_first_line(error)}. Try a simpler query") from error


@cache
def _empty() -> dict[str, pl.LazyFrame]:
    """All tables, without rows; made once, as making them takes longer than many a query."""
    return {name: pl.LazyFrame(schema=table.schema) for name, table in TABLES.items()}


def _confined(text: str) -> str:
    """The query without comments; raises `StepscopeError` if it could reach anything but the tables of the run."""
    tokens, kept = _tokens(text)
    words = [token.lower() for _, token in tokens]
    statement = list(itertools.dropwhile("(".__eq__, words))
    if not any(tuple(statement[: len(start)]) == start for start in _STATEMENTS):
        first = " ".join(text.split()[:2]) or "an empty query"
        raise StepscopeError(f"{first}: only SELECT, WITH ... SELECT and SHOW TABLES are supported")
    for before, (kind, token), after in zip([("", ""), *tokens], tokens, [*tokens[1:], ("", "")], strict=False):
        is_called = kind in ("word", "quoted", "text") and after[1] == "("
        names_columns = before[1].lower() in ("as", "with")  # of a table or a subquery
        if is_called and not names_columns and token.strip("\"'").lower() not in _MAY_BE_CALLED:
            raise StepscopeError(
                f"{token}(...) is not a function that a query may call: it can read the tables of this run and nothing "
                f"else. {_hint(text)}"
            )
    return kept


def _certain(query: str, context: pl.SQLContext[pl.LazyFrame]) -> str:
    """The query with all columns as its last keys, where Polars gives rows of equal keys in any order.

    That is so for groups, joins and sorted rows. Of the last, only whole numbers become keys: there may be millions.
    """
    words: list[tuple[str, int]] = []  # of the outermost SELECT, and where each begins
    everywhere, depth = set(), 0
    for match in _TOKEN.finditer(query):
        word = match[0].lower()
        depth += {"(": 1, ")": -1}.get(word, 0)
        if match.lastgroup == "word":
            everywhere.add(word)
            if depth == 0:
                words.append((word, match.start()))
    order = max((place for place, (word, _) in enumerate(words) if word == "order"), default=None)
    is_grouped = bool(everywhere & _MIXES_ROWS)
    if not is_grouped and order is None:
        return query
    schema = context.execute(query, eager=False).collect_schema()
    keys = [
        str(number)
        for number, dtype in enumerate(schema.dtypes(), 1)
        if (not dtype.is_nested() if is_grouped else dtype.is_integer())
    ]
    if not keys:
        return query
    whole = query.rstrip().rstrip(";")
    end = min((at for word, at in words[order or 0 :] if word in _ENDS), default=len(whole))
    return f"{whole[:end]} {'ORDER BY' if order is None else ','} {', '.join(keys)} {whole[end:]}"


def _tokens(text: str) -> tuple[list[tuple[str, str]], str]:
    """The tokens of a query without comments and spaces, and its text with each comment replaced by a space."""
    found: list[tuple[str, str]] = []
    kept, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise StepscopeError(f"the query has an unexpected {text[at]!r} at character {at + 1}. {_hint(text)}")
        kind, at = match.lastgroup, match.end()
        kept.append(" " if kind == "comment" else match[0])
        if kind not in ("comment", "space"):
            found.append((kind, match[0]))
    return found, "".join(kept)


def _first_line(error: BaseException) -> str:
    """The error without the query plan that Polars appends."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return _VALID_COLUMNS.sub("", line).rstrip(".")


def _meant(error: str) -> str:
    """The table with a name like the one that was not found."""
    unknown = _UNKNOWN_TABLE.search(error)
    near = difflib.get_close_matches(unknown[1].lower(), TABLES, n=1) if unknown else []
    return f" Did you mean {near[0]}?" if near else ""


def _hint(text: str) -> str:
    """The columns of the tables that a query names; the names of all tables if it names none."""
    words = set(re.findall(r"\w+", text.lower()))
    columns = [f"{t.name}({', '.join(c.name for c in t.columns)})" for t in TABLES.values() if t.name in words]
    return f"Columns: {'; '.join(columns)}" if columns else f"Tables: {', '.join(TABLES)}"
