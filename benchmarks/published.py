"""Published examples: run lists and figures as they are printed, beside those of ``od.evaluate``.

Every example has its source, the run list of the source, and figures with the digits of the source. A figure
agrees if it differs from that of optdesign by at most half a unit of its last digit.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np

import optdesign as od


class Row(NamedTuple):
    """A figure of a source, with its digits, and that of optdesign."""

    name: str
    published: str
    ours: float

    @property
    def agrees(self) -> bool:
        """True if both differ by at most half a unit of the last digit that is printed."""
        mantissa, _, exponent = self.published.lower().partition("e")
        decimals = len(mantissa.partition(".")[2]) - int(exponent or 0)
        return abs(float(self.published) - self.ours) <= 0.500001 * 10.0**-decimals


class Example(NamedTuple):
    """A published example."""

    title: str
    source: str
    rows: list[Row]
    note: str = ""


SKPR = "skpr (R), tylermorganwall.github.io/skpr/reference/"


def eleven() -> Example:
    levels = {name: [-1, 1] for name in "ABC"}
    runs = od.exact(od.DesignProblem(od.candidates(levels, "~ A + B + C"), budgets=11))
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("alpha 0.2, effect 2", {"alpha": 0.2, "effect": 2}, "0.9622638"),
        ("model ~ A + C", {"alpha": 0.2, "effect": 2, "model": "~ A + C"}, "0.9659328"),
        ("alpha 0.05, effect 2", {"effect": 2}, "0.7991116"),
        ("alpha 0.2, effect 1", {"alpha": 0.2, "effect": 1}, "0.6021367"),
    ]
    rows = []
    for name, options, published in cases:
        e = od.evaluate(runs, **options)
        rows += [
            Row(f"power of {term}, {name}", published, float(v))
            for term, v in zip(e.terms, e.power, strict=True)
        ]
    note = """The source prints no list. Every D-optimal list has the same information matrix, up to signs."""
    return Example("11 runs of three factors at two levels", SKPR + "eval_design", rows, note)


COFFEE_LIST = """
-1 2 2, 1 1 4, 1 3 3, -1 3 2, -1 1 1, -1 1 4, -1 3 4, 1 2 4, -1 3 1, 1 1 4, 1 3 1, -1 1 2, -1 3 3, 1 3 1,
1 1 2, 1 1 3, 1 2 1, -1 2 4, 1 1 3, -1 2 1, -1 1 1, -1 2 3, 1 1 2, 1 2 3, 1 3 2, -1 1 3, 1 2 1, 1 2 2, 1 3 4
"""
"""The 29 runs that skpr prints, as cost, number of the size, number of the type. It prints coded columns."""


def coffee_table() -> dict[str, np.ndarray]:
    """Return the coffee experiment: levels, their reverse order, and columns of simplex contrasts of each."""
    runs = np.array([run.split() for run in COFFEE_LIST.split(",")], int)
    three = np.array([[2**0.5, 0], [-(0.5**0.5), 1.5**0.5], [-(0.5**0.5), -(1.5**0.5)]])
    four = np.array(
        [[3**0.5, 0, 0], [-(3**-0.5), (8 / 3) ** 0.5, 0]]
        + [[-(3**-0.5), -((2 / 3) ** 0.5), sign * 2**0.5] for sign in (1, -1)]
    )
    size, kind = runs[:, 1] - 1, runs[:, 2] - 1
    table = {"cost": runs[:, 0], "size": np.array(SIZES)[size], "type": np.array(TYPES)[kind]}
    table |= {"reversed_size": np.array(SIZES)[2 - size], "reversed_type": np.array(TYPES)[3 - kind]}
    for j in range(2):
        table |= {f"size{j + 1}": three[size, j], f"reversed_size{j + 1}": three[2 - size, j]}
    for j in range(3):
        table |= {f"type{j + 1}": four[kind, j], f"reversed_type{j + 1}": four[3 - kind, j]}
    return table


SIZES, TYPES = ["Grande", "Short", "Venti"], ["Colombian", "Ethiopian", "Kona", "Sumatra"]
COLUMNS = ("size1", "size2", "type1", "type2", "type3")


def coffee() -> Example:
    table = coffee_table()
    left = " + ".join(f"{a}:{b}" for a, b in COFFEE_ALIAS)
    e = od.evaluate(table, "~ cost + " + " + ".join(COLUMNS), coded=False, alias=f"~ {left}")
    rows = []
    for (a, b), column in COFFEE_ALIAS.items():
        k = e.alias_terms.index(f"{a}:{b}")
        for j, term in enumerate(e.terms):
            name = f"alias of {term} with {a}:{b}"
            rows.append(Row(name, column.get(term, "0.0000000"), float(e.alias[j, k])))
    rows.append(Row("D-efficiency, percent", "99.09996", 100 * e.measures.D))
    rows.append(Row("A-efficiency, percent", "98.21557", 100 * e.measures.A))
    # The average of cost^2 over the interval from -1 to 1 is that over the points -1/sqrt(3) and 1/sqrt(3).
    region = {"cost": [-(3**-0.5), 3**-0.5], "size": SIZES, "type": TYPES}
    model = "~ cost + size + type"
    average = od.evaluate(table, model, coded=False, region=region).average_variance
    rows.append(Row("I, average prediction variance", "0.2224214", average))
    back = od.evaluate(table, "~ cost + " + " + ".join(f"reversed_{c}" for c in COLUMNS), coded=False)
    for i, j, value in COFFEE_CORRELATIONS:
        name = f"correlation of {back.terms[i]} and {back.terms[j]}"
        rows.append(Row(name, value, abs(float(back.correlation[i, j]))))
    e = od.evaluate(table, "~ cost + reversed_size + reversed_type", effect=2)
    powers = zip(e.terms, COFFEE_POWERS, e.power, strict=True)
    rows += [Row(f"power of {name}", value, float(ours)) for name, value, ours in powers]
    terms = zip(e.effect_terms[2:], ["0.9522717", "0.9907584"], e.effect_power[2:], strict=True)
    rows += [Row(f"power of the term {name}", value, float(ours)) for name, value, ours in terms]
    other = od.evaluate(table, "~ cost + reversed_size + reversed_type", effect=[2, 2, 2, 0, 0, 2, 0])
    terms = zip(other.effect_terms[2:], ["0.9654778", "0.8478953"], other.effect_power[2:], strict=True)
    rows += [Row(f"power of the term {name}, some 0", value, float(ours)) for name, value, ours in terms]
    source = SKPR + "get_attribute (runs, aliases), get_optimality (D, A, I), eval_design (powers)"
    note = """The correlations and powers of eval_design agree for levels in reverse order, which it does
  not print. The other figures do not depend on an assumption."""
    return Example("Coffee, 29 runs", source, rows, note)


COFFEE_POWERS = [
    "0.9990689", "0.9991530", "0.9443775", "0.9443775", "0.8339422", "0.8339422", "0.8339422",
]  # fmt: skip
COFFEE_ALIAS: dict[tuple[str, str], dict[str, str]] = {
    ("cost", "size1"): {
        "Intercept": "0.005324599", "cost": "0.078804069", "size1": "0.048192771", "type1": "-0.304341723",
    },
    ("cost", "size2"): {"size2": "0.1111111"},
    ("cost", "type1"): {
        "Intercept": "-0.03478014", "cost": "0.06260425", "size1": "-0.31479386", "type1": "-0.01204819",
    },
    ("cost", "type2"): {"type2": "0.1428571"},
    ("cost", "type3"): {"type3": "0.1428571"},
    ("size1", "type1"): {
        "Intercept": "-0.12173669", "cost": "-0.33200915", "size1": "-0.06260425", "type1": "-0.11288150",
    },
    ("size2", "type1"): {"size2": "0.1924501"},
    ("size1", "type2"): {"type2": "0.2020305"},
    ("size2", "type2"): {},
    ("size1", "type3"): {"type3": "0.2020305"},
    ("size2", "type3"): {},
}  # fmt: skip
COFFEE_CORRELATIONS = [
    (1, 2, "0.00997807"), (1, 3, "0.01772574"), (1, 4, "0.02159185"), (1, 5, "0.03064609"),
    (1, 6, "0.05386824"), (2, 3, "0.04386345"), (2, 4, "0.02576107"), (2, 5, "0.03656362"),
    (2, 6, "0.06426979"), (3, 4, "0.04576376"), (3, 5, "0.06495416"), (3, 6, "0.11417333"),
    (4, 5, "0.01022654"), (4, 6, "0.01797572"), (5, 6, "0.02551359"),
]  # fmt: skip


def caffeine() -> Example:
    grid = list(product([80, 100], ["Kona", "Java"], ["Large", "Medium", "Small"]))
    table = dict(zip(("temp", "type", "beansize"), map(list, zip(*grid, strict=True)), strict=True))
    e = od.evaluate(table, "~ temp + type + beansize", effect=2)
    printed = ["0.8424665", "0.8424665", "0.8424665", "0.5593966", "0.5593966"]
    rows = [Row(f"power of {n}", p, float(v)) for n, p, v in zip(e.terms, printed, e.power, strict=True)]
    rows.append(Row("power of the term beansize", "0.5165386", float(e.effect_power[3])))
    return Example("Caffeine, 12 runs", "README of skpr (R), github.com/tylermorganwall/skpr", rows)


def algdesign() -> Example:
    grid = np.array(list(product([-1, 0, 1], repeat=3)))[:, ::-1]
    table = dict(zip("ABC", grid[::2].T, strict=True))  # rows 1, 3, 5, ..., 27
    e = od.evaluate(table, "~ quad(A, B, C)")
    n = e.n_runs
    rows = [
        Row("D", "0.4630447", e.measures.D),
        Row("A, n times the average c_jj", "3.22", n * float(e.relative_variances.mean())),
        Row("I, n times the average variance", "9.945833", n * e.average_variance),
        Row("Ge, G-efficiency", "0.893", e.measures.G),
        Row("Dea, exp(1 - 1/Ge)", "0.887", float(np.exp(1 - 1 / e.measures.G))),
    ]
    source = "AlgDesign (R), stat.ethz.ch/pipermail/r-help/2011-November/296625.html"
    return Example("Quadratic model in three factors, 14 runs", source, rows)


def one_way() -> Example:
    means = np.sqrt(3) / 2 * np.array([-1, 1, -1, 1])  # variance 1
    e = od.evaluate({"group": list("abcd") * 5}, "~ group", effect=[0, *(2 * means[:3])], sigma=3**0.5)
    rows = [Row("power of the F test", "0.3535594", float(e.effect_power[1]))]
    source = "R, help page of power.anova.test(groups = 4, n = 5, between.var = 1, within.var = 3)"
    return Example("One-way layout, four groups of five runs", source, rows)


def warpbreaks() -> Example:
    table = {"wool": ["A"] * 27 + ["B"] * 27, "tension": (["L"] * 9 + ["M"] * 9 + ["H"] * 9) * 2}
    model = "~ C(wool, contr.treatment('A')) * C(tension, contr.treatment('L'))"
    e = od.evaluate(table, model, sigma=119.69**0.5)  # the mean square of residuals that the source prints
    names = ["Intercept", "woolB", "tensionM, H", "tensionM, H", "woolB:tensionM, H", "woolB:tensionM, H"]
    printed = ["3.647", "5.157", "5.157", "5.157", "7.294", "7.294"]
    rows = [
        Row(f"standard error of {n}", p, float(s))
        for n, p, s in zip(names, printed, e.standard_errors, strict=True)
    ]
    rows.append(Row("residual degrees of freedom", "48", e.error_df))
    source = "R, tests/Examples/datasets-Ex.Rout.save: lm(breaks ~ wool*tension, warpbreaks)"
    return Example("Warp breaks, 54 runs", source, rows)


LONGLEY_TABLE = """
83.0 234289 2356 1590 107608 1947
88.5 259426 2325 1456 108632 1948
88.2 258054 3682 1616 109773 1949
89.5 284599 3351 1650 110929 1950
96.2 328975 2099 3099 112075 1951
98.1 346999 1932 3594 113270 1952
99.0 365385 1870 3547 115094 1953
100.0 363112 3578 3350 116219 1954
101.2 397469 2904 3048 117388 1955
104.6 419180 2822 2857 118734 1956
108.4 442769 2936 2798 120445 1957
110.8 444546 4681 2637 121950 1958
112.6 482704 3813 2552 123366 1959
114.2 502601 3931 2514 125368 1960
115.7 518173 4806 2572 127852 1961
116.9 554894 4007 2827 130081 1962
"""
CERTIFIED = """
890420.383607373 84.9149257747669 0.0334910077722432 0.488399681651699 0.214274163161675 0.226073200069370
455.478499142212
"""


def longley() -> Example:
    columns = np.array([line.split() for line in LONGLEY_TABLE.strip().splitlines()], float).T
    names = ("deflator", "gnp", "unemployed", "forces", "population", "year")
    table = dict(zip(names, columns, strict=True))
    e = od.evaluate(table, "~ " + " + ".join(table), sigma=304.854073561965, coded=False)
    # Twelve digits: the residual standard deviation, which the figures are multiples of, has fifteen.
    rows = [
        Row(f"standard deviation of {n}", f"{float(c):.11e}", float(s))
        for n, c, s in zip(e.terms, CERTIFIED.split(), e.standard_errors, strict=True)
    ]
    source = "NIST/ITL StRD, Linear Regression, Longley: certified values, here with twelve digits"
    return Example("Longley, 16 rows of six nearly collinear columns", source, rows)


EXAMPLES: tuple[Callable[[], Example], ...] = (
    eleven, coffee, caffeine, algdesign, one_way, warpbreaks, longley,
)  # fmt: skip
