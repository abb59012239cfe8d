"""Write the times of docs/measured/times.txt into the README, as the last step of `make times`."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
UNMEASURED = "`make times` measures both."
"""The sentence of the README without stored times."""


def sentence(stored: str) -> str:
    r"""Return the sentence that states the stored times.

    >>> sentence("2 cores, load average 0.1 at the start\nmake demo: 23 s\nmake test: 300 s\n")[:81]
    'On 2 cores, after the set-up, `make demo` takes 23 s and `make test` takes 300 s '
    """
    cores = re.search(r"^(\d+) cores", stored, flags=re.M)
    times = re.findall(r"^make (\w+): (\d+) s$", stored, flags=re.M)
    if cores is None or [name for name, _ in times] != ["demo", "test"]:
        raise ValueError("times.txt must have the cores, and the seconds of make demo and make test.")
    takes = " and ".join(f"`make {name}` takes {seconds} s" for name, seconds in times)
    return f"On {cores[1]} cores, after the set-up, {takes} ([measured](docs/measured/times.txt))."


def quoted(readme: str, stored: str) -> str:
    """Return the text of the README with the stored times."""
    text, found = re.subn(
        rf"{re.escape(UNMEASURED)}|On \d+ cores, .*?times\.txt\)\)\.", sentence(stored), readme, flags=re.S
    )
    if found != 1:
        raise ValueError(f"README.md must have the sentence on times once; it has it {found} times.")
    return text


def main() -> None:
    readme = ROOT / "README.md"
    stored = (ROOT / "docs" / "measured" / "times.txt").read_text(encoding="utf-8")
    readme.write_text(quoted(readme.read_text(encoding="utf-8"), stored), encoding="utf-8")
    print(sentence(stored))


if __name__ == "__main__":
    main()
