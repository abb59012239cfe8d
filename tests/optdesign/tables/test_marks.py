"""Numbers in files: thousands separators, decimal numbers of Parquet, messages about columns."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from optdesign.cli import candidate_file
from optdesign.tables import files


@pytest.mark.parametrize(
    "text",
    [
        "x;y\n0.5;500\n0.7;1,000\n",
        "y;x\n1,000;0.5\n20;7\n",
        "x\ty\n.5\t-1,000\n",
        "x;y\n" + "5;900\n" * files.CSV_ROWS + "1.5e3;1,000\n",
        "y;b\n1.000;2,5\n2.500;3,5\n",
        "y;b\n1.000;x\n500;1.000,5\n",
        "b;y\n1,5;1.000\n2;-250\n",
        "y\tb\n1.000\t2,5\n",
        "y;b\n" + "900;1\n" * files.CSV_ROWS + "1.000;2,5\n",
        "x;y\n1;999.5\n2;1,000\n3;1,001\n",
        "x;y\n1;999,5\n2;1.000\n",
    ],
)
def test_thousands_beside_decimals_of_the_other_sign_are_refused(tmp_path, text):
    (tmp_path / "f.csv").write_text(text)
    own = "point" if "1.000" in text else "comma"
    with pytest.raises(ValueError, match=rf"column 'y' holds '-?1[.,]000', a thousand or a decimal {own}"):
        files.read_table(tmp_path / "f.csv", text=set())


@pytest.mark.parametrize(
    "text",
    [
        "x;y\n1;500\n2;1,000\n",
        "x;y\n1;500\n2;1.000\n",
        "x\ty\n1\t1,250\n2\t2,500\n",
        "x;y\n1;1.250\n2;-2.500\n",
        "label;y\n0,5;1,250\n0,7;500\n",  # labels are not numbers
        "x;y\n5;900\n" + "5;1,000\n" * files.CSV_ROWS,
    ],
)
def test_thousands_that_no_other_number_tells_from_decimals_are_refused(tmp_path, text):
    """500 and 1,000 are 500 and 1000, or 500 and 1."""
    (tmp_path / "f.csv").write_text(text)
    with pytest.raises(
        ValueError, match=r"column 'y' holds '.*', a thousand or a decimal (point|comma)\. Leave"
    ):
        files.read_table(tmp_path / "f.csv", text={"label"})


def test_underscores_make_labels(tmp_path):
    """Python's float reads 1_2 as 12."""
    (tmp_path / "f.csv").write_text("x,y\n1,1_2\n2,2_1\n")
    assert files.read_table(tmp_path / "f.csv", text=set())["y"].tolist() == ["1_2", "2_1"]
    (tmp_path / "f.csv").write_text("x,y\n1,1_000\n2,2\n")
    with pytest.raises(ValueError, match=r"line 2, column 'y' of .* holds '1_000'"):
        candidate_file.read(tmp_path / "f.csv")


@pytest.mark.parametrize("text", ["0.5,1.5\n2,3\n", "-1,1\n1,1\n", "0,5;1;2\n2;3;4\n", ",0.5,1.5\na,2,3\n"])
def test_a_file_without_a_header_is_refused(tmp_path, text):
    """Its first candidate would become the names."""
    (tmp_path / "f.csv").write_text(text)
    with pytest.raises(ValueError, match=r"must have a header; its first line holds '(0.5|-1|0,5)', '1"):
        files.read_table(tmp_path / "f.csv", text=set())


def test_columns_with_numbers_for_names_are_read(tmp_path):
    (tmp_path / "f.csv").write_text(",0,1\na,2,3\n")
    assert files.read_table(tmp_path / "f.csv", text=set())["1"].tolist() == [3]


@pytest.mark.parametrize(
    "text", ["10 %", "10%", "\u22125", "1\u00a0000", "1\u202f000", "1\u2019000", "(3)", "3-", "\u20ac5"]
)
def test_text_that_may_be_a_number_is_noted(text):
    assert files.looks_numeric(text)


@pytest.mark.parametrize("text", ["a1", "2x", "2024-01-01", "10-20", "", " ", "1e", "%"])
def test_text_that_is_no_number_is_not_noted(text):
    assert not files.looks_numeric(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x;y\n0,5;1,250\n7;500\n", [1.25, 500]),  # another number has a decimal comma
        ("x;y\n1,5e3;1,250\n7;500\n", [1.25, 500]),
        ("x;y\n0.5;1,25\n7;500\n", [1.25, 500]),  # two digits are no thousands
        ("x;y\n0.5;0,250\n7;500\n", [0.25, 500]),  # no thousand begins with 0
        ("label;y\n1.5;1,250\n2.5;500,0\n", [1.25, 500]),  # labels are not numbers
    ],
)
def test_decimal_commas_that_cannot_be_thousands_are_read(tmp_path, text, expected):
    (tmp_path / "f.csv").write_text(text)
    assert files.read_table(tmp_path / "f.csv", text={"label"})["y"].tolist() == expected


def test_decimal_numbers_of_parquet_are_rounded_to_the_nearest(tmp_path):
    values = [Decimal(k) / 10 for k in range(-200, 200)]
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"x": pa.array(values, pa.decimal128(5, 1))}), path)
    assert files.read_table(path, text=set())["x"].tolist() == [float(v) for v in values]


def test_columns_of_parquet_with_one_name_are_refused(tmp_path):
    path = tmp_path / "f.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array([1.0]), pa.array([2.0])], names=["x", "x"]), path)
    with pytest.raises(ValueError, match="must name each column once"):
        files.read_table(path, text=set())


def test_numbers_as_text_in_parquet_are_called_text(tmp_path):
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"x": [1.0, 2.0], "k": ["1", "2"]}), path)
    with pytest.raises(ValueError, match=r"column 'k' of .* holds '1' as text"):
        candidate_file.read(path)


def test_times_of_parquet_that_coincide_where_clocks_are_set_back_are_refused(tmp_path):
    hours = np.array(["2024-10-27T00:30", "2024-10-27T01:30"], dtype="M8[s]")
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"t": pa.array(hours).cast(pa.timestamp("s", tz="Europe/Berlin"))}), path)
    with pytest.raises(ValueError, match="different local times"):
        files.read_table(path, text=set())
