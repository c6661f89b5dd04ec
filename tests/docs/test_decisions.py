"""Decision records: each has its own number, and its title says it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
RECORDS = sorted((ROOT / "docs" / "adr").glob("*.md"))


def number(path: Path) -> int:
    return int(path.name.partition("-")[0])


def test_no_number_is_given_twice_or_left_out() -> None:
    numbers = Counter(number(path) for path in RECORDS)
    assert numbers == Counter(range(1, len(RECORDS) + 1)), [path.name for path in RECORDS]


def test_a_title_has_the_number_of_its_file() -> None:
    for path in RECORDS:
        title = path.read_text(encoding="utf-8").splitlines()[0]
        assert re.match(rf"# {number(path)}\. [A-Z]", title), f"{path.name}: {title}"


def test_a_link_to_a_decision_has_its_number() -> None:
    found = 0
    for page in (ROOT / "docs").rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        for label, linked in re.findall(
            r"\[(?:decision\s+)?(\d+)\]\((?:\.\./)?(?:adr/)?(\d+)-", text
        ):
            assert int(label) == int(linked), f"{page.name}: decision {label} links to {linked}"
            found += 1
    assert found >= 4
