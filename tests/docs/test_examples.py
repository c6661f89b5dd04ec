"""examples/README.md describes every file in its folder, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted(
    path.relative_to(EXAMPLES).as_posix()
    for path in EXAMPLES.rglob("*.*")
    if path.is_file() and path.name != "README.md" and "__pycache__" not in path.parts
)
TEXT = (EXAMPLES / "README.md").read_text(encoding="utf-8")


def parts() -> dict[str, str]:
    """The page by folders: the text before the first heading is about the files themselves."""
    found = re.split(r"^## ", TEXT, flags=re.M)
    message = {"": found[0]}
    for section in found[1:]:
        title, _, body = section.partition("\n")
        named = re.match(r"`(\w+)/`", title)
        if named is not None:
            message[named[1]] = body
    for folder, body in re.findall(r"^- `(\w+)/`: (.*)$", TEXT, flags=re.M):
        message[folder] = body
    return message


def test_there_are_examples_in_every_folder() -> None:
    assert len(FILES) > 50
    folders = {Path(name).parent.as_posix().replace(".", "", 1) for name in FILES}
    assert folders == set(parts())


@pytest.mark.parametrize("name", FILES)
def test_an_example_is_listed_in_its_folders_part(name: str) -> None:
    path = Path(name)
    folder = "" if path.parent == Path(".") else path.parent.as_posix()
    called = path.stem if path.suffix == ".sched" else path.name
    assert f"`{called}`" in parts()[folder]


def test_a_schedule_that_is_listed_exists() -> None:
    known = {Path(name).stem for name in FILES} | {Path(name).name for name in FILES}
    known |= {name.removesuffix(".sched") for name in FILES}
    for line in TEXT.splitlines():
        first = re.match(r"\| `([\w/.]+)` \|", line)
        assert first is None or first[1] in known, line
