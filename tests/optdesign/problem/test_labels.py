"""Names travel with a problem: of columns, settings, groups and blocks, from arrays and from frames."""

import datetime as dt
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import optdesign as od

X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
SITES = ["Turin", "Lyon", "Lyon", "Turin"]
FRAME = {"one": [1.0, 0.0, 1.0, 2.0], "heat": [0, 1, 1, 1], "site": SITES}


@pytest.mark.parametrize(
    "sites",
    [
        SITES,
        tuple(SITES),
        np.array(SITES),
        np.array(SITES, dtype=object),
        pd.Series(SITES, index=[7, 5, 3, 1]),
        pd.Categorical(SITES),
        pd.Series(SITES, dtype="category"),
        pl.Series(SITES),
        pl.Series(SITES, dtype=pl.Categorical),
        pa.array(SITES),
        pa.chunked_array([SITES[:1], SITES[1:]]).dictionary_encode(),
    ],
    ids=lambda v: type(v).__module__ + "." + type(v).__name__,
)
def test_labels_of_any_kind(sites) -> None:
    p = od.DesignProblem(X, groups=sites, parameter_blocks=sites, budgets={"Turin": 8, "Lyon": 12})
    number = {name: i for i, name in enumerate(p.group_names)}
    assert p.groups.tolist() == p.parameter_blocks.tolist() == [number[s] for s in SITES]
    assert p.parameter_block_names == p.group_names
    assert dict(zip(p.group_names, p.budgets, strict=True)) == {"Turin": 8, "Lyon": 12}


def test_labels_are_sorted_unless_their_type_has_an_order() -> None:
    assert od.DesignProblem(X, groups=SITES).group_names == ("Lyon", "Turin")
    ordered = pd.Categorical(SITES, categories=["Turin", "Rome", "Lyon"])
    assert od.DesignProblem(X, groups=ordered).group_names == ("Turin", "Lyon")
    numbers = pd.Categorical([10, 2, 2, 10])
    assert od.DesignProblem(X, parameter_blocks=numbers).parameter_block_names == (2, 10)


@pytest.mark.parametrize("frame", [pd.DataFrame(FRAME), pl.DataFrame(FRAME), pa.table(FRAME)])
def test_columns_of_a_frame_by_name(frame) -> None:
    p = od.DesignProblem(frame, groups="site", budgets=pd.Series({"Turin": 8.0, "Lyon": 12.0}))
    np.testing.assert_array_equal(p.candidates, np.column_stack([FRAME["one"], FRAME["heat"]]))
    assert p.names == ("one", "heat")
    assert p.group_names == ("Lyon", "Turin")
    assert p.budgets.tolist() == [12.0, 8.0]
    assert p.groups.tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_candidates_in_a_file(tmp_path, suffix: str) -> None:
    path = tmp_path / f"rows{suffix}"
    frame = pd.DataFrame(FRAME)
    frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path)
    for given in (path, str(path)):
        p = od.DesignProblem(given, groups="site", budgets={"Turin": 8, "Lyon": 12})
        np.testing.assert_array_equal(p.candidates, frame[["one", "heat"]])
        assert (p.names, p.group_names) == (("one", "heat"), ("Lyon", "Turin"))
    with pytest.raises(ValueError, match=r"candidates must end in \.csv or \.parquet"):
        od.DesignProblem("rows.txt")


def test_intervals_and_dates_are_labels() -> None:
    cut = pd.cut([1.0, 2.0, 3.0, 4.0], [0, 2, 4])
    assert od.DesignProblem(X, groups=cut).group_names == ("(0, 2]", "(2, 4]")
    days = np.array(["2020-01-02", "2020-01-01"] * 2, dtype="datetime64[D]")
    assert od.DesignProblem(X, parameter_blocks=days).parameter_block_names == ("2020-01-01", "2020-01-02")


def test_numbers_may_have_names_and_rows_settings() -> None:
    p = od.DesignProblem(
        X, [1, 0, 0, 1], names=["a", "b"], settings={"t": [20, 30, 40, 50]}, group_names=["L", "T"]
    )
    assert (p.names, p.group_names, p.parameter_block_names) == (("a", "b"), ("L", "T"), None)
    assert p.settings["t"].tolist() == [20, 30, 40, 50]
    q = od.DesignProblem(X, "t", settings={"t": [20, 20, 40, 50]})
    assert q.group_names == (20, 40, 50)
    plain = od.DesignProblem(X, [1, 0, 0, 1])
    assert (plain.names, plain.settings, plain.group_names, plain.parameter_block_names) == (None,) * 4


def test_names_survive_pickling_and_stay_read_only() -> None:
    p = od.DesignProblem(X, SITES, names=["a", "b"], settings={"t": [1, 2, 3, 4], "s": SITES})
    q = pickle.loads(pickle.dumps(p))
    assert (q.names, q.group_names) == (p.names, p.group_names)
    for problem in (p, q):
        assert problem.settings["s"].tolist() == SITES
        with pytest.raises(ValueError, match="read-only"):
            problem.settings["t"][0] = 7
        with pytest.raises(TypeError):
            problem.settings["t"] = 7


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"groups": SITES, "budgets": {"Lyon": 1}}, ValueError, "'Lyon', 'Turin'; there is none for 'Turin'"),
        (
            {"groups": SITES, "budgets": {"Lyon": 1, "Turin": 2, "Rome": 3}},
            ValueError,
            "got 'Lyon', 'Turin', 'Rome'. Spell them alike",
        ),
        ({"groups": SITES, "budgets": [1, 0]}, ValueError, r"budgets\['Turin'\] = 0. Drop the group"),
        ({"groups": SITES, "budgets": [1]}, ValueError, "got .1,.. The groups are 'Lyon', 'Turin'"),
        ({"groups": "site"}, ValueError, "groups must name a column of the settings; there is no 'site'"),
        ({"groups": "sit", "settings": {"site": SITES}}, ValueError, "did you mean 'site'"),
        ({"groups": ["a", 1.5, "b", "b"]}, ValueError, "groups must be all numbers, all text"),
        ({"groups": np.array(["a", 1, "b", "c"], object)}, ValueError, "holds 'a', and 1 in row 2"),
        (
            {"groups": np.array([["a"]] * 4)},
            ValueError,
            r"one label per candidate, shape \(4,\); got \(4, 1\)",
        ),
        ({"groups": SITES, "group_names": ["a", "b"]}, TypeError, "group_names must be left out"),
        ({"groups": [0, 1, 1, 0], "group_names": ["a", "a"]}, ValueError, "2 different labels"),
        ({"groups": [0, 1, 1, 0], "group_names": ["a"]}, ValueError, "2 different labels"),
        ({"groups": [0, 1, 1, 0], "group_names": ["a", "b", "c"]}, ValueError, "group 'c' of 3 has none"),
        ({"names": ["a"]}, ValueError, "names must be 2 different names"),
        ({"groups": [0, 1, 1, 0], "group_names": {"a", "b"}}, ValueError, "Give them in the order"),
        ({"names": {"a", "b"}}, ValueError, "names must be 2 different names"),
        ({"names": "ab"}, ValueError, "names must be 2 different names"),
        ({"names": ["a", "a"]}, ValueError, "names must be 2 different names"),
        ({"settings": {"t": [1, 2]}}, ValueError, "one row per candidate; got 2 for 4"),
        ({"settings": {"t": [1, 2], "s": [1]}}, ValueError, "columns of one length; 't' has 2"),
        ({"settings": [1, 2, 3, 4]}, TypeError, "mapping of columns or a data frame; got list"),
        ({"settings": {"t": [[1], [2], [3], [4]]}}, ValueError, r"'t' has shape \(4, 1\)"),
    ],
)
def test_bad_names_are_named(arguments: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        od.DesignProblem(X, **arguments)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (
            pd.DataFrame(FRAME),
            "column 'site' is not. Name it as groups or parameter_blocks, drop it, or make",
        ),
        (pd.DataFrame({"x": [1.0, None]}), "column 'x' is missing in row 2"),
        (pd.DataFrame({"x": [2**53 + 1, 1]}), r"column 'x'\[0\] = .* does not"),
        (pd.DataFrame(np.eye(2), columns=["x", "x"]), "'x' occurs twice"),
        (pd.DataFrame(np.eye(2), columns=["\u00b5", "\u03bc"]), "Python reads both as one name"),
        (pd.DataFrame(np.eye(2), columns=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)])), "Join them"),
    ],
)
def test_bad_frames_are_named(frame, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        od.DesignProblem(frame)
    with pytest.raises(
        ValueError, match=r"groups must name a column of the frame; there is no 'sit' \(did you"
    ):
        od.DesignProblem(pd.DataFrame(FRAME), groups="sit")
    with pytest.raises(TypeError, match=r"frames must be in memory; got LazyFrame. Collect it"):
        od.DesignProblem(pl.LazyFrame(FRAME), groups="site")
    with pytest.raises(ValueError, match="all columns of the frame are labels"):
        od.DesignProblem(pd.DataFrame({"site": SITES}), groups="site")


def test_integers_are_labels_where_budgets_are_by_label() -> None:
    p = od.DesignProblem(X, groups=[1, 1, 2, 2], budgets={2: 7, 1: 5})
    assert (p.group_names, p.groups.tolist(), p.budgets.tolist()) == ((1, 2), [0, 0, 1, 1], [5.0, 7.0])
    years = od.DesignProblem(X, groups=[2023, 2021, 2021, 2023], budgets=pd.Series({2021: 5, 2023: 7}))
    assert (years.group_names, years.budgets.tolist()) == ((2021, 2023), [5.0, 7.0])
    with pytest.raises(ValueError, match="those of the groups, '1', '2'; there is none for '2'"):
        od.DesignProblem(X, groups=[1, 1, 2, 2], budgets={1: 5, 3: 7})


def test_integers_beyond_int64_are_labels() -> None:
    p = od.DesignProblem(X, groups=np.array([2**63, 1, 1, 2**63], np.uint64), budgets={2**63: 3, 1: 2})
    assert p.group_names == (1, 2**63)
    assert p.budgets.tolist() == [2.0, 3.0]


def test_durations_are_labels_in_full() -> None:
    days = np.array([10**17, 10**17 + 1, 10**17, 10**17], "m8[ns]")
    names = ("100000000000000000 nanoseconds", "100000000000000001 nanoseconds")
    assert od.DesignProblem(X, groups=days).group_names == names


def test_more_budgets_than_labelled_groups_are_refused() -> None:
    with pytest.raises(ValueError, match=r"one entry per group, shape \(2,\); got \(3,\). The groups are"):
        od.DesignProblem(X, groups=SITES, budgets=[1, 2, 3])


def test_a_group_has_one_budget() -> None:
    with pytest.raises(ValueError, match=r"once each, .* got 'Turin', 'Lyon', 'Lyon'"):
        od.DesignProblem(X, groups=SITES, budgets=pd.Series([3, 8, 9], index=["Turin", "Lyon", "Lyon"]))


@pytest.mark.parametrize(
    "days",
    [
        pd.to_datetime(["2020-01-02", "2020-01-01"]),
        pd.to_datetime(["2020-01-02 13:00", "2020-01-02 12:30"]),
        pd.to_datetime(["2020-01-02", "2020-01-01"]).tz_localize("UTC"),
        pd.Index([dt.date(2020, 1, 2), dt.date(2020, 1, 1)]),
    ],
    ids=["days", "times", "zones", "dates"],
)
def test_budgets_by_date(days) -> None:
    for groups in (days.append(days), pd.Series(days.append(days)), list(days.append(days))):
        p = od.DesignProblem(X, groups=groups, budgets=pd.Series([3.0, 4.0], index=days))
        assert p.groups.tolist() == [1, 0, 1, 0]
        assert p.budgets.tolist() == [4.0, 3.0]
        assert p.group_names[0].startswith(str(min(days))[:10])


# ---------------------------------------------------------------------------------------- missing labels


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NaT, pd.NA, "", "  ", "\t"])
@pytest.mark.parametrize("argument", ["groups", "parameter_blocks"])
def test_a_missing_label_is_refused_with_its_row(missing, argument: str) -> None:
    labels = ["a", "b", missing, "a"]
    frames = [pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "site": pd.Series(labels, dtype=object)})]
    if missing is None or isinstance(missing, str):
        frames += [
            pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "site": labels}),
            pa.table({"x": [1.0, 2.0, 3.0, 4.0], "site": labels}),
            pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "site": pd.Categorical(labels)}),
        ]
    message = rf"{argument} must not be missing; {argument}\[2\] is. Fill it in or drop the row"
    for given in (labels, np.array(labels, dtype=object), pd.Series(labels, dtype=object)):
        with pytest.raises(ValueError, match=message):
            od.DesignProblem(X, **{argument: given})
    for frame in frames:
        with pytest.raises(ValueError, match=message):
            od.DesignProblem(frame, **{argument: "site"})
        with pytest.raises(ValueError, match=message):
            od.DesignProblem(od.candidates(frame, "~ x"), **{argument: "site"})


@pytest.mark.parametrize(
    "labels",
    [
        [0, 1, None, 1],
        [0.0, 1.0, np.nan, 1.0],
        pd.Series([0, 1, None, 1], dtype="Int64"),
        pd.Series([True, False, None, True], dtype="boolean"),
        pl.Series([0, 1, None, 1]),
        pa.array([0, 1, None, 1]),
        np.array(["2020-01-01", "2020-01-02", "NaT", "2020-01-01"], "datetime64[D]"),
    ],
    ids=lambda v: type(v).__module__ + "." + type(v).__name__,
)
def test_missing_numbers_and_dates_are_no_labels(labels) -> None:
    with pytest.raises(ValueError, match=r"groups must not be missing; groups\[2\] is"):
        od.DesignProblem(X, groups=labels)


def test_an_empty_cell_of_a_file_is_no_label(tmp_path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('x,y,site\n1,0,a\n0,1,\n1,1,b\n2,1,"  "\n')
    with pytest.raises(ValueError, match=r"groups must not be missing; line 3, column 'site' of .*rows.csv"):
        od.DesignProblem(path, groups="site", budgets={"a": 1, "": 1, "b": 1})
    with pytest.raises(ValueError, match=r"groups must not be missing; groups\[1\] is"):
        od.DesignProblem(od.candidates(path, "~ x + y"), groups="site")
    path.write_text('x,y,site\n1,0,a\n0,1,c\n1,1,b\n2,1,"  "\n')
    with pytest.raises(ValueError, match="parameter_blocks must not be missing; line 5"):
        od.DesignProblem(path, parameter_blocks="site")
    pd.DataFrame({"x": [1.0, 2.0], "site": ["a", None]}).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="groups must not be missing; row 2, column 'site'"):
        od.DesignProblem(tmp_path / "rows.parquet", groups="site")


def test_names_of_groups_are_not_missing_and_budgets_have_the_labels_of_groups() -> None:
    for names in (["a", ""], ["a", None], [np.nan, "b"]):
        with pytest.raises(ValueError, match=r"group_names must not be missing; group_names\[\d\] is"):
            od.DesignProblem(X, [0, 1, 1, 0], group_names=names)
    for key in (None, "", np.nan, pd.NaT):
        with pytest.raises(ValueError, match="budgets with labels must have, once each, those of the groups"):
            od.DesignProblem(X, groups=SITES, budgets={"Turin": 1, "Lyon": 2, key: 3})


def test_masked_labels_and_budgets_are_refused() -> None:
    mask = [False, True, False, False]
    with pytest.raises(ValueError, match="groups must not be masked"):
        od.DesignProblem(X, groups=np.ma.array([0, 1, 1, 0], mask=mask))
    with pytest.raises(ValueError, match="parameter_blocks must not be masked"):
        od.DesignProblem(X, parameter_blocks=np.ma.array(SITES, mask=mask))
    with pytest.raises(ValueError, match="budgets must not be masked"):
        od.DesignProblem(X, groups=[0, 1, 2, 3], budgets=np.ma.array([1, 1, 1, 1], mask=mask))


# -------------------------------------------------------------------------------------- single precision


def test_single_precision_survives_every_way_in(tmp_path) -> None:
    x = np.random.default_rng(0).random((30, 2))
    both = np.column_stack([x, x @ [0.3, 0.7]]).astype(np.float32)  # rank 2 up to the rounding of float32
    assert np.linalg.matrix_rank(both.astype(float)) == 3
    frame = pd.DataFrame(both, columns=["a", "b", "c"])
    frame.to_parquet(tmp_path / "rows.parquet")
    n = np.arange(30) % 3
    tables = [frame, pl.DataFrame(dict(frame)), pa.table(dict(frame)), tmp_path / "rows.parquet"]
    assert od.DesignProblem(both).rank == 2
    for table in tables:
        assert od.DesignProblem(table).rank == 2
        made = od.candidates(table, "~ 0 + a + b + c")
        assert od.DesignProblem(made).rank == 2
        assert od.DesignProblem(od.local(made, [0.0, 0.0, 0.0])).rank == 2
        assert od.DesignProblem(pickle.loads(pickle.dumps(made))).rank == 2
    assert od.DesignProblem(od.local(both, [0.0, 0.0, 0.0])).rank == 2
    assert od.DesignProblem(frame.assign(n=n, m=1.5 * n)).rank == 3
    assert od.DesignProblem(od.candidates(frame.assign(n=n), "~ 0 + a + b + c + n")).rank == 3
    made = od.candidates(frame, "~ 0 + a + b + c + I(a**2)")
    problem = od.DesignProblem(made)
    assert problem.rank == 3
    od.save(problem, tmp_path / "p.json")
    again = od.load(tmp_path / "p.json")
    assert (again.rank, again.span.rtol) == (3, problem.span.rtol)
    np.testing.assert_array_equal(again.candidates, made.features)
    # A factor that the model does not use has no say.
    assert (
        od.DesignProblem(od.candidates(frame.astype(float).assign(d=both[:, 0]), "~ 0 + a + b + c")).rank == 3
    )


# ------------------------------------------------------------------------------- columns that name rows


@pytest.mark.parametrize("name", ["Unnamed: 0", "__index_level_0__"])
def test_columns_that_name_rows_are_no_features(name: str) -> None:
    frame = pd.DataFrame({name: [5, 6, 7, 8], "x": [1.0, 2.0, 3.0, 4.0]})
    for table in (frame, pl.DataFrame(dict(frame)), pa.table(dict(frame))):
        with pytest.warns(UserWarning, match=f"columns '{name}' name the rows and are not features"):
            assert od.DesignProblem(table).names == ("x",)
        c = od.candidates(table, "~ .")
        assert c.names == ("Intercept", "x")
        assert c.notes[0] == f"not used, because they only name rows: columns '{name}'"
        assert name not in c.settings
        assert od.candidates(table, f"~ `{name}`").names == ("Intercept", name)
        assert len(od.candidates(table, "~ x", where=f"`{name}` > 6")) == 2
    assert od.DesignProblem(frame, groups=name).names == ("x",)


def test_an_index_that_counts_is_no_feature() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 4.0]}).reset_index()
    with pytest.warns(UserWarning, match="columns 'index' name the rows"):
        assert od.DesignProblem(frame).names == ("x",)
    assert od.candidates(frame, "~ .").names == ("Intercept", "x")
    assert od.candidates(frame, "~ index").names == ("Intercept", "index")
    refraction = pd.DataFrame({"index": [1.3, 1.5, 1.4], "x": [1.0, 2.0, 4.0]})
    assert od.DesignProblem(refraction).names == ("index", "x")


def test_an_index_in_a_file_is_no_feature(tmp_path) -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 4.0]}, index=pd.Index([3, 1, 2], name="plot"))
    frame.to_csv(tmp_path / "named.csv")
    assert od.DesignProblem(tmp_path / "named.csv").names == ("plot", "x")  # the file does not say more
    frame.to_parquet(tmp_path / "rows.parquet")
    with pytest.warns(UserWarning, match="columns 'plot' name the rows"):
        assert od.DesignProblem(tmp_path / "rows.parquet").names == ("x",)
    assert od.DesignProblem(tmp_path / "rows.parquet", groups="plot").names == ("x",)
    frame.rename_axis(None).to_csv(tmp_path / "rows.csv")
    frame.rename_axis(None).to_parquet(tmp_path / "bare.parquet")
    for name in ("rows.csv", "bare.parquet"):
        with pytest.warns(UserWarning, match="name the rows"):
            assert od.DesignProblem(tmp_path / name).names == ("x",)
        assert od.candidates(tmp_path / name, "~ .").names == ("Intercept", "x")


def test_the_columns_of_a_saved_design_are_no_features(tmp_path) -> None:
    frame = od.solve(od.DesignProblem(X, names=["a", "b"])).to_frame()
    frame.to_csv(tmp_path / "design.csv", index=False)
    for table in (frame, tmp_path / "design.csv"):
        with pytest.raises(ValueError, match="'weight' and 'variance' are those of a saved design"):
            od.DesignProblem(table)
    assert od.DesignProblem(frame[["a", "b", "weight"]]).names == ("a", "b", "weight")


def test_names_of_groups_that_are_dates():
    names = np.array(["2024-05-01", "2024-05-31"], dtype="M8[ns]")
    p = od.DesignProblem(np.eye(2), groups=[0, 1], group_names=names)
    assert p.group_names == ("2024-05-01", "2024-05-31")


def test_the_former_word_blocks_is_refused_with_both_of_its_meanings() -> None:
    with pytest.raises(TypeError, match=r"blocking factor.*term of the model.*Pass parameter_blocks"):
        od.DesignProblem(np.eye(2), blocks=[0, 1])
    p = od.DesignProblem(np.eye(2), parameter_blocks=["a", "b"])
    assert (p.n_parameter_blocks, p.parameter_block_names) == (2, ("a", "b"))
    assert p.parameter_blocks.tolist() == [0, 1]
