"""Kernels fed by TMA are right in any order of threads and of arrivals."""

from __future__ import annotations

from dataclasses import replace

import pytest
from box_kernels import NAMES, Shape, compiled, complaint, runs, text
from box_plants import PLANTS, planted

from gemmgen.gpu import compiler
from gemmgen.sim.failures import CompileFailure, KernelFault
from gemmgen.sim.ptx import needs_clocks

SHAPES: dict[str, tuple[Shape, ...]] = {
    "copied_in": ((32, 64, 0), (37, 100, 0), (1, 4, 0), (70, 200, 0)),
    "copied_out": ((32, 64, 0), (37, 100, 0), (1, 4, 0), (70, 200, 0)),
    "ring": ((32, 32, 8), (35, 37, 43), (64, 40, 100), (5, 6, 0), (1, 1, 1)),
    "cluster": ((64, 32, 8), (35, 37, 43), (70, 20, 60), (5, 6, 0), (1, 1, 1)),
}


@pytest.mark.by_default("ring-False", "copied_out-True", "cluster-False")
@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_is_right_in_all_orders_and_landings(name: str, checked: bool) -> None:
    kernel = compiled(name, checked=checked)
    for shape in SHAPES[name]:
        for order, landing in runs():
            wrong = complaint(kernel, name, shape, order, landing)
            assert wrong is None, (shape, order, landing, wrong)


@pytest.mark.by_default("ring")
@pytest.mark.skipif(compiler.available() is not None, reason=str(compiler.available()))
@pytest.mark.parametrize("name", NAMES)
def test_compiles_for_a_gpu_that_has_tma(name: str) -> None:
    assert compiler.compile_text(text(name), "sm_90a").spills == 0


def test_random_landings_differ_by_seed() -> None:
    kernel = compiled("ring", checked=False)
    for seed in range(20):
        wrong = complaint(kernel, "ring", (35, 37, 100), "shuffled", "random", seed)
        assert wrong is None, (seed, wrong)


FIRST = ("ascending", "late")
ANY_ORDER_OF_BYTES = (
    "gg_expect_bytes(full[step], BM * BN * 4);\n            "
    "gg_load_box_2d(A_shared[step], A, full[step], step * BN, tile_m);"
)


def test_bytes_may_be_expected_after_the_copy_is_issued() -> None:
    """The phase cannot end before, as the arrival is to come."""
    whole = text("copied_in")
    assert ANY_ORDER_OF_BYTES in whole
    expect, load = ANY_ORDER_OF_BYTES.split("\n")
    changed = whole.replace(ANY_ORDER_OF_BYTES, f"{load}\n{expect}")
    kernel = compiled("copied_in", changed)
    for order, landing in runs():
        assert complaint(kernel, "copied_in", (37, 100, 0), order, landing) is None


def test_a_tile_may_be_loaded_over_what_threads_have_written_and_fenced() -> None:
    plant = PLANTS["a tile loaded over what threads have written"]
    kernel = compiled("copied_in", planted(text("copied_in"), replace(plant, also=None)))
    for order, landing in runs():
        assert complaint(kernel, "copied_in", (37, 100, 0), order, landing) is None


@pytest.mark.parametrize(("name", "array"), [("copied_in", "A_shared"), ("copied_out", "C_shared")])
def test_arrays_with_boxes_are_aligned(name: str, array: str) -> None:
    changed = text(name).replace("alignas(128)", "alignas(64)")
    with pytest.raises(CompileFailure, match=rf"{array} has boxes, .* lacks alignas\(128\)"):
        compiled(name, changed)


def sentence(name: str, old: str, new: str, order: str, landing: str) -> str:
    changed = text(name).replace(old, new, 1)
    with pytest.raises(KernelFault) as raised:
        complaint(compiled(name, changed), name, (37, 100, 0), order, landing)
    return raised.value.findings[0].text()


def test_a_deadlock_names_the_barrier_and_what_is_to_come() -> None:
    got = sentence("copied_in", "full[step], BM * BN * 4", "full[step], BM * BN * 5", *FIRST)
    assert "128 threads wait at line" in got
    assert "for full[0], parity 0 (to come: 0 of 1 arrivals, 1024 bytes)" in got


@pytest.mark.proof
def test_a_race_with_a_copy_says_who_does_what() -> None:
    got = sentence("copied_out", "gg_await_boxes<STAGES - 1>();", "{}", *FIRST)
    assert got.startswith("race: thread (0, 0) writes C_shared[0, 0, 0] in block 0, at line ") or (
        got.startswith("race: thread (32, 0) writes C_shared[0, 1, 0] in block 0, at line ")
    )
    assert "; thread (0, 0) has TMA read it, with no barrier between, at line" in got
    got = sentence(
        "copied_in", "while (!gg_try_wait(full[stage], step / STAGES % 2)) {}", "", *FIRST
    )
    assert "; the copy of thread (0, 0) may not have ended, at line " in got
    got = sentence("copied_out", "gg_fence_async();", "", *FIRST)
    assert got.startswith("not fenced: thread (0, 0) has TMA read C_shared[0, 0, 0] by ")


def test_other_kernels_keep_no_clocks() -> None:
    assert all(needs_clocks(text(name)) for name in NAMES)
    assert not needs_clocks("__syncthreads(); cp.async.wait_group 0; setmaxnreg")
