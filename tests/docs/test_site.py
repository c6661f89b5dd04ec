"""The site builds without a warning, and its links lead somewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from gemmgen_docs.compared import BEYOND, HOPPER, RUNGS

from . import links

ROOT = Path(__file__).parents[2]
PAGES = [("ladder", name) for name in RUNGS]
PAGES += [("beyond", name) for name, found in BEYOND.items() if not found.page]
PAGES += [("", name) for name in HOPPER]


@pytest.mark.proof
def test_no_link_is_dead(site: Path) -> None:
    assert list(links.dead(site)) == []


@pytest.mark.proof
def test_nothing_is_fetched_from_another_host(site: Path) -> None:
    assert list(links.elsewhere(site)) == []


@pytest.mark.proof
@pytest.mark.parametrize(("part", "name"), PAGES)
def test_a_page_shows_schedule_program_text_and_limits(site: Path, part: str, name: str) -> None:
    text = (site / part / name / "index.html").read_text(encoding="utf-8")
    for wanted in (f"examples/{name}.sched", "__global__", "kernel gemm", "What limits it"):
        assert wanted in text, wanted


@pytest.mark.proof
@pytest.mark.parametrize("name", [name for name, found in BEYOND.items() if found.page])
def test_an_example_without_a_page_of_its_own_is_on_the_one_that_is_named(
    site: Path, name: str
) -> None:
    page = BEYOND[name].page.removesuffix(".md")
    text = (site / "beyond" / page / "index.html").read_text(encoding="utf-8")
    assert f"examples/{name}.sched" in text


@pytest.mark.proof
def test_the_uses_show_their_schedules_and_code(site: Path) -> None:
    text = (site / "uses" / "index.html").read_text(encoding="utf-8")
    for path in sorted((ROOT / "examples" / "uses").glob("*.*")):
        assert f"examples/uses/{path.name}" in text, path.name


@pytest.mark.proof
def test_the_schedule_of_the_playground_is_that_of_its_page(site: Path) -> None:
    """Whatever changes the text of pages, this is text that is compiled."""
    written, built = (
        path.read_text(encoding="utf-8").partition("<textarea")[2].partition("</textarea>")[0]
        for path in (ROOT / "docs" / "playground.md", site / "playground" / "index.html")
    )
    assert built == written and "gemm " in written


@pytest.mark.proof
def test_no_call_is_left_in_a_page(site: Path) -> None:
    for path in site.rglob("*.html"):
        assert "{{" not in path.read_text(encoding="utf-8"), path


def test_the_checker_sees_dead_links_and_foreign_files(tmp_path: Path) -> None:
    site = tmp_path.resolve()
    (site / "a").mkdir()
    (site / "a" / "index.html").write_text('<h1 id="here"></h1><a href="../b/">b</a>')
    (site / "index.html").write_text(
        '<a href="a/#here"></a><a href="a/#there"></a><script src="https://x.org/y.js"></script>'
    )
    assert list(links.dead(site)) == ["a/index.html: ../b/", "index.html: a/#there"]
    assert list(links.elsewhere(site)) == ["index.html: https://x.org/y.js"]
