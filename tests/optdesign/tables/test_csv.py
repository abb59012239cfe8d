"""CSV files as people write them: labels, separators, numbers, and errors that name the line."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from candidate_files import CSV, error

from optdesign.cli import candidate_file as files
from optdesign.tables import files as tables


def test_csv_with_string_labels(write):
    f = files.read(write(CSV), group="site", block="arm")
    assert f.features == ("dose", "heat")
    np.testing.assert_array_equal(f.candidates, [[1, 0.5], [2, 0.25], [3, -1000]])
    assert f.groups.names.tolist() == ["north", "south"]
    assert f.groups.numbers.tolist() == [0, 1, 0]
    assert f.blocks.names.tolist() == ["a", "b"]
    assert f.problem().n_groups == 2
    assert f.weights is None


def test_labels_default_to_columns_of_that_name_or_to_one(write):
    f = files.read(write("group,x\n10,1\n9,2\n"))
    assert f.groups.names.tolist() == [9, 10]
    assert f.blocks.names.tolist() == [0]
    assert f.features == ("x",)


@pytest.mark.parametrize("labels", [["007", "7"], ["1.0", "1"], ["-3", "x"], ["12345678901234567890", "1"]])
def test_labels_come_out_as_they_went_in(write, labels):
    f = files.read(write("site,x\n" + "".join(f"{v},1\n" for v in labels)), group="site")
    assert sorted(f.groups.names.tolist()) == sorted(labels)


def test_negative_integers_are_labels(write):
    assert files.read(write("g,x\n-1,1\n5,2\n"), group="g").groups.names.tolist() == [-1, 5]


def test_features_are_chosen_in_order_and_other_columns_are_left_alone(write):
    path = write("b,a,id\n1,2,007\n3,4,12345678901234567890\n")
    f = files.read(path, features=["a", "b"])
    np.testing.assert_array_equal(f.candidates, [[2, 1], [4, 3]])
    assert f.columns["id"].tolist() == ["007", "12345678901234567890"]


def test_csv_from_a_spreadsheet(write):
    f = files.read(write(b"\xef\xbb\xbfx, y\r\n1, 2\r\n\r\n3, 4\r\n"))
    assert f.features == ("x", "y")
    np.testing.assert_array_equal(f.candidates, [[1, 2], [3, 4]])


def test_a_column_that_turns_out_to_be_text_late(write, monkeypatch):
    monkeypatch.setattr(tables, "CSV_ROWS", 2)
    path = write("x,n,g\n1,1,a\n2,2,b\n3,1,a\n4,oops,b\n5,5,a\n")
    assert files.read(path, features=["x"], group="g").columns["n"].tolist() == ["1", "2", "1", "oops", "5"]
    assert "line 5, column 'n'" in error(path)
    assert "line 5, column 'n'" in error(path, features=["x", "n"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x;y\n1,5;2\n-3;,5\n", [[1.5, 2], [-3, 0.5]]),
        ("x\ty\n1,5e2\t2.5\n3\t4\n", [[150, 2.5], [3, 4]]),
        ('"a;b",c\n1,2\n', [[1, 2]]),
    ],
)
def test_separators_and_decimal_commas(write, text, expected):
    np.testing.assert_array_equal(files.read(write(text)).candidates, expected)


def test_numbers_with_both_marks_are_refused(write):
    assert "line 3, column 'x' of" in error(write("x;y\n1;2\n1.234,5;2\n"))


def test_whole_numbers_beyond_double_precision_are_refused_as_features_and_kept_otherwise(write, tmp_path):
    path = write("id,x\n9007199254740993,1\n9007199254740995,2\n")
    assert "holds '9007199254740993', which double precision cannot hold" in error(path)
    assert "holds '9007199254740993', which double" in error(path, features=["id"])
    f = files.read(path, features=["x"])
    files.write(tmp_path / "out.csv", f, np.ones(1), np.ones(2), np.ones(2))
    assert "9007199254740995,2,1.0,1.0" in (tmp_path / "out.csv").read_text()
    pq.write_table(pa.table({"id": [2**53 + 1, 1], "x": [1, 2]}), tmp_path / "a.parquet")
    assert "must fit double precision" in error(tmp_path / "a.parquet")
    np.testing.assert_array_equal(
        files.read(write("x\n9007199254740992\n1e300\n")).candidates, [[2.0**53], [1e300]]
    )


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("", {}, ["it is empty"]),
        ("x,y\n", {}, ["no rows"]),
        ("x,x\n1,2\n", {}, ["'x' occurs twice"]),
        ("x,y\n1,2\n1,2,3\n", {}, ["2 fields", "line 3 has 3"]),
        ("x,y\n1,2\n", {"group": "site"}, ["--group", "no 'site'", "'x', 'y'"]),
        ("x,y\n1,2\n", {"block": "arm"}, ["--parameter-block", "no 'arm'"]),
        ("x,y\n1,2\n", {"features": ["z"]}, ["--features", "no 'z'"]),
        ("x,y\n1,2\n", {"features": []}, ["there must be a feature"]),
        ("x,y\na,b\n", {}, ["there must be a feature", "'x', 'y'"]),
        ("x,y\n1,2\n1,two\n", {}, ["line 3, column 'y'", "'two'", "--features"]),
        ("x,y\n1,2\n1,\n", {"features": ["y"]}, ["line 3, column 'y'", "is empty"]),
        ("x,y\n1,2\n1,nan\n", {}, ["finite", "line 3, column 'y'"]),
        ("x,weight\n1,a\n", {}, ["weight must be numbers", "line 2"]),
        ("x,g\n1,a\n2,\n", {"group": "g"}, ["label", "line 3, column 'g'"]),
        (b"x,y\n1,\xff\n", {}, ["UTF-8"]),
        ('x\n"' + "1" * 200_000 + '"\n', {}, ["must be a CSV file"]),
        (",".join(f"c{k}" for k in range(12)) + "\n" + ",".join("1" * 12) + "\n", {"group": "q"}, ["2 more"]),
    ],
)
def test_bad_csv(write, text, options, words):
    message = error(write(text), **options)
    for word in words:
        assert word in message


def test_other_bad_files(write, tmp_path):
    assert ".csv or .parquet or .npz" in error(write("x\n1\n", "data.txt"))
    assert "No such file" in error(tmp_path / "none.csv")
    assert "NPZ archive" in error(write("x", "data.npz"))
    assert "NPZ archive" in error(write("", "data.npz"))
    assert "arquet" in error(write("x", "data.parquet"))


def test_lines_are_those_of_an_editor(write):
    path = write('\nx,note\n1,"two\nlines"\n\n2,b\n?,"and\ntwo"\n')
    assert "line 7, column 'x'" in error(path, features=["x"])
    assert tables.place(path, 0) == "line 3"
    assert tables.place(path, 0, header=False) == "line 2"


def test_written_csv_keeps_whole_numbers_whole(write, tmp_path):
    f = files.read(write(CSV), group="site", block="arm")
    files.write(tmp_path / "out.csv", f, np.ones(2), np.ones(3), np.ones(3))
    assert (tmp_path / "out.csv").read_text().splitlines() == [
        "site,arm,dose,heat,note,weight,variance",
        "north,a,1,0.5,first,1.0,1.0",
        'south,b,2,0.25,"with, comma",1.0,1.0',
        "north,b,3,-1000.0,,1.0,1.0",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "a;b\n1.000;2\n2.500;3.5\n",  # no decimal commas, and a decimal point
        "a;b\n0.500;2,5\n2.500;3,5\n",  # no thousand begins with 0
        "a;b\n1.000;2,5\n2.55;3,5\n",
        "a;b\n100;2,5\n2;3,5\n",
        "a;b\n" + "1.000;1\n" * tables.CSV_ROWS + "1.5;2,5\n",
        'a,b\n1.000,"2,5"\n',
    ],
)
def test_decimal_points_that_cannot_be_thousands_are_read(tmp_path, text):
    (tmp_path / "f.csv").write_text(text)
    column = tables.read_table(tmp_path / "f.csv", text=set())["a"]
    assert column[0] == float(text.split("\n")[1].replace("\t", ";").replace(",", ";").split(";")[0])


def test_a_number_that_is_missing_is_no_label(tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, candidates=np.eye(3), groups=np.array([1.0, np.nan, 1.0]))
    assert error(path).startswith("every row must have a label; row 2, column 'group' of")


@pytest.mark.parametrize(("last", "kind"), [(2**53 - 1, "i"), (2**53, "f"), (2**53 + 1, "O"), (2**62, "f")])
def test_whole_numbers_are_integers_while_doubles_hold_them(write, last, kind):
    """2^53 + 1 is 2^53 as a double: it stays as it was written."""
    column = tables.read_table(write(f"x\n1\n{last}\n-{last}\n"), text=set())["x"]
    assert column.dtype.kind == kind
    assert [int(value) for value in column] == [1, last, -last]


@pytest.mark.parametrize(
    "text", ['x,k\n1,a\n2,"b\n3,c\n4,d\n', 'x,k\n1,a\n2,"b\n3,c\n4,"d\n', 'x,k\n1,"a"b\n2,c\n']
)
def test_quotes_that_are_not_closed_are_refused(tmp_path, text):
    """The rows after such a quote were part of one label."""
    (tmp_path / "f.csv").write_text(text)
    with pytest.raises(ValueError, match="must be a CSV file"):
        tables.read_table(tmp_path / "f.csv", text=set())
