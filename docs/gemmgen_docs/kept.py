"""Pages and notebooks that were rendered before, kept for the next build of the site.

The key has all that a page may show: the sources of the package and its examples, the functions of
pages, the files of ``data/`` and the texts at the root.  So a change of one page renders one page.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from gemmgen.base import caches
from gemmgen.gpu import device
from gemmgen_docs import commands

FILE = "text"
READ = ("docs/gemmgen_docs/*.py", "docs/data/**/*.*", "*.md", "tests/analyze/counters.json")
"""What functions of pages read besides sources, below the root."""


def kept(kind: str, make: Callable[[], str], *about: str) -> str:
    """``make()``, or what it gave for the same ``about`` and the same sources before.  On a machine
    with a GPU nothing is kept, as outputs there have measurements."""
    if device.missing() is None:
        return make()
    entry = f"docs-{kind}-{caches.key(sources(), *about)}"
    found = caches.read(entry)
    if found is not None:
        return found[FILE].decode()
    made = make()
    caches.write(entry, {FILE: made.encode()})
    return made


@functools.cache
def sources() -> str:
    """A key of all that pages are made from, apart from their own texts."""
    files = sorted({path for pattern in READ for path in commands.ROOT.glob(pattern)})
    read = (part for path in files for part in (str(path), path.read_bytes()))
    return caches.key(commands._sources(), commands._compiler(), *read)
