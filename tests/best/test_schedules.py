"""examples/best, hopper, mma and steps hold at ragged shapes of several blocks, small as
they are."""

from __future__ import annotations

from pathlib import Path

import compilers
import pytest

from gemmgen.base.source import Source
from gemmgen.calling.launches import Case
from gemmgen.gpu import compiler
from gemmgen.ir.launch_shape import Shape
from gemmgen.language import fmt_source
from gemmgen.pipeline import Emitted, Step, compile_source
from gemmgen.proof import meaning, round_trip
from gemmgen.proof.calls import Caller, landings_of
from gemmgen.proof.outcome import Subject
from gemmgen.proof.shapes import fit, ring_of, tile_of
from gemmgen.sim.run import CompiledKernel

EXAMPLES = Path(__file__).parents[2] / "examples"
FOLDERS = ("best", "hopper", "mma", "steps")
FILES = {path.stem: path for folder in FOLDERS for path in (EXAMPLES / folder).glob("*.sched")}
NAMES = sorted(FILES)
SHORT = 96
"""A large enough K for very many parts: most of these stay empty."""

FEWER = {"deep": ("parts=264 groups=12", "parts=6 groups=2")}
"""What the interpreter is spared: each part is its own block."""


def source(name: str) -> Source:
    return Source(FILES[name].read_text(encoding="utf-8"), f"{name}.sched")


def emitted(name: str) -> Emitted:
    return compile_source(source(name))


def shapes(kernel: Emitted) -> tuple[Shape, ...]:
    """Two blocks along rows and one more term than fills the ring of stages; two along columns and
    one fewer."""
    m, n, k, _ = tile_of(kernel.program)
    ring = min(ring_of(kernel.program), max(SHORT, 2 * k))
    return tuple(fit(kernel, shape) for shape in ((m + 1, 5, ring + 1), (3, n + 1, ring - 1)))


@pytest.mark.by_default("large_km_kn", "odd_mk_kn")
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", NAMES)
def test_is_written_in_the_one_form_and_says_the_same_again(name: str) -> None:
    assert fmt_source(source(name)) == source(name).text
    outcome = round_trip.check(Subject(emitted(name)))
    assert outcome.status == "passed", outcome.detail


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", NAMES)
def test_means_what_its_problem_says(name: str) -> None:
    """C1 of the last program; ``gemmgen verify`` looks after every pass."""
    text = source(name).text.replace(*FEWER.get(name, ("", "")))
    kernel = compile_source(Source(text))
    _, (_, _, depth, *_) = shapes(kernel)
    complaint = meaning.difference(Step("last", kernel.program), (fit(kernel, (3, 5, depth)),))
    assert complaint is None, complaint


@pytest.mark.proof
@pytest.mark.parametrize("name", NAMES)
def test_is_right_on_the_cpu_with_every_access_watched(name: str) -> None:
    kernel = emitted(name)
    caller, landings = Caller(kernel), landings_of(kernel)
    compiled = CompiledKernel(kernel.text, kernel.interface, checked=True)
    try:
        for shape in shapes(kernel):
            for case in (
                Case(shape, "normal", 0.7, 0.0, 1, "ascending", landings[0]),
                Case(shape, "permutation", 1.0, -1.0, 5, "shuffled", landings[-1]),
            ):
                complaint = caller.complaint(case, compiled)
                assert complaint is None, f"{case.text()}: {complaint}"
    finally:
        compiled.close()


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", NAMES)
def test_compiles_without_a_warning_and_without_spills(name: str) -> None:
    """For what they were tuned on; ``gemmgen verify`` asks for every architecture."""
    compilers.needed()
    arch = compilers.measured_on(emitted(name).target)
    assert compiler.reported(emitted(name).text, arch).spills == 0
