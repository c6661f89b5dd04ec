"""Colors by meaning, for light and for dark backgrounds, as a style sheet.

Text has one color on all fills; its contrast with each of them is at least 4.5 to 1 (WCAG 2.2,
1.4.3), which the tests compute.
"""

from __future__ import annotations

from collections.abc import Iterable

from gemmgen.base.record import record

ROOT = "gemmgen-drawing"
"""The class of every drawing: a style sheet within an inlined SVG holds for the whole page."""


@record
class Shade:
    """A color on a light background and on a dark one."""

    light: str
    dark: str


BACKGROUND = Shade("#ffffff", "#1e2129")
TEXT = Shade("#1b1f24", "#f0f2f6")
QUIET = Shade("#57606a", "#a8b0bd")
EDGE = Shade("#6e7781", "#8b949e")

_BLUE, _ORANGE, _GREEN = (
    Shade("#cfe3ff", "#1d4272"),
    Shade("#ffe2bf", "#6b4410"),
    Shade("#cdeccb", "#1f5228"),
)
_PINK, _VIOLET, _GRAY = (
    Shade("#f8d2e8", "#6b2350"),
    Shade("#d9d2f7", "#473a80"),
    Shade("#e6e8eb", "#383d47"),
)

FILLS = {
    "A": _BLUE,
    "B": _ORANGE,
    "C": _GREEN,
    "load": _BLUE,
    "store": _PINK,
    "compute": _VIOLET,
    "wait": _GRAY,
    "conflict": Shade("#ffb3ab", "#8c2420"),
    "thread0": _BLUE,
    "thread1": _ORANGE,
    "thread2": _GREEN,
    "thread3": _PINK,
    "thread4": _VIOLET,
    "thread5": Shade("#c8ecec", "#155355"),
    "thread6": Shade("#f1ebb5", "#575013"),
    "thread7": Shade("#e3dcd3", "#4d443a"),
}
STRONG = {
    "A": Shade("#8fbcf5", "#2f66ad"),
    "B": Shade("#fbb45c", "#8a5810"),
    "C": Shade("#82cf80", "#2a6f35"),
}
"""Fills of the cells that stand out, if they differ; all of these cells have a thick edge."""
LINES = {
    "A": Shade("#0b62c4", "#6fb1ff"),
    "B": Shade("#a85b00", "#f0a94a"),
    "C": Shade("#1a7f37", "#57c26b"),
    "load": Shade("#0b62c4", "#6fb1ff"),
    "store": Shade("#b3267f", "#f58ac6"),
    "compute": Shade("#5b43c4", "#b3a4ff"),
    "conflict": Shade("#c0261c", "#ff7b72"),
}
"""Colors of lines; those of other meanings have the color of text."""


def style_sheet(keys: Iterable[str]) -> str:
    """The rules for the meanings ``keys``, and for what every drawing has.

    The theme is the system's, or that of a page of Material for MkDocs which has chosen one.
    """
    used = sorted(set(keys))
    light, dark = (_colors(used, theme) for theme in ("light", "dark"))
    svg = f"svg.{ROOT}"
    return "".join(
        (
            _rules(svg, _FORMS),
            _rules(svg, light),
            f"@media (prefers-color-scheme:dark){{{_rules(svg, dark)}}}",
            _rules(f'[data-md-color-scheme="default"] {svg}', light),
            _rules(f'[data-md-color-scheme="slate"] {svg}', dark),
        )
    )


_FORMS = {
    "text": "font:12px ui-sans-serif,system-ui,sans-serif;text-anchor:middle;"
    "dominant-baseline:central;stroke:none",
    ".small": "font-size:10px",
    ".large": "font-size:15px;font-weight:600",
    ".start": "text-anchor:start",
    ".end": "text-anchor:end",
    "rect": "stroke-width:1;fill:none",
    "polyline": "fill:none;stroke-width:1.2",
    ".strong": "stroke-width:2.5",
    ".dashed": "stroke-dasharray:4 3",
}


def _colors(keys: list[str], theme: str) -> dict[str, str]:
    def of(pair: Shade) -> str:
        return pair.light if theme == "light" else pair.dark

    found = {
        "text": f"fill:{of(TEXT)}",
        ".quiet": f"fill:{of(QUIET)}",
        "rect": f"stroke:{of(EDGE)}",
        "polyline": f"stroke:{of(TEXT)}",
        "polygon": f"fill:{of(TEXT)}",
        ".strong": f"stroke:{of(TEXT)}",
        ".background": f"fill:{of(BACKGROUND)};stroke:none",
    }
    for key in keys:
        if key in FILLS:
            found[f"rect.{key}"] = f"fill:{of(FILLS[key])}"
        if key in STRONG:
            found[f"rect.{key}.strong"] = f"fill:{of(STRONG[key])}"
        if key in LINES:
            found[f"polyline.{key}"] = f"stroke:{of(LINES[key])}"
            found[f"polygon.{key}"] = f"fill:{of(LINES[key])}"
    return found


def _rules(scope: str, forms: dict[str, str]) -> str:
    return "".join(f"{scope} {selector}{{{form}}}" for selector, form in forms.items())
