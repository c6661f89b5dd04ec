"""What a page shows at several widths: nothing is cut off without a way to scroll or enlarge it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

WIDTHS = (390, 1024, 1440)
"""A phone, a tablet, a desktop, in CSS pixels."""
TABLET = 1024
"""From here on the text of a drawing is read without enlarging it."""
LEAST = 9.5
"""CSS pixels of its smallest letters."""
HEIGHT = 900
SETTLED = 500
"""Milliseconds after which a page that was resized is looked at again."""
CUT_OFF = """
const found = [], root = document.documentElement, width = root.clientWidth;
const named = (e, at) => e.tagName.toLowerCase() + ' ' + (at + 1);
if (root.scrollWidth > width + 1)
    found.push('wider than the window, by ' + (root.scrollWidth - width) + ' px');
[...document.querySelectorAll('svg, img, table, pre')].forEach((e, at) => {
    const box = e.getBoundingClientRect();
    if (!box.width || !e.checkVisibility() || e.closest('dialog, header, nav')) return;
    let scrolls = false, right = width;
    for (let up = e; up && up !== document.body; up = up.parentElement) {
        const style = getComputedStyle(up).overflowX;
        if (style === 'auto' || style === 'scroll') { scrolls = true; break; }
        if ((style === 'hidden' || style === 'clip') && up !== e && up.tagName !== 'svg')
            right = Math.min(right, up.getBoundingClientRect().right);
    }
    if (!scrolls && box.right > right + 1) found.push('cut off: ' + named(e, at));
    const own = e.tagName === 'svg' && e.viewBox.baseVal && e.viewBox.baseVal.width;
    const figure = own && e.closest('figure');
    if (figure && box.width < .98 * own && !figure.querySelector('button'))
        found.push('smaller than it was drawn, and nothing enlarges it: ' + named(e, at));
});
return found
"""


SMALL = """
const found = [], least = arguments[0];
[...document.querySelectorAll('figure svg')].forEach((e, at) => {
    const box = e.getBoundingClientRect(), own = e.viewBox.baseVal && e.viewBox.baseVal.width;
    if (!box.width || !own || e.closest('dialog')) return;
    const sizes = [...e.querySelectorAll('text')]
        .map(t => parseFloat(getComputedStyle(t).fontSize) * box.width / own);
    const smallest = Math.min(...sizes, least);
    if (smallest < least) found.push('text of ' + smallest.toFixed(1) + ' px: svg ' + (at + 1));
});
return found
"""


def faults(driver: Any) -> Iterator[str]:
    """What the page that is open lacks at each of ``WIDTHS``."""
    for width in WIDTHS:
        metrics = {"width": width, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        found = driver.execute_script(CUT_OFF)
        if found:  # a drawer or the search of the theme may still be on its way
            driver.execute_async_script(f"setTimeout(arguments[0], {SETTLED})")
            found = driver.execute_script(CUT_OFF)
        for fault in found:
            yield f"at {width} px {fault}"
        if width >= TABLET:
            for fault in driver.execute_script(SMALL, LEAST):
                yield f"at {width} px {fault}"
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
