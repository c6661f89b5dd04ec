"""Mistakes in the use of barriers and of TMA are found: by which means, and where."""

from __future__ import annotations

import pytest
from box_kernels import Shape, compiled, complaint, runs, text
from box_plants import PLANTS as OF_BLOCKS
from box_plants import BoxPlant, planted
from cluster_plants import PLANTS as OF_CLUSTERS

from gemmgen.sim.failures import KernelFault
from gemmgen.sim.findings import Finding
from gemmgen.sim.run import CompiledKernel

SHAPES: dict[str, Shape] = {
    "copied_in": (5, 200, 0),
    "copied_out": (5, 200, 0),
    "ring": (5, 37, 60),
    "cluster": (70, 20, 60),
}
PLANTS = OF_BLOCKS | OF_CLUSTERS
UNORDERED = ("race", "under way", "not fenced", "never written")
"""Kinds of findings of clocks."""


def outcomes(kernel: CompiledKernel, name: str) -> tuple[bool, list[Finding]]:
    """Whether C is wrong in a run, and what runs find."""
    is_wrong, findings = False, list[Finding]()
    for order, landing in runs():
        try:
            is_wrong |= complaint(kernel, name, SHAPES[name], order, landing) is not None
        except KernelFault as fault:
            findings += fault.findings
    return is_wrong, findings


def is_of(plant: BoxPlant, finding: Finding) -> bool:
    places = [finding.access, finding.other]
    texts = [place.text for place in places if place is not None]
    return finding.kind == plant.kind and any(plant.at in line for line in texts)


@pytest.mark.by_default("the wait for a tile asks once")
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", PLANTS)
def test_finds(name: str) -> None:
    plant = PLANTS[name]
    changed = planted(text(plant.kernel), plant)
    is_wrong, accounted = outcomes(compiled(plant.kernel, changed, checked=False), plant.kernel)
    _, findings = outcomes(compiled(plant.kernel, changed), plant.kernel)
    means = {
        "values": is_wrong,
        "clocks": any(finding.kind in UNORDERED for finding in findings),
        "accounting": bool(accounted),
    }
    assert {mean for mean, finds in means.items() if finds} == set(plant.means.split(", "))
    if plant.kind:
        found = [finding for finding in findings if is_of(plant, finding)]
        assert found, {finding.text() for finding in findings}
