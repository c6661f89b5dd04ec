"""Mistakes planted in emitted kernels are found, at their line and with their directive."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from emitted_kernels import checked, complaint, emitted, planted
from plants import PLANTS, RAGGED, WRONG_VALUES

from gemmgen.calling.dimensions import values_of
from gemmgen.calling.launches import LANDINGS, ORDERS, Case
from gemmgen.sim.failures import CompileFailure, KernelFault
from gemmgen.sim.packing import Argument
from gemmgen.sim.poisoned_memory import Sparse


@pytest.mark.by_default("some threads pass the barrier by", "two owners of one element")
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", PLANTS)
def test_finds_at_its_line(name: str) -> None:
    plant = PLANTS[name]
    changed = planted(emitted(plant.example).text, plant.old, plant.new, plant.nth)
    kernel = checked(plant.example, changed)
    lines = changed.split("\n")
    for order, landing in itertools.product(ORDERS, LANDINGS):
        if landing != LANDINGS[0] and "gg_copy" not in changed:
            continue
        case = replace(plant.case, order=order, landing=landing)
        with pytest.raises(KernelFault) as raised:
            complaint(plant.example, kernel, case)
        found = [each for each in raised.value.findings if each.kind == plant.kind]
        message = [
            each
            for each in found
            if any(plant.at in " ".join(lines[line - 1 : line + 1]) for line in each.lines)
            and any(plant.directive in directive for directive in each.directives)
        ]
        assert message, str(raised.value)


@pytest.mark.parametrize("name", PLANTS)
def test_no_two_leading_dimensions_of_its_call_are_equal(name: str) -> None:
    """Else one could be taken for the other."""
    interface = emitted(PLANTS[name].example).interface
    values = values_of(interface, PLANTS[name].case)
    leading = [values[param.name] for param in interface.params if param.kind == "ld"]
    assert len(leading) == 3 and len(set(leading)) == 3


@pytest.mark.by_default("NaN written", "the tail of K dropped")
@pytest.mark.parametrize("name", WRONG_VALUES)
def test_finds_by_the_values(name: str) -> None:
    example, old, new, case = WRONG_VALUES[name]
    changed = emitted(example).text.replace(old, new)
    assert changed != emitted(example).text
    assert complaint(example, checked(example, changed), case) is not None


OFFSETS = {
    "A": "A[(long long)m * lda + k]",
    "B": "B[(long long)k * ldb + n]",
    "C": "C[(long long)m * ldc + n] =",
}
PITCH = 2**30


def spanning() -> dict[str, Argument]:
    """Three rows a matrix, more than 2^31 elements apart from first to last."""
    found: dict[str, Argument] = {"M": 3, "N": 4, "K": 3, "alpha": 1.0, "beta": 1.0}
    for name, columns, value in (("A", 3, 2), ("B", 4, 3), ("C", 4, 1)):
        matrix = Sparse.spanning((3, columns), (PITCH, 1), dtype="f32").view
        matrix[...] = value
        found |= {name: matrix, f"ld{name.lower()}": PITCH}
    return found


@pytest.mark.parametrize("name", ["naive", "double_buffered", "warp_tiled"])
def test_offsets_beyond_an_int_are_right(name: str) -> None:
    arguments = spanning()
    checked(name).run(arguments)
    assert isinstance(arguments["C"], np.ndarray) and (arguments["C"] == 19).all()


@pytest.mark.by_default("B")
@pytest.mark.parametrize("tensor", OFFSETS)
def test_finds_an_offset_of_32_bits(tensor: str) -> None:
    offset = OFFSETS[tensor]
    changed = emitted("naive").text.replace(offset, offset.replace("(long long)", ""))
    with pytest.raises(KernelFault) as raised:
        checked("naive", changed).run(spanning())
    (finding,) = raised.value.findings
    assert finding.kind == "arithmetic"
    assert finding.detail == "1073741824 * 2 does not fit 'int'"
    assert f"{tensor}[m * ld" in finding.access.text or "B[k * ldb" in finding.access.text


@pytest.mark.parametrize(
    ("example", "old"),
    [
        ("vectorized", "alignas(16) float A_shared"),
        ("vectorized", "alignas(16) float out"),
        ("warp_tiled", "alignas(16) extern"),
    ],
)
def test_finds_a_missing_alignment(example: str, old: str) -> None:
    changed = planted(emitted(example).text, old, old.replace("16", "8"))
    with pytest.raises(CompileFailure, match=r"accessed by 16 bytes, but its declaration lacks"):
        checked(example, changed)


def test_finds_shared_memory_beyond_what_the_interface_says() -> None:
    changed = planted(emitted("double_buffered").text, "B_shared[2]", "B_shared[3]")
    with pytest.raises(KernelFault, match="declares 20736 bytes of shared memory, its interface"):
        complaint("double_buffered", checked("double_buffered", changed), RAGGED)


def test_finds_a_variable_never_set_after_a_product_with_zero() -> None:
    changed = planted(emitted("vectorized").text, "e < VEC", "e < VEC - 1")
    with pytest.raises(KernelFault, match=r"^never written: .* reads [AB]_shared"):
        complaint("vectorized", checked("vectorized", changed), RAGGED)


def test_finds_launch_bounds_that_are_not_the_block() -> None:
    changed = planted(emitted("tiled").text, "THREADS = BM * BN", "THREADS = BM + BN")
    with pytest.raises(CompileFailure, match="the launch bounds are the threads of a block"):
        checked("tiled", changed)


def test_a_finding_names_both_threads_and_the_element() -> None:
    plant = PLANTS["the barrier in the loop dropped"]
    changed = planted(emitted(plant.example).text, plant.old, plant.new)
    with pytest.raises(KernelFault) as raised:
        complaint(plant.example, checked(plant.example, changed), RAGGED)
    first = raised.value.findings[0]
    assert (first.kind, first.element, first.other is not None) == (
        "race",
        "A_shared[0, 0, 0]",
        True,
    )
    assert str(raised.value).startswith(
        "race: thread (1, 0) reads A_shared[0, 0, 0] in block 0, at line "
    )
    assert "thread (0, 0) writes it, with no barrier between, at line " in str(raised.value)


def test_the_kernel_serves_again_after_findings() -> None:
    plant = PLANTS["the wrong stage filled"]
    changed = planted(emitted(plant.example).text, plant.old, plant.new)
    kernel = checked(plant.example, changed)
    for _, order in itertools.product(range(2), ORDERS):
        with pytest.raises(KernelFault, match=r"^race"):
            complaint(plant.example, kernel, Case((5, 5, 64), "normal", order=order))
