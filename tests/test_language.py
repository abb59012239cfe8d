"""Sentences of the documentation and of all docstrings begin with their subject and use the field's words."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    {ROOT / "README.md", ROOT / "CHANGELOG.md", *ROOT.glob("docs/*.md")} - {ROOT / "docs" / "cli.md"}
)
MODULES = sorted([*ROOT.glob("optdesign/**/*.py"), *ROOT.glob("bandits/**/*.py")])
OPENINGS = re.compile(r"(what|where|who|those that|of)\b", flags=re.I)
PRIVATE = re.compile(
    r"\b(dust|lanes?|kicks?|kicked|earns?|earned|settles?|settled|tells?|told)\b", flags=re.I
)
"""Words for which the field has other ones; "lost" is allowed of rank, digits and information."""
LOST = re.compile(r"\b(?:have|has) lost\b(?! rank| digits)", flags=re.I)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text: paragraphs, list items, cells and headings, split at full stops."""
    text = re.sub(r"^(```|:::|~~~).*?^\1$", "\n\n", text, flags=re.M | re.S)
    text = re.sub(r"^\s*(>>>|\.\.\. ).*(\n(?!\s*\n).+)*", "\n", text, flags=re.M)
    text = re.sub(r"\$\$.*?\$\$", "\n\n", text, flags=re.S)
    text = re.sub(r"^\s*([-*+]|#+|\d+\.|\||[\w*, ]+ : .*$)", "\n\n", text, flags=re.M).replace("|", "\n\n")
    for paragraph in re.split(r"\n\s*\n", text):
        for sentence in re.split(r"(?<=[.!?:])\s+(?=[A-Z`*\[\"])", " ".join(paragraph.split())):
            if re.search(r"[a-z]{2}", sentence):
                yield sentence.lstrip('*`_["(')


def docstrings(path: Path) -> Iterator[str]:
    """Yield all docstrings of a module, those of constants and fields included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        value = (
            node.value.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) else None
        )
        if isinstance(value, str):
            yield value


def texts() -> Iterator[tuple[Path, str]]:
    """Yield all sentences with their file."""
    for page in PAGES:
        yield from ((page, one) for one in sentences(page.read_text(encoding="utf-8")))
    for module in MODULES:
        yield from ((module, one) for text in docstrings(module) for one in sentences(text))


def test_the_splitter_finds_sentences() -> None:
    text = "What is it? It is e.g. a list:\n\n- Of two.\n\n```python\nWhere = 1\n```\n\n>>> x\nWho\n"
    assert [bool(OPENINGS.match(one)) for one in sentences(text)] == [True, False, True]


def test_fewer_than_one_percent_of_sentences_begin_with_a_question_word() -> None:
    found, total = [], 0
    for path, sentence in texts():
        total += 1
        if OPENINGS.match(sentence):
            found.append(f"{path.relative_to(ROOT)}: {sentence[:90]}")
    assert total > 5000
    assert len(found) < 0.01 * total, "\n".join(found)


@pytest.mark.parametrize("words", [PRIVATE, LOST], ids=["private", "lost"])
def test_private_words_are_not_used(words: re.Pattern[str]) -> None:
    found = [f"{path.relative_to(ROOT)}: {one[:110]}" for path, one in texts() if words.search(one)]
    assert not found, "\n".join(found)
