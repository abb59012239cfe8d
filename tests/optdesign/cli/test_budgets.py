"""Files of budgets."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from candidate_files import CSV

from optdesign.cli import budgets
from optdesign.cli import candidate_file as files


@pytest.mark.parametrize("header", ["", "site,budget\n"])
def test_budgets(write, header):
    path = write(header + "south,2.5\nnorth,1\n", "budgets.csv")
    f = files.read(write(CSV), group="site").with_budgets(str(path))
    np.testing.assert_array_equal(f.problem().budgets, [1, 2.5])


def test_budgets_in_parquet_with_numbers_for_labels(tmp_path):
    path = tmp_path / "budgets.parquet"
    pq.write_table(pa.table({"g": [2.0, 1.0, 0.5], "f": [20, 10, 5]}), path)
    assert budgets.read(path, np.array([0.5, 1.0, 2.0])).tolist() == [5, 10, 20]
    assert budgets.read(path, np.array(["0.5", "1", "2"], dtype=object)).tolist() == [5, 10, 20]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("north,1\n", ["cover every group", "'south'"]),
        ("", ["cover every group", "'north', 'south'"]),
        ("north,1\nsouth,1\nwest,2\n", ["'west'", "'north', 'south'"]),
        ("north,1\nsouth,0\n", ["positive", "'south'", "'0'"]),
        ("north,1\nsouth,much\n", ["positive", "'much'"]),
        ("north,1\nnorth,2\nsouth,1\n", ["'north' twice"]),
        ("north\n", ["two columns", "line 1 of", "has 1."]),
        ("g,f\n\nnorth,1\nsouth,1,1\n", ["two columns", "line 4 of", "has 3."]),
        ("g,f\nnorth,1\nsouth,-1\n", ["line 3 of", "gives group 'south' '-1'"]),
        ("North,1\nsouth,1\n", ["no budget for 'north', but one for 'North'", "spelled alike"]),
    ],
)
def test_bad_budgets(write, text, words):
    f = files.read(write(CSV), group="site")
    with pytest.raises(ValueError, match="--budget") as caught:
        f.with_budgets(str(write(text, "budgets.csv")))
    for word in words:
        assert word in str(caught.value)


def test_budgets_before_labels(tmp_path):
    (tmp_path / "budgets.csv").write_text("budget,site\n2,1\n1,2\n")
    pq.write_table(pa.table({"budget": [2, 1], "site": [1, 2]}), tmp_path / "budgets.parquet")
    for path in tmp_path.iterdir():
        with pytest.raises(ValueError, match="labels before budgets"):
            budgets.parse(str(path), "--budget", "site", np.array([1, 2]), ["site"])


@pytest.mark.parametrize("budget", ["1.500", "1,500"])
def test_a_thousand_or_a_decimal_sign(tmp_path, budget):
    path = tmp_path / "budgets.csv"
    path.write_text(f"g;f\nnorth;{budget}\nsouth;2\n")
    with pytest.raises(ValueError, match=f"'{budget}', a thousand or a decimal"):
        budgets.read(path, np.array(["north", "south"]))
