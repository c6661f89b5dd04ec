"""How many files a mechanism is in: those that its removal touches, by the words of its own.

Two were removed on a trial branch, and the files that changed are exactly those that these words
find ([decision 93](../../docs/adr/0093-what-stays-of-the-architecture-review.md)).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "gemmgen"
SUFFIXES = {".py", ".h", ".cpp", ".cuh", ".j2", ".sched"}


@dataclass(frozen=True)
class Mechanism:
    """``words``: its classes, nodes and fields, and what it is called in other languages; ``own``:
    files that are about it alone; it is in at most ``most`` others."""

    words: str
    own: tuple[str, ...]
    most: int


MECHANISMS = {
    "l2": Mechanism(
        r"^    L2,$|passes\.l2\b|\bclass L2\b|\bEviction\b|\bevict\b|\bpolicy_of\b|_by_policy\b"
        r"|\bb64 policy\b|long long policy\b|ptx_policies",
        (
            "passes/l2.py",
            *(
                f"emit/intrinsics/{name}.cuh"
                for name in (
                    *("evict", "copy_async_by_policy"),
                    *("load_box_by_policy", "multicast_box_by_policy"),
                )
            ),
            *("sim/cache_policies.cpp", "sim/ptx_policies.h"),
        ),
        10,
    ),
    "overlap_launch": Mechanism(
        r"overlap_launch|OverlapLaunch|\bwork\.overlap\b|\boverlap: bool|\boverlap=True"
        r"|dependent_launch\b|ProgrammaticStream|\bwait_grid\b|grid_wait\b|launch_dependents"
        r"|griddepcontrol|TOO_EARLY|\"too early\"|preceding_grid",
        (
            *("passes/overlap_launch.py", "lower/grid_wait.py", "sim/griddepcontrol.cpp"),
            *("emit/intrinsics/wait_grid.cuh", "emit/intrinsics/launch_dependents.cuh"),
        ),
        20,
    ),
    # Not removed on a trial branch: comments that have its words count, too. The aim is 20.
    "persistent": Mechanism(
        r"\b[Pp]ersistent\b|is_persistent|\b(interface|self)\.resident\b|resident: int = 0"
        r"|\bwaves\.walked|\bself\.walked|\bwalked: bool|most_tiles|MOST_WALKED|is_over_tiles"
        r"|walks_on|expanded\.Tiles|class Tiles\b|\bTiles\(|ActiveClusters|active_clusters",
        (
            "passes/persistent.py",
            "gpu/active_clusters.py",
            "emit/templates/calls/count_clusters.j2",
        ),
        49,
    ),
}
"""The numbers are today's.  Before a larger one, look for a file that only passes something on."""


@cache
def texts() -> Mapping[str, str]:
    """The files of the package."""
    paths = (path for path in ROOT.rglob("*") if path.suffix in SUFFIXES)
    return {p.relative_to(ROOT).as_posix(): p.read_text(encoding="utf-8") for p in paths}


def mentioning(mechanism: Mechanism, of: Mapping[str, str]) -> set[str]:
    """The files that are not the mechanism's own and have one of its words."""
    found = {name for name, text in of.items() if re.search(mechanism.words, text, re.MULTILINE)}
    assert found >= {*mechanism.own}
    return found - {*mechanism.own}


@pytest.mark.proof
@pytest.mark.parametrize("name", MECHANISMS)
def test_a_mechanism_is_in_few_files(name: str) -> None:
    mechanism = MECHANISMS[name]
    found = mentioning(mechanism, texts())
    assert len(found) <= mechanism.most, sorted(found)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("l2", "evict = copy.evict"),
        ("overlap_launch", "if kernel.work.overlap:"),
        ("persistent", "if context.is_persistent:"),
    ],
)
def test_a_planted_mention_is_counted(name: str, line: str) -> None:
    planted = {**texts(), "lower/planted.py": line}
    more = mentioning(MECHANISMS[name], planted)
    assert more - mentioning(MECHANISMS[name], texts()) == {"lower/planted.py"}
    assert len(more) > MECHANISMS[name].most
