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
    ],
)
def test_thousands_in_a_file_with_decimal_points_are_refused(tmp_path, text):
    (tmp_path / "f.csv").write_text(text)
    with pytest.raises(ValueError, match=r"column 'y' holds '-?1,000', a thousand or a decimal comma"):
        files.read_table(tmp_path / "f.csv", text=set())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x;y\n5;1,250\n7;500\n", [1.25, 500]),  # no decimal points: documented as decimals
        ("x;y\n0.5;1,25\n7;500\n", [1.25, 500]),  # two digits are no thousands
        ("x;y\n0.5;0,250\n7;500\n", [0.25, 500]),  # no thousand begins with 0
        ("label;y\n1.5;1,250\n2.5;500\n", [1.25, 500]),  # labels are not numbers
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
