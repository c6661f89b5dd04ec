"""Launchers keep their tensor maps: a map that is not the call's, or that is encoded although its
source has not changed, is found."""

from __future__ import annotations

from itertools import pairwise

import pytest
from emit.mapped import BATCHED, MAPPED, PLAIN, emitted_with

from gemmgen.pipeline import Emitted
from gemmgen.proof import launcher
from gemmgen.proof.launcher_arguments import calls
from gemmgen.sim.run import CompiledKernel

ADDRESS = "kept.tensor.address == tensor.address"
SIZES = "for (int i = 0; i < RANK; ++i) same"
STRIDES = "for (int i = 0; i < RANK - 1; ++i) same"
KNOWN = "    if (same) return cudaSuccess;\n"
STORED = "if (error == 0) kept = {map, tensor};"
ENCODE = "const int error = encode(&map,"
TWO = "static thread_local gg_kept_map<2> A_map, B_map;"
LOW = "unsigned(reinterpret_cast<size_t>({}))"
PLANTED = {
    "the address is left out": ((ADDRESS, "true"), "another A alone: passes a tensor map of A"),
    "half of the address is left out": (
        (ADDRESS, f"{LOW.format('kept.tensor.address')} == {LOW.format('tensor.address')}"),
        "another A alone: passes a tensor map of A with address",
    ),
    "sizes are left out": ((SIZES, SIZES.replace("RANK", "0")), "with sizes of"),
    "the first size is left out": (
        (SIZES, SIZES.replace("= 0", "= 1")),
        "map of A with sizes of 9",
    ),
    "the last size is left out": ((SIZES, SIZES.replace("RANK", "2")), "another size_b alone: "),
    "strides are left out": ((STRIDES, STRIDES.replace("RANK", "1")), "another lda alone"),
    "the first stride is left out": ((STRIDES, STRIDES.replace("= 0", "= 1")), "another lda alone"),
    "the last stride is left out": (
        (STRIDES, STRIDES.replace("RANK - 1", "RANK - 2")),
        "another stride_A_b alone: passes a tensor map of A with strides of",
    ),
    "the comparison is inverted": (
        ("if (same)", "if (!same)"),
        "without a driver: returns cudaSuccess",
    ),
    "nothing is compared": ((KNOWN, ""), "encodes 2 tensor maps, although 0 are not kept"),
    "nothing is kept": ((STORED, "kept.map = map;"), "encodes 2 tensor maps, although 0"),
    "the source is kept before the driver answers": (
        (ENCODE, f"kept.tensor = tensor;\n    {ENCODE}"),
        "map of A is refused, then again: passes a tensor map of A with address",
    ),
    "a refused map is kept": (
        (STORED, STORED.removeprefix("if (error == 0) ")),
        "map of A is refused, then again: passes a tensor map of A that was not encoded",
    ),
    "a refused map is written over the kept one": (
        (ENCODE, ENCODE.replace("&map", "&kept.map")),
        (STORED, STORED.replace("kept = {map, tensor}", "kept.tensor = tensor")),
        "refused, then with the maps before: passes a tensor map of A that was not encoded",
    ),
    "the filled extents are kept": (
        (STORED, STORED.replace("tensor}", "given}")),
        "encodes 2 tensor maps, although 0 are not kept",
    ),
}


def complaint(emitted: Emitted, text: str) -> str | None:
    return launcher.complaint(emitted, text, CompiledKernel(text, emitted.interface, warn=False))


@pytest.mark.by_default("strides are left out", "a refused map is written over the kept one")
@pytest.mark.parametrize("planted", PLANTED)
def test_a_wrong_cache_is_found(planted: str) -> None:
    emitted = emitted_with(BATCHED)
    *changes, said = PLANTED[planted]
    text = emitted.text
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    found = complaint(emitted, text)
    assert found is not None and said in found


@pytest.mark.proof
def test_a_place_of_two_maps_is_found() -> None:
    emitted = emitted_with(PLAIN)
    one = TWO.replace(", B_map;", ";") + " auto &B_map = A_map;"
    assert TWO in emitted.text
    found = complaint(emitted, emitted.text.replace(TWO, one))
    assert found is not None and "passes a tensor map of A with address" in found


@pytest.mark.parametrize("schedule", MAPPED)
def test_each_value_of_a_map_differs_alone(schedule: str) -> None:
    """No call between them, and none that the launcher refuses."""
    emitted = emitted_with(MAPPED[schedule])
    interface = emitted.interface
    made = [*calls(emitted)]
    seen = set[str]()
    for (_, before), (purpose, call) in pairwise(made):
        if purpose.endswith(" alone"):
            names = [n for n, value in call.values.items() if value != before.values[n]]
            assert launcher.expected(interface, call.values).launches and len(names) == 1
            seen |= {*names}
    dimensions = [each for one in interface.maps for each in interface.map_dimensions(one)]
    wanted = {one.tensor for one in interface.maps}
    wanted |= {name for each in dimensions for name in (each.size, each.stride) if name}
    assert seen == wanted
