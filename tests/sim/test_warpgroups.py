"""Kernels whose warpgroups multiply are right in all orders, however late multiplications are done;
mistakes in them are found: by which means, and where."""

from __future__ import annotations

import pytest
from box_kernels import runs
from box_plants import planted
from test_box_plants import UNORDERED, is_of
from warpgroup_kernels import (
    COPIED,
    NAMES,
    TRANSPOSED,
    WRITTEN,
    Shape,
    compiled,
    complaint,
    spanning,
    text,
)
from warpgroup_plants import PLANTS

from gemmgen.sim.failures import KernelFault
from gemmgen.sim.findings import Finding
from gemmgen.sim.run import CompiledKernel

SHAPES: dict[str, tuple[Shape, ...]] = {
    WRITTEN: ((5, 37, 200), (130, 20, 64), (64, 32, 72)),
    COPIED: ((5, 37, 200), (130, 20, 64), (128, 32, 8), (3, 5, 0)),
    TRANSPOSED: ((70, 65, 50), (5, 9, 130)),
}


@pytest.mark.by_default("warpgroup-False", "warpgroup_mn_major-False")
@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_is_right(name: str, checked: bool) -> None:
    kernel = compiled(name, checked=checked)
    for shape in SHAPES[name][: None if checked else 1]:
        for order, landing in runs():
            assert complaint(kernel, name, shape, order, landing) is None, (shape, order, landing)


@pytest.mark.by_default("128")
@pytest.mark.parametrize("span", [128, 64, 32])
def test_operands_along_m_and_n_may_be_swizzled_by(span: int) -> None:
    kernel = compiled(TRANSPOSED, spanning(span))
    assert complaint(kernel, TRANSPOSED, (70, 65, 50), "shuffled", "late") is None


def outcomes(kernel: CompiledKernel, name: str, shape: Shape) -> tuple[bool, list[Finding]]:
    """Whether C is wrong in a run, and what runs find."""
    is_wrong, findings = False, list[Finding]()
    for order, landing in runs():
        try:
            is_wrong |= complaint(kernel, name, shape, order, landing) is not None
        except KernelFault as fault:
            findings += fault.findings
    return is_wrong, findings


@pytest.mark.by_default("the fence dropped")
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", PLANTS)
def test_finds(name: str) -> None:
    plant = PLANTS[name]
    changed = planted(text(plant.kernel), plant)
    shape = (70, 37, 200)
    is_wrong, accounted = outcomes(
        compiled(plant.kernel, changed, checked=False), plant.kernel, shape
    )
    _, findings = outcomes(compiled(plant.kernel, changed), plant.kernel, shape)
    means = {
        "values": is_wrong,
        "clocks": any(finding.kind in UNORDERED for finding in findings),
        "accounting": bool(accounted),
    }
    found = [finding for finding in findings if is_of(plant, finding)]
    assert found or not plant.kind, {finding.text() for finding in findings}
    assert {mean for mean, finds in means.items() if finds} == set(plant.means.split(", "))
