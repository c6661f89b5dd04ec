"""A sample of all kinds of mistakes outside kernels, all found by C2."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest
from emit.mapped import MAPPED, emitted_with

from gemmgen.proof import cpu, launcher
from gemmgen.proof.outcome import Subject
from gemmgen.sim.failures import CompileFailure
from gemmgen.sim.run import CompiledKernel
from gemmgen.sim.toolchain import object_code

from .mutants import Mutant
from .outside import functions_mutants, launcher_mutants
from .subjects import SCHEDULES, emitted

SAMPLE = 4
"""Of the functions, and of the launcher, of each kernel."""

EQUIVALENT = {
    r"pending -> (0|pending > 0 \? .*)": "a wait for more groups is slower, and never wrong",
    r"cg -> ca": "a copy of 16 bytes that is kept in L1, too",
    r"bfly -> down": "lane 0 alone stores, and its sums take the same lanes' values",
    r"= -> \+": "an output whose register holds a number before",
    r"2147483647 -> (2147483646|2147483648|4294967294)": "2147483647 is prime: grids next to it "
    "need a tile of one element; and CUDA refuses a grid beyond it with the same error",
    r"if \((blocks|tiles) >.*: > -> >=": "the same",
}
"""Changes (after their lines, if that matters), and why they are not mistakes."""


MAPPED_EQUIVALENT = {
    r"const unsigned steps\[\] = \{1, 1, .*\};": "a step of a dimension that the tensor lacks",
    r".*\b[MNK] < 0 .*: [MNK] < 0 -> false": "the driver refuses the size with the same error",
    r".*% 4 .*: (.* % 4 != 0 -> false|4 -> 2)": "the driver refuses the stride, too",
    r".*\bstride_\w+ [<>] .*: (.* -> false|\d{9,} -> \d+)": "the driver refuses the stride, too",
}
"""Of texts that encode tensor maps."""


def is_equivalent(mutant: Mutant) -> bool:
    change = f"{mutant.before} -> {mutant.after}"
    (before, *_), (after, *_) = mutant.difference()
    texts = (change, f"{before}: {change}", after)
    patterns = (*EQUIVALENT, *(MAPPED_EQUIVALENT if "gg_encode_map(" in mutant.text else ()))
    return any(re.fullmatch(pattern, text) for pattern in patterns for text in texts)


def drawn(name: str) -> list[Mutant]:
    text, rng = emitted(name).text, random.Random(name)
    kinds = (functions_mutants(text), launcher_mutants(text))
    return [mutant for kind in kinds for mutant in rng.sample(kind, min(SAMPLE, len(kind)))]


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_sample_is_found(name: str) -> None:
    right = emitted(name)
    for mutant in drawn(name):
        outcome = cpu.check(Subject(replace(right, text=mutant.text)))
        if outcome.status != "failed":
            same = object_code(mutant.text, right.interface) == object_code(
                right.text, right.interface
            )
            assert same or is_equivalent(mutant), (mutant.line, mutant.difference())


@pytest.mark.proof
@pytest.mark.parametrize("name", MAPPED)
def test_a_sample_of_a_launcher_that_encodes_maps_is_found(name: str) -> None:
    """By the calls of the launcher alone: the kernel does nothing."""
    right = emitted_with(MAPPED[name])
    for mutant in random.Random(name).sample(launcher_mutants(right.text), 4 * SAMPLE):
        try:
            kernel = CompiledKernel(mutant.text, right.interface, checked=True, warn=False)
        except CompileFailure:
            continue
        if launcher.complaint(right, mutant.text, kernel) is None:
            same = object_code(mutant.text, right.interface) == object_code(
                right.text, right.interface
            )
            assert same or is_equivalent(mutant), (mutant.line, mutant.difference())
        kernel.close()


def test_there_are_many() -> None:
    counts = [
        len(functions_mutants(emitted(name).text)) + len(launcher_mutants(emitted(name).text))
        for name in SCHEDULES
    ]
    assert sum(counts) >= 2500 and min(counts) >= 150


def test_a_mutant_changes_nothing_but_functions_or_the_launcher() -> None:
    text = emitted("split_k").text
    begin, end = text.index("// ---- kernel ----"), text.index("// ---- end of kernel ----")
    for mutant in functions_mutants(text):
        assert mutant.start < begin and mutant.text != text
    for mutant in launcher_mutants(text):
        assert mutant.start > end and mutant.text != text
