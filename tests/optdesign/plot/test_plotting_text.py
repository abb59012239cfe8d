"""Labels in any script: drawn where a font has them, readable where none has."""

import unicodedata

import numpy as np
import pytest
from drawn import assert_legible
from matplotlib import font_manager
from typer.testing import CliRunner

import optdesign as od
from optdesign.cli.commands import app
from optdesign.plot import text
from optdesign.plot.text import all_readable, readable


@pytest.fixture(autouse=True)
def forgetful():
    """Fonts are looked up once per character: every test begins anew."""
    text._found.cache_clear()
    yield
    text._found.cache_clear()


@pytest.fixture
def few_fonts(monkeypatch):
    """Only the fonts that come with matplotlib, whatever this machine has."""
    shipped = [f for f in font_manager.fontManager.ttflist if "mpl-data" in f.fname]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", shipped)


def overview(names):
    x = np.random.default_rng(0).normal(size=(12, 2))
    return od.plot.overview(od.solve(od.DesignProblem(x, np.arange(12) % 2, group_names=names)))


def rest_slow(first, *others):
    return [first, *(pytest.param(other, marks=pytest.mark.slow) for other in others)]


@pytest.mark.parametrize(
    "label", rest_slow("Größe", "Ωμέγα", "Температура", "درجة الحرارة", "טמפרטורה", "😀", "ﬁ")
)
def test_scripts_that_the_default_font_has_stay_as_they_are(label):
    assert readable(label) == label
    assert_legible(overview([label, "b"]))


@pytest.mark.usefixtures("few_fonts")
def test_another_font_is_found():
    label = "ℊ"  # STIX has it, DejaVu Sans does not
    figure = overview([label, "b"])
    assert readable(label) == label
    families = [t.get_fontfamily() for t in figure.axes[1].get_xticklabels()]
    assert families[0] == [*families[1], text._family(label)]
    assert text._family(label)
    assert_legible(figure)


@pytest.mark.parametrize("label", rest_slow("温度", "तापमान", "온도", "อุณหภูมิ"))
@pytest.mark.usefixtures("few_fonts")
def test_characters_without_font_become_codes(label):
    with pytest.warns(UserWarning, match=r"no installed font has .*Install a font"):
        figure = overview([label, "b"])
    shown = figure.axes[1].get_xticklabels()[0].get_text()
    assert shown.startswith(label[0].encode("ascii", "backslashreplace").decode())
    assert_legible(figure)


@pytest.mark.usefixtures("few_fonts")
def test_last_resort_is_no_font():
    """Its glyphs are boxes; matplotlib itself falls back to it."""
    assert text._family("温") is None


@pytest.mark.parametrize("c", ["\x07", "\u202e", "\ud800", "\ue000"])
def test_characters_without_shape_become_codes_silently(c):
    assert readable(f"a{c}b") == "a" + c.encode("ascii", "backslashreplace").decode() + "b"


def test_a_dollar_begins_no_formula():
    figure = overview(["$5 and $6", r"$\frac{$"])
    assert_legible(figure)


def test_short_labels_stay_and_long_ones_stay_apart():
    assert all_readable(["a", "a", "b"], 5) == ["a", "a", "b"]
    long = [f"the plant number {n} of our company in Lyon" for n in (1, 10, 11)]
    assert all_readable(long, 20) == ["…1…", "…10…", "…11…"]
    assert all_readable(["same label for all of them"] * 2, 8) == ["same…hem"] * 2
    nested = ["a long label of a plant", "a long label of a plant in town"]
    assert len(set(all_readable(nested, 10))) == 2


def test_labels_are_one_line():
    assert readable(" two\nlines\tand  more ") == "two lines and more"
    assert unicodedata.category(readable("x" * 50, 10)[5]) == "Po"


@pytest.mark.usefixtures("few_fonts")
def test_the_command_says_what_it_draws_instead(tmp_path):
    rows = ["site,x,y", *(f"{site},{x},{y}" for site in ("温", "b") for x, y in ((1, 0), (0, 1), (1, 1)))]
    (tmp_path / "a.csv").write_text("\n".join(rows), encoding="utf-8")
    command = ["solve", str(tmp_path / "a.csv"), "--group", "site", "--plot", str(tmp_path / "a.svg")]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.stderr
    assert "optdesign: no installed font has 温: the picture shows" in done.stderr
    assert (tmp_path / "a.svg").exists()
