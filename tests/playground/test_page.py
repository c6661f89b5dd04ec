"""The page in a headless browser: it starts, follows edits, grades puzzles and shares its state."""

from __future__ import annotations

import base64
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import browse
import pytest
from gemmgen_playground import answers, bundle, puzzles

from gemmgen.pipeline import compile_source
from tests.playground.solutions import solved

LACKING = browse.missing()
if LACKING is None and not (bundle.BUILT / bundle.MANIFEST).exists():
    LACKING = "the playground is not built: make playground"
pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(LACKING is not None, reason=LACKING or ""),
]

READY, SHOWN, GRADED = 10.0, 2.0, 10.0
"""Seconds from a click to ready with nothing cached, from an edit to its kernel, and to a grade, if
no other program has the cores."""
ALONE = "host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
"""The browser reaches no other host."""
SIZES = ((390, 844), (1024, 768), (1440, 900))
WORK = 0.011
"""Seconds that ``crowded``'s work takes on its own core."""
CUT_OFF = """
const clip = (e) => ['auto', 'scroll'].includes(getComputedStyle(e).overflowX);
const wide = document.documentElement.clientWidth + 1;
const scrolls = (e) => e && (clip(e) || scrolls(e.parentElement));
return [...document.querySelectorAll('#playground *')]
  .filter(e => e.getClientRects().length && e.getBoundingClientRect().right > wide)
  .filter(e => !scrolls(e.parentElement) && e.tagName !== 'OPTION')
  .map(e => `${e.tagName} ${e.dataset.part ?? ''}`)
"""


def crowded() -> float:
    """How many times longer than on its own core something takes here now, at least 1."""
    start = time.monotonic()
    for _ in range(20):
        sum(i & 7 for i in range(200_000))
    return max(1.0, (time.monotonic() - start) / 20 / WORK)


class Page:
    """The page as a test uses it."""

    def __init__(self, driver: Any, root: str):
        self.driver, self.root = driver, root

    def open(self, fragment: str = "") -> None:
        self.driver.get("about:blank")
        self.driver.get(f"{self.root}playground/{fragment}")

    def run(self, script: str, *arguments: object) -> Any:
        return self.driver.execute_script(script, *arguments)

    def part(self, name: str) -> str:
        script = "return document.querySelector(`[data-part='${arguments[0]}']`).textContent"
        return self.run(script, name)

    def act(self, name: str, script: str, *arguments: object) -> None:
        """Runs ``script`` with the part as ``e``."""
        self.run(f"const e = document.querySelector(`[data-part='{name}']`); {script}", *arguments)

    def wait(self, script: str, *arguments: object, most: float = 60) -> float:
        """Waits until ``script`` returns true; the seconds that it took."""
        start = time.monotonic()
        while not self.run(script, *arguments):
            assert time.monotonic() - start < most, (script, self.part("status"))
            time.sleep(0.02)
        return time.monotonic() - start

    def wait_for(self, name: str, text: str, most: float = 60) -> float:
        script = "return document.querySelector(`[data-part='${arguments[0]}']`).textContent"
        return self.wait(f"{script}.includes(arguments[1])", name, text, most=most)

    def start(self) -> float:
        self.act("start", "e.click()")
        return self.wait("return document.querySelector(`[data-part='start']`).hidden")

    def settled(self) -> None:
        """Waits until everything belongs to the text."""
        self.wait("return document.querySelector(`[data-part='panels']`).ariaBusy === 'false'")

    def choose(self, name: str, value: str) -> None:
        self.act(name, "e.value = arguments[0]; e.dispatchEvent(new Event('change'))", value)

    def write(self, text: str) -> None:
        self.act("text", "e.value = arguments[0]; e.dispatchEvent(new Event('input'))", text)

    def faults(self) -> list[str]:
        """What the console has of errors and warnings."""
        found = self.driver.get_log("browser")
        return [e["message"] for e in found if e["level"] in ("SEVERE", "WARNING")]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("material")
    from tests.playground import one_page

    with browse.served(one_page.build(tmp_path_factory.mktemp("playground"))) as address:
        yield address


@pytest.fixture(scope="module")
def page(root: str) -> Iterator[Page]:
    """The page, ready; tests that need a fresh one open it again."""
    with browse.browser(1440, 900) as driver:
        found = Page(driver, root)
        found.open()
        found.start()
        yield found


def fragment_of(text: str, **more: str) -> str:
    """The address's end of a schedule, as another program would write it."""
    deflated = zlib.compress(text.encode(), wbits=-15)
    letters = base64.urlsafe_b64encode(deflated).decode().rstrip("=")
    return "&".join([f"#s={letters}", *(f"{key}={value}" for key, value in more.items())])


def test_it_is_ready_in_ten_seconds_without_any_other_host(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browse, "FLAGS", (*browse.FLAGS, ALONE))
    with browse.browser(1440, 900) as driver:
        page = Page(driver, root)
        page.open()
        assert page.start() < READY * crowded()
        page.settled()
        assert page.faults() == []


@pytest.mark.parametrize("name", ("vectorized", "hopper/pingpong"))
def test_an_example_has_the_texts_of_the_command(page: Page, name: str) -> None:
    page.choose("examples", name)
    source = answers._text(name)
    page.wait_for("kernel", "namespace")
    page.wait("return document.querySelector(`[data-part='text']`).value === arguments[0]", source)
    page.settled()
    known = answers.compiled(source)
    assert page.part("kernel") == known["cuda"]
    assert page.part("diff").strip() == "\n".join(c for _, c in known["changes"][1:]).strip()
    shown = page.part("counts").split("resources\n")[0]  # registers are estimated there
    assert shown == answers.counted(source, "4096")["text"].split("resources\n")[0]


def test_an_edit_shows_in_two_seconds(page: Page) -> None:
    text = answers._text("vectorized")
    page.write(text)
    page.settled()
    page.write(text.replace("m=128 n=128", "m=64 n=128"))
    assert page.wait_for("kernel", "m=64 n=128") < SHOWN * crowded()
    assert page.wait_for("diff", "m=64 n=128") < SHOWN * crowded()


def test_a_mistake_is_reported_at_its_line_and_leaves(page: Page) -> None:
    text = "gemm C[m, n] = A[m, k] * B[k, n]\ntile m=0 n=32 k=8\n"
    page.write(text)
    page.wait_for("report", "schedule.sched:2:8: error:")
    wrong = "return [...document.querySelectorAll('#playground li.wrong')].length"
    assert page.run(wrong) == 1
    page.write(text.replace("m=0", "m=32"))
    page.wait("return document.querySelector(`[data-part='report']`).hidden")
    assert page.run(wrong) == 0
    page.settled()


@pytest.mark.parametrize("kind", answers.kinds()["kinds"])
def test_each_kind_is_drawn(page: Page, kind: str) -> None:
    page.write(answers._text("tiled"))
    page.choose("kinds", kind)
    page.settled()
    page.wait("return document.querySelector(`[data-part='drawing'] svg`) !== null")


@pytest.mark.parametrize("puzzle", puzzles.all_of_them(), ids=lambda p: p.name)
def test_a_puzzle_is_graded_in_ten_seconds(page: Page, puzzle: puzzles.Puzzle) -> None:
    page.choose("puzzles", puzzle.name)
    page.settled()
    page.act("check", "e.click()")
    assert page.wait_for("verdict", "not yet") < GRADED * crowded()
    page.write(solved(puzzle.name, puzzle.start))
    page.settled()
    page.act("check", "e.click()")
    assert page.wait_for("verdict", "solved") < GRADED * crowded()


def test_the_address_holds_the_schedule(page: Page) -> None:
    text = answers._text("padded")
    page.open(fragment_of(text, draw="banks", shape="512"))
    page.wait_for("kernel", "pad A by=1")
    page.settled()
    assert page.run("return document.querySelector(`[data-part='text']`).value") == text
    assert "m=512 n=512 k=512" in page.part("counts")
    page.write(text.replace("by=1", "by=3"))
    page.wait_for("kernel", "pad A by=3")
    page.settled()
    again = page.run("return location.hash")
    page.open(again)
    page.wait_for("kernel", "pad             A by=3")
    assert page.run("return document.querySelector(`[data-part='kinds']`).value") == "banks"


@pytest.mark.parametrize("fragment", ("#s=AAAA", "#s=%F0%9F%98%80", "#s="))
def test_a_damaged_address_is_reported(page: Page, fragment: str) -> None:
    page.open(fragment)
    page.wait("return document.querySelector(`[data-part='start']`).hidden")
    page.wait_for("status", "counted")
    assert not page.faults()


def test_the_text_of_the_page_compiles(page: Page) -> None:
    from gemmgen.base.source import Source

    page.open()
    compile_source(Source(page.run("return document.querySelector('textarea').value")))


@pytest.mark.parametrize("dark", (False, True), ids=("light", "dark"))
@pytest.mark.parametrize("size", SIZES, ids=lambda size: str(size[0]))
def test_nothing_is_cut_off(root: str, size: tuple[int, int], dark: bool) -> None:
    with browse.browser(*size, dark=dark) as driver:
        metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        page = Page(driver, root)
        page.open(fragment_of(answers._text("warp_tiled"), puzzle="04_no_bank_conflicts"))
        page.wait("return document.querySelector(`[data-part='start']`).hidden")
        page.settled()
        assert page.run("return document.documentElement.scrollWidth") <= size[0]
        assert page.run(CUT_OFF) == []
        assert page.faults() == []


def test_a_site_without_pyodide_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.playground import one_page

    monkeypatch.setattr(bundle, "BUILT", tmp_path / "none")
    (tmp_path / "work").mkdir()
    with (
        browse.served(one_page.build(tmp_path / "work")) as root,
        browse.browser() as driver,
    ):
        page = Page(driver, root)
        page.open()
        page.act("start", "e.click()")
        page.wait_for("report", "make playground")
        assert page.part("status") == "not available"
        assert page.faults() == []
