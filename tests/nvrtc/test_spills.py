"""No example spills registers on an architecture that runs it, but those that are argued."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import compilers
import pytest
from stated import stated

from gemmgen.base.source import Source
from gemmgen.gpu import compiler
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof.compiled import ARCHITECTURES, architectures

EXAMPLES = Path(__file__).parents[2] / "examples"


def emitted(name: str) -> Emitted:
    return compile_source(Source((EXAMPLES / f"{name}.sched").read_text(), name))


def names() -> list[str]:
    paths = EXAMPLES.rglob("*.sched")
    found = sorted(str(p.relative_to(EXAMPLES).with_suffix("")) for p in paths)
    return [n for n in found if not n.startswith("spaces/")]


MOST: dict[str, int] = stated("spills")
OTHERS = ("sm_86", "sm_89", "sm_120")
"""The other architectures: a third of the examples is compiled for each of these."""


def chosen(kernel: Emitted, name: str) -> tuple[str, ...]:
    """The target, the first architecture, sm_90 and, alternately, one of ``OTHERS``.  ``best/`` was
    tuned and measured on sm_90 (sm_90a) alone, and uses what other examples use."""
    own = (kernel.target, compilers.measured_on(kernel.target))
    if name.startswith("best/"):
        return own[1:]
    found = architectures(kernel)
    turn = OTHERS[names().index(name) % len(OTHERS)]
    return tuple(each for each in found if each in (*own, found[0], turn))


@pytest.mark.by_default("vectorized-sm_80")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("name", ["vectorized", "fused"])
def test_the_flagship_spills_nothing(name: str, arch: str) -> None:
    compilers.needed()
    assert compiler.reported(emitted(name).text, arch).spills == 0


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", names())
def test_no_other_example_spills(name: str) -> None:
    compilers.needed()
    kernel = emitted(name)
    for arch in chosen(kernel, name):
        spills = compiler.reported(kernel.text, arch).spills
        assert spills <= MOST.get(name, 0), arch


@pytest.mark.proof
def test_every_architecture_has_its_share_of_examples() -> None:
    shares = Counter(arch for name in names() for arch in chosen(emitted(name), name))
    assert shares.keys() == {*ARCHITECTURES, "sm_90a"}
    assert min(shares.values()) >= 15, shares
