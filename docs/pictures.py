"""The pictures of a page that a browser shows: each has a size, an alternative text, and ink that
differs from its paper, in a light scheme and in a dark one."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

SCHEMES = ("light", "dark")

FOUND = """
const root = document.querySelector('article') ?? document.body;
document.querySelectorAll('details').forEach(each => { each.open = true; });
const words = id => document.getElementById(id)?.textContent ?? '';
return [...root.querySelectorAll('img, svg')]
  .filter(each => !each.parentElement.closest('svg') && !each.closest('[aria-hidden="true"]'))
  .filter(each => !/#only-(light|dark)$/.test(each.src) || each.checkVisibility())
  .map((each, at) => {
    const box = each.getBoundingClientRect();
    const labelled = (each.getAttribute('aria-labelledby') ?? '').split(' ').map(words).join(' ');
    const title = each.querySelector(':scope > title, :scope > desc')?.textContent;
    const [text, paper] = [each.querySelector('text'), each.querySelector('rect.background')];
    const fill = part => part && getComputedStyle(part).fill;
    return {
      name: each.getAttribute('src') ?? `${each.tagName} ${at + 1}`,
      size: [box.width, box.height],
      text: (each.getAttribute('alt') || each.getAttribute('aria-label') || labelled.trim()
             || title || '').trim(),
      ink: fill(text), paper: fill(paper),
    };
  });
"""
"""A line for each picture of the page's article; icons that are hidden from readers are none."""
LATEST = 3.0
"""Seconds within which a page that is loaded again shows the other scheme: a script of its theme
sets it, which takes its time where other programs run."""


def faults(driver: Any) -> Iterator[str]:
    """What is wrong with the pictures of the page that ``driver`` shows in a light scheme, and then
    in a dark one; the browser is left as it was."""
    light = driver.execute_script(FOUND)
    if not light:
        return
    dark = _in_scheme(driver, SCHEMES[1], light)
    if _alike(light, dark):
        # A page that was opened after one in a dark scheme may have begun in that.
        light = _in_scheme(driver, SCHEMES[0], dark)
    papers: dict[str, set[str]] = {}
    for scheme, pictures in zip(SCHEMES, (light, dark), strict=True):
        for picture in pictures:
            name = f"{picture['name']} ({scheme})"
            if not all(picture["size"]):
                yield f"a picture without a size: {name}"
            if not picture["text"]:
                yield f"a picture without an alternative text: {name}"
            if picture["ink"] is not None and picture["ink"] == picture["paper"]:
                yield f"a picture with text in the color of its background: {name}"
            if picture["paper"] is not None:
                papers.setdefault(picture["name"], set()).add(picture["paper"])
    _prefer(driver, SCHEMES[0])
    for log in ("browser", "performance"):
        driver.get_log(log)  # of the page's other visits
    for name, colors in papers.items():
        if len(colors) < len(SCHEMES):
            yield f"a picture with one background in both schemes: {name}"


def _in_scheme(
    driver: Any, scheme: str, other: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The pictures of the page in ``scheme``, once each has another background than in the
    ``other`` one; as they are at last, if that does not happen."""
    _prefer(driver, scheme)
    driver.refresh()
    until = time.monotonic() + LATEST
    while True:
        found = driver.execute_script(FOUND)
        if not _alike(found, other) or time.monotonic() > until:
            return found
        time.sleep(0.05)


def _alike(found: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]]) -> bool:
    """Whether some picture has the same background in both, or there are not as many."""
    papers = [[picture["paper"] for picture in pictures] for pictures in (found, other)]
    return len(found) != len(other) or any(a and a == b for a, b in zip(*papers, strict=True))


def _prefer(driver: Any, scheme: str) -> None:
    """The reader's scheme from the next page on."""
    media = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
