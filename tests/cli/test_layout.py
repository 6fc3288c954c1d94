"""Tables fitted to a width."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from stepscope.cli.layout import Laid, TextColumn, lay_out, lay_out_whole

NAME = TextColumn("name", ["void kernel<with a very long name, and arguments>(float*, float*, int)", "gemm"], cut="end")
PATH = TextColumn("path", ["/data/job/rank-0/trace.json", "/data/job/rank-1/trace.json"], cut="start")
TOTAL = TextColumn("total", ["123456.78 ms", "1.00 ms"], right=True)
MEAN = TextColumn("mean time", ["12.34 ms", "1.00 ms"], right=True, expendable=1)
SCORE = TextColumn("score", ["152.64", "3.50"], right=True, expendable=0)


def widest(laid: Laid) -> int:
    return max(cell_len(line) for line in [*laid.header, laid.rule, *laid.body])


def test_names_are_cut_before_a_column_goes() -> None:
    laid = lay_out([NAME, TOTAL, MEAN, SCORE], 60)

    assert laid.dropped == []
    assert "…" in laid.body[0]
    assert "123456.78 ms" in laid.body[0]
    assert widest(laid) == 60


def test_the_least_important_column_goes_first_and_is_told() -> None:
    laid = lay_out([NAME, TOTAL, MEAN, SCORE], 50)

    assert laid.dropped == ["score"]
    assert widest(laid) <= 50


def test_a_narrower_column_stays_where_a_wider_one_went() -> None:
    wide = TextColumn("origin", ["x" * 30] * 2, expendable=1)

    laid = lay_out([TOTAL, wide, SCORE], 40)

    assert laid.dropped == ["origin"]
    assert "152.64" in laid.body[0]


def test_a_title_takes_several_lines_rather_than_widening_its_column() -> None:
    laid = lay_out([TOTAL, MEAN], None)

    assert [line.split() for line in laid.header] == [["mean"], ["total", "time"]]


def test_a_path_keeps_its_end() -> None:
    laid = lay_out([PATH, TOTAL], 34)

    assert [line.split()[0][-18:] for line in laid.body] == ["/rank-0/trace.json", "/rank-1/trace.json"]
    assert laid.body[0].startswith("…")


def test_an_operator_named_by_its_place_in_the_model_keeps_its_end() -> None:
    names = TextColumn("name", ["Default/network-WithLossCell/_backbone-Net/fc-Dense/MatMul-op0"], cut="end")

    assert lay_out([names], 30).body[0].endswith("/fc-Dense/MatMul-op0")


def test_values_that_would_be_cut_to_the_same_text_keep_their_ends() -> None:
    names = TextColumn("name", ["elementwise_kernel<AddFunctor>", "elementwise_kernel<MulFunctor>", "gemm"], cut="end")

    assert lay_out([names], 20).body == ["element…<AddFunctor>", "element…<MulFunctor>", "gemm"]


def test_values_that_differ_in_the_middle_show_where() -> None:
    names = [f"split_embedding_codegen_{way}_unweighted_kernel_per_row" for way in ("forward", "backward")]

    assert lay_out([TextColumn("name", names, cut="end")], 20).body == ["…forward_unweighted…", "…backward_unweighte…"]


def test_no_word_of_a_title_is_cut() -> None:
    column = TextColumn("communication", ["x" * 40, "y"], cut="end")

    assert lay_out([column, TOTAL], 27).header[-1].split() == ["communication", "total"]
    assert lay_out([column, TOTAL], 25).header == []


def test_rows_become_records_where_nothing_else_fits() -> None:
    laid = lay_out([NAME, TOTAL, MEAN], 20)

    assert laid.header == []
    assert "total      123456.78 ms" in laid.body


def test_without_a_width_nothing_is_cut() -> None:
    laid = lay_out([NAME, PATH, TOTAL, MEAN, SCORE], None)

    assert laid.dropped == []
    assert NAME.cells[0] in laid.body[0]
    assert PATH.cells[0] in laid.body[0]
    assert "…" not in "".join(laid.body)


def test_a_whole_table_folds_long_texts() -> None:
    laid = lay_out_whole([NAME, TOTAL], 50)

    folded = "".join(line[:36].strip() for line in laid.body[:-1])
    assert folded.replace(" ", "") == NAME.cells[0].replace(" ", "")
    assert widest(laid) <= 50


@given(
    st.integers(8, 120),
    st.lists(st.tuples(st.text("ab 数", max_size=80), st.integers(0, 10**18)), max_size=4),
    st.booleans(),
)
def test_numbers_are_never_cut_and_tables_never_too_wide(width: int, rows: list, whole: bool) -> None:
    columns = [
        TextColumn("name", [name for name, _ in rows], cut="end"),
        TextColumn("value", [str(value) for _, value in rows], right=True),
        TextColumn("again", [str(value) for _, value in rows], right=True, expendable=0),
    ]

    laid = (lay_out_whole if whole else lay_out)(columns, width)

    assert not laid.header or widest(laid) <= width
    text = "\n".join(laid.body)
    assert all(str(value) in text for _, value in rows)
