"""The page on property tests of one's own: its code runs, is short, and fails where and as the page says."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "testing.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, flags=re.M | re.S)


@pytest.fixture(scope="module")
def page():
    """What the code of the page defines."""
    defined: dict = {}
    for language, code in BLOCKS:
        if language == "python":
            exec(compile(code, "testing.md", "exec"), defined)
    return defined


def test_a_routine_is_tested_in_ten_lines():
    code = next(code for language, code in BLOCKS if language == "python")
    assert len([line for line in code.splitlines() if line.strip()]) <= 10


@pytest.mark.slow
def test_the_page_says_what_is_printed(page, capsys):
    """The second block prints three failures; the page shows the first, and names the others' causes."""
    python = [code for language, code in BLOCKS if language == "python"]
    exec(compile(python[1], "testing.md", "exec"), dict(page))
    printed = capsys.readouterr().out
    shown = next(code for language, code in BLOCKS if language == "text")
    assert printed.startswith(shown)
    rest = printed[len(shown) :]
    assert rest.startswith("LinAlgError\nSingular matrix\n")
    assert rest.count("Failing test case") == 2


def test_everything_the_page_names_exists():
    import bandits.testing
    import optdesign.testing

    for name in re.findall(r"`(\w+)\(", PAGE):
        assert any(hasattr(module, name) for module in (bandits.testing, optdesign.testing)), name
