"""Opens every page of the built site in a headless browser and follows its links.

    pip install -e '.[browser]'; apt-get install chromium chromium-driver
    python docs/browse.py            # builds the site first
    python docs/browse.py SITE       # a site that is built already

A page is at fault if its console has an error, a script ends in an exception, a request fails,
a picture lacks a size or an alternative text in the light or the dark scheme, a drawing, table or
block is cut off at 390, 1024 or 1440 px with no way to scroll or enlarge it, the text of a drawing
is smaller than 9.5 px from 1024 px on, or a link within the site leads to no page or to an anchor
that it lacks.  Exit code 1 if one is, 3 without a browser.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlsplit

import layouts
import pictures

from gemmgen.base.installing import install

ROOT = Path(__file__).parents[1]
FLAGS = (
    "headless=new",
    "no-sandbox",  # containers run as root
    "disable-dev-shm-usage",
    "disable-gpu",
    "disable-background-networking",
    "no-first-run",
)
FORGET = "try { localStorage.clear() } catch (none) {}"
"""A page begins without the scheme that its theme has kept from the one before."""
LATE = 150
"""Milliseconds that a page has for errors after its load event."""
ANCHORS = """
return [[...document.querySelectorAll('a[href]')].map(a => a.href),
        [...document.querySelectorAll('[id]')].map(e => e.id)]
"""


def missing() -> str | None:
    """What this machine lacks for a headless browser, as a sentence."""
    try:
        import selenium  # noqa: F401
    except ImportError:
        return f"selenium is not installed: {install('browser')}"
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            return f"there is no {program}: apt-get install chromium chromium-driver"
    return None


@contextmanager
def served(site: Path) -> Iterator[str]:
    """``site`` at an address of this machine alone."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Prints nothing: the browser reports requests that fail."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def browser(width: int = 1280, height: int = 900, dark: bool = False) -> Iterator[Any]:
    """A headless Chromium that keeps its console and the outcome of its requests."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = shutil.which("chromium") or ""
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with tempfile.TemporaryDirectory() as profile:
        for flag in FLAGS:
            options.add_argument(f"--{flag}")
        options.add_argument(f"--window-size={width},{height}")
        options.add_argument(f"--user-data-dir={profile}")
        driver = webdriver.Chrome(options, Service(shutil.which("chromedriver")))
        media = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": FORGET})
        driver.get("about:blank")
        driver.get_log("performance")  # of the tab that the browser begins with
        try:
            yield driver
        finally:
            driver.quit()


@dataclass
class Opened:
    """A page as the browser saw it."""

    faults: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)


def opened(driver: Any, address: str) -> Opened:
    """Opens ``address``; its errors, links and anchors."""
    driver.get(address)
    driver.execute_async_script(f"setTimeout(arguments[0], {LATE})")
    links, anchors = driver.execute_script(ANCHORS)
    found = Opened(links=links, anchors=set(anchors))
    for entry in driver.get_log("browser"):
        if entry["level"] in ("SEVERE", "WARNING"):
            found.faults.append(f"console: {entry['message']}")
    said = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    found.faults += _failed_requests(said)
    found.faults += pictures.faults(driver)
    found.faults += layouts.faults(driver)
    return found


def _failed_requests(said: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The requests that went wrong, of the network's messages."""
    asked: dict[str, str] = {}
    for message in said:
        method, params = message["method"], message["params"]
        if method == "Network.requestWillBeSent":
            asked[params["requestId"]] = params["request"]["url"]
        elif method == "Network.loadingFailed" and not params.get("canceled"):
            yield f"{params['errorText']}: {asked.get(params['requestId'], 'a request')}"
        elif method == "Network.responseReceived" and params["response"]["status"] >= 400:
            yield f"{params['response']['status']}: {params['response']['url']}"


def faults(site: Path) -> tuple[list[str], int]:
    """What is wrong with ``site``, and how many pages were opened: each that is there, and each
    that a link leads to."""
    names = [path.relative_to(site).as_posix() for path in sorted(site.rglob("*.html"))]
    found: list[str] = []
    with served(site) as root, browser() as driver:
        waiting = [root + name.removesuffix("index.html") for name in names if name != "404.html"]
        pages: dict[str, Opened] = {}
        while waiting:
            address = waiting.pop(0)
            if address in pages:
                continue
            page = pages[address] = opened(driver, address)
            found += [f"{_short(root, address)}: {fault}" for fault in page.faults]
            for link in page.links:
                to = urldefrag(link).url
                if to.startswith(root) and to not in pages and to not in waiting:
                    waiting.append(to)
        found += _dead_anchors(root, pages)
    return found, len(pages)


def _dead_anchors(root: str, pages: dict[str, Opened]) -> Iterator[str]:
    """Links to anchors that their pages don't have."""
    for address, page in pages.items():
        for link in dict.fromkeys(page.links):
            to, anchor = urldefrag(link)
            if to in pages and anchor and unquote(anchor) not in pages[to].anchors:
                yield f"{_short(root, address)}: no such anchor: {_short(root, link)}"


def _short(root: str, address: str) -> str:
    return address.removeprefix(root) or urlsplit(address).path


def build(folder: Path) -> None:
    """The site, built without a warning."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    subprocess.run([*command, "--site-dir", str(folder)], cwd=ROOT, check=True, env=environment)


def main() -> int:
    lacking = missing()
    if lacking is not None:
        print(lacking, file=sys.stderr)
        return 3
    with tempfile.TemporaryDirectory() as folder:
        site = Path(sys.argv[1] if len(sys.argv) > 1 else folder)
        if len(sys.argv) == 1:
            build(site)
        found, pages = faults(site)
    for fault in found:
        print(fault)
    print(f"{pages} pages opened, {len(found)} faults")
    return 1 if found or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
