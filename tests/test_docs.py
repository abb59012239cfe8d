"""Every public name has a page, every page is listed, code parses, and sentences begin with their subject."""

import csv
import doctest
import importlib.util
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

import bandits
import bandits.testing
import optdesign
import optdesign.testing

DOCS = Path(__file__).parents[1] / "docs"
GENERATED = {"api/index", "cli"}


@pytest.fixture(scope="module")
def pages():
    """Return the module that writes the API pages."""
    pytest.importorskip("docutils")
    spec = importlib.util.spec_from_file_location("reference_pages", DOCS / "_ext" / "reference_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("package", [optdesign, bandits, optdesign.plot, optdesign.testing, bandits.testing])
def test_every_public_name_has_a_page(pages, package):
    listed = {name for _, _, names in pages.TOPICS.values() for name in pages.names(names)}
    objects = [pages.find(name) for name in listed]
    for name in package.__all__:
        full = f"{package.__name__}.{name}"
        is_module = any(other.startswith(f"{full}.") for other in listed)
        assert full in listed or is_module or any(getattr(package, name) is item for item in objects), full


def test_pages_list_public_names_only(pages):
    for _, _, names in pages.TOPICS.values():
        for name in pages.names(names):
            item, owner = pages.find(name), pages.find(name.rpartition(".")[0])
            assert item.__doc__ or not callable(item), name
            assert not name.rpartition(".")[2].startswith("_")
            public = getattr(owner, "__all__", None)
            assert public is None or name.rpartition(".")[2] in public, name


def test_constants_have_a_text_of_their_own(pages):
    """autodoc would show the docstring of the type of a constant, such as that of tuple."""
    listed = [name for _, _, names in pages.TOPICS.values() for name in pages.names(names)]
    constants = [name for name in listed if pages.directive(pages.find(name))[0] == "autodata"]
    assert len(constants) > 2
    for name in constants:
        assert len(pages.constant_text(name)) > 20, name


def test_the_command_reference_has_every_command(pages, tmp_path):
    pages.write_commands(tmp_path / "cli.md")
    text = (tmp_path / "cli.md").read_text()
    for command in (
        "optdesign solve",
        "optdesign certify",
        "optdesign verify",
        "optdesign demo",
        "bandits run",
    ):
        assert f"### {command}\n" in text
    assert "`--parameter-block" in text


def test_every_page_is_in_a_table_of_contents():
    listed = set()
    for page in ("index", "user-guide"):
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", (DOCS / f"{page}.md").read_text(), flags=re.S):
            listed |= {line for line in tree.splitlines() if line and not line.startswith(":")}
    written = {page.stem for page in DOCS.glob("*.md")} - {"index"}
    assert written | GENERATED == listed | GENERATED


def test_files_named_in_the_pages_on_code_exist():
    root = DOCS.parent
    for page in (DOCS / "architecture.md", DOCS / "mathematics.md", root / "CONTRIBUTING.md"):
        text = page.read_text(encoding="utf-8")
        for name in re.findall(r"`([\w./]+/[\w.]+\.(?:py|toml|ini|md))`", text):
            places = (root / name, root / "optdesign" / name, root / "bandits" / name)
            assert "NAME" in name or any(place.exists() for place in places), f"{page.name}: {name}"


def test_home_shows_the_facts_of_the_readme():
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    home = (DOCS / "index.md").read_text(encoding="utf-8")
    for name, fact, _ in re.findall(r"^\| \*\*(.+?)\*\* \| (.+) \| (.+) \|$", readme, flags=re.M):
        shown = re.sub(r"\[table\]\(docs/(measured/\w+\.txt)\)", r"{download}`table <\1>`", fact)
        assert f":::{{grid-item-card}} {name}\n{shown}\n" in home, name


def test_the_page_on_experiments_has_every_statement_and_picture():
    page = (DOCS / "experiments.md").read_text()
    with (DOCS / "measured" / "claims.csv").open(encoding="utf-8", newline="") as file:
        places = {row["source"].partition("; ")[0] for row in csv.DictReader(file)}
    shown = re.findall(r"^```\{verdicts\} (.+)$", page, flags=re.M)
    assert sorted(shown) == sorted(places)
    pictures = re.findall(r"\]\(figures/(\w+)\.png\)", page)
    copied = re.search(
        r"^EXPERIMENTS := ((?:.+\\\n)*.+)$", (DOCS.parent / "Makefile").read_text(), flags=re.M
    )
    assert copied is not None
    assert sorted(pictures) == sorted(copied[1].replace("\\", " ").split())
    for name in pictures:
        assert (DOCS / "figures" / f"{name}.png").exists(), name


def anchors(page):
    """Return the anchors of the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", (DOCS / page).read_text(encoding="utf-8"), flags=re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_to_sections_have_a_heading():
    links = {
        link
        for page in DOCS.glob("*.md")
        for link in re.findall(r"\]\((\w[\w-]*\.md)#([\w-]+)\)", page.read_text())
    }
    assert len(links) > 5
    assert {(page, anchor) for page, anchor in links if anchor not in anchors(page)} == set()


NUMBER = r"(?<![\w^-])\d[\d,]*(?:\.\d+)?(?:e-?\d+)?"


SECTION = (
    r"^## (.+?)\n\n(.+?)\n\n!\[.+?\]\(figures/chart-(\w+)\.png\)\n\n"
    r":::\{dropdown\} Table\n```\{literalinclude\} measured/(\w+)\.txt\n.+?:::\n\n"
    r"\{download\}`\w+\.txt <measured/(\w+)\.txt>`"
)


def sections():
    return re.findall(SECTION, (DOCS / "measured.md").read_text(), flags=re.M | re.S)


def test_measured_tables_have_a_finding_a_chart_and_a_download():
    tables = {table.stem for table in DOCS.glob("measured/*.txt")} - {"times"}
    assert tables == {name for *_, name in sections()} - {"times"}
    for title, finding, drawn, shown, download in sections():
        assert drawn == shown == download, title
        assert (DOCS / "figures" / f"chart-{drawn}.png").exists(), title
        assert len(re.findall(r"[.](?:\s|$)", finding)) == 2, title


@pytest.mark.parametrize("section", sections(), ids=lambda section: section[-1])
def test_findings_quote_the_table(section):
    _, finding, *_, name = section
    text = (DOCS / "measured" / f"{name}.txt").read_text().replace("2^17", "131072")
    table = {float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?:\.\d+)?(?:e-?\d+)?", text)}
    missing = [n for n in re.findall(NUMBER, finding) if float(n.replace(",", "")) not in table]
    assert not missing


@pytest.mark.parametrize(
    "page", sorted(set(DOCS.glob("*.md")) - {DOCS / "cli.md"}), ids=lambda page: page.stem
)
def test_sentences_begin_with_their_subject(page):
    """No sentence of the pages begins with What, Where, Who, Those that or Of."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    found = re.findall(
        r"(?:^|[.:!?] |^[-*] |^#+ |^\d\. |\| )((?:What|Where|Who|Those that|Of) [^.\n]*)", text, flags=re.M
    )
    assert not found


FENCE = re.compile(
    r"^([ \t]*)(`{3,}|~{3,})(?:python|py|\{code(?:-block)?\} python)\b[^\n]*\n(.*?)^\1\2[ \t]*$", re.M | re.S
)
SESSION = re.compile(r"^([ \t]*)(`{3,}|~{3,})pycon\b[^\n]*\n(.*?)^\1\2[ \t]*$", re.M | re.S)


def python_blocks(text: str) -> Iterator[tuple[int, str]]:
    """Yield the Python blocks of a page, and the examples of its interactive sessions, with their line."""
    for found in FENCE.finditer(text):
        yield text.count("\n", 0, found.start(3)) + 1, textwrap.dedent(found[3])
    for found in SESSION.finditer(text):
        first = text.count("\n", 0, found.start(3)) + 1
        for example in doctest.DocTestParser().get_examples(textwrap.dedent(found[3])):
            yield first + example.lineno, example.source


def check_python_blocks(name: str, text: str) -> int:
    """Compile every Python block, with the line numbers of the page, and return the number of blocks."""
    found = list(python_blocks(text))
    for line, code in found:
        compile("\n" * (line - 1) + code, name, "exec")
    return len(found)


def test_python_blocks_of_the_pages_compile():
    pages = [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))]
    counts = {page.name: check_python_blocks(page.name, page.read_text(encoding="utf-8")) for page in pages}
    assert counts["README.md"] == 3
    assert sum(counts.values()) > 30


@pytest.mark.parametrize(
    "text",
    [
        "```python\nx = 1\n```\n\n```python\ny = (\n```\n",
        "- item\n\n  ```python\n  y = (\n  ```\n",
        "```pycon\n>>> x = 1\n>>> y = (\n```\n",
    ],
    ids=["block", "indented", "session"],
)
def test_a_broken_python_block_is_found(text):
    with pytest.raises(SyntaxError) as error:
        check_python_blocks("page.md", text)
    assert error.value.lineno == next(n for n, line in enumerate(text.splitlines(), 1) if "y =" in line)
