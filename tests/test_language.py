"""Sentences of docs, docstrings, messages and comments begin with their subject and use the field's words."""

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from functools import cache
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

VAGUE = re.compile(
    r"_?(settled|enough|few|most|look|each|told|meant|beside|lifted|thinned|over|why|go|odd|less|some)"
)
"""Names that do not say what a function returns or does."""


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text: paragraphs, list items, cells and headings, split at full stops."""
    text = re.sub(r"^(```|:::|~~~).*?^\1$", "\n\n", text, flags=re.M | re.S)
    text = re.sub(r"^\s*(>>>|\.\.\. ).*(\n(?!\s*\n).+)*", "\n", text, flags=re.M)
    text = re.sub(r"\$\$.*?\$\$", "\n\n", text, flags=re.S)
    text = re.sub(r"^\s*([-*+]|#+|\d+\.|\||[\w*, ]+ : .*$)", "\n\n", text, flags=re.M).replace("|", "\n\n")
    for paragraph in re.split(r"\n\s*\n", text):
        for sentence in re.split(r"(?<=[.!?:])\s+(?=[A-Z`*\[\"])", " ".join(paragraph.split())):
            if re.search(r"[a-z]{2}", sentence):
                yield sentence.lstrip('*_["(')


def docstrings(path: Path) -> Iterator[str]:
    """Yield all docstrings of a module, those of constants and fields included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        value = (
            node.value.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) else None
        )
        if isinstance(value, str):
            yield value


def messages(path: Path) -> Iterator[str]:
    """Yield the literals but docstrings, which are the text of errors, options and reports; values are X."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    formatted = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    inside = {id(part) for whole in formatted for part in ast.walk(whole)}
    for whole in formatted:
        parts = [part.value if isinstance(part, ast.Constant) else "X" for part in whole.values]
        yield "".join(str(part) for part in parts)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in statements | inside:
            yield node.value if isinstance(node.value, str) else ""


def comments(path: Path) -> Iterator[str]:
    """Yield the comments of a module; lines that follow each other are one text."""
    with io.StringIO(path.read_text(encoding="utf-8")) as file:
        found = [token for token in tokenize.generate_tokens(file.readline) if token.type == tokenize.COMMENT]
    lines: list[str] = []
    last = 0
    for token in found:
        alone = token.line.lstrip().startswith("#")
        if not (alone and token.start[0] == last + 1):
            yield " ".join(lines)
            lines = []
        lines.append(token.string.lstrip("# "))
        last = token.start[0]
    yield " ".join(lines)


def names(path: Path) -> Iterator[str]:
    """Yield the names of the functions, methods and classes of a module."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    yield from (node.name for node in ast.walk(tree) if isinstance(node, kinds))


@cache
def texts() -> list[tuple[Path, str]]:
    """Return all sentences with their file."""
    pages = [(page, one) for page in PAGES for one in sentences(page.read_text(encoding="utf-8"))]
    return pages + [
        (module, one) for module in MODULES for text in docstrings(module) for one in sentences(text)
    ]


def test_the_splitter_finds_sentences() -> None:
    text = "What is it? It is e.g. a list:\n\n- Of two.\n\n```python\nWhere = 1\n```\n\n>>> x\nWho\n"
    assert [bool(OPENINGS.match(one)) for one in sentences(text)] == [True, False, True]


def test_sentences_begin_with_their_subject() -> None:
    found = [f"{path.relative_to(ROOT)}: {one[:90]}" for path, one in texts() if OPENINGS.match(one)]
    assert len(texts()) > 5000
    assert not found, "\n".join(found)


@pytest.mark.parametrize("read", [messages, comments])
def test_messages_and_comments_begin_with_their_subject(read: Callable[[Path], Iterator[str]]) -> None:
    """Parts of a message may begin with "of"; sentences have a capital or are the whole of a comment."""
    found, total = [], 0
    for path in MODULES:
        for text in read(path):
            for sentence in sentences(text):
                total += 1
                whole = read is comments or sentence[0].isupper()
                if (whole and OPENINGS.match(sentence)) or PRIVATE.search(sentence) or LOST.search(sentence):
                    found.append(f"{path.relative_to(ROOT)}: {sentence[:110]}")
    assert total > 300
    assert not found, "\n".join(found)


def test_names_of_functions_say_what_they_are() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {one}" for path in MODULES for one in names(path) if VAGUE.fullmatch(one)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("words", [PRIVATE, LOST], ids=["private", "lost"])
def test_private_words_are_not_used(words: re.Pattern[str]) -> None:
    found = [f"{path.relative_to(ROOT)}: {one[:110]}" for path, one in texts() if words.search(one)]
    assert not found, "\n".join(found)


def test_bounds_against_all_designs_name_the_candidates() -> None:
    against = re.compile(r"\b(?:against|than) (?:all|every|any) (?:other )?designs?\b")
    scope = re.compile(r"\b(?:candidates|combinations)\b")
    found = [
        f"{path.relative_to(ROOT)}: {one[:110]}"
        for path, one in texts()
        if against.search(one) and not scope.search(one)
    ]
    assert not found, "\n".join(found)
