"""Emitted kernels that promote the accumulators of their tensor cores: right for any number of
terms the last group has, and what goes wrong between groups is found."""

from __future__ import annotations

import functools
from itertools import product

import pytest
from emitted_kernels import planted
from part_of_calls import keeps_its_meaning

from gemmgen.base.source import Source
from gemmgen.calling.launches import BOX_LANDINGS, ORDERS, Case
from gemmgen.expand.promotion_intervals import PromotionIntervals
from gemmgen.ir.control import Block
from gemmgen.ir.expanded import Timed
from gemmgen.ir.expr import Expr, Int
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof import meaning
from gemmgen.proof.calls import Caller
from gemmgen.proof.outcome import Subject
from gemmgen.sim.failures import KernelFailure
from gemmgen.sim.run import CompiledKernel

GROUPS = """\
gemm C[m, n] = A[m, k] * B[n, k]
dtype A=bf16 B=bf16 C=bf16
target sm_90a
tile m=64 n=16 k=64
cache_shared A B
warp_tile m=64 n=16
tensor_core via=wgmma promote=192
swizzle A B
double_buffer A B stages=3
async_copy A B via=tma
"""
LANES = """\
gemm C[m, n] = A[m, k] * B[n, k]
dtype A=f16 B=f16
tile m=32 n=32 k=32
cache_shared A B
warp_tile m=32 n=16
tensor_core via=mma promote=96
"""
PRODUCER = "warp_specialize producers=1\n"
HIGH = GROUPS.replace("m=64 n=16", "m=128 n=8")
AHEAD = "swizzle A B\ndouble_buffer A B stages=3\ndouble_buffer A.register B.register\n"
COPIES = f"{LANES}vectorize A.global B.global width=8\n{AHEAD}async_copy A B via=cp_async\n"


def every(lines: str, terms: int) -> str:
    """A schedule that promotes after this many terms."""
    return lines.replace("promote=192", f"promote={terms}").replace(
        "promote=96", f"promote={terms}"
    )


SCHEDULES = {
    "alone": GROUPS,
    "alone, each tile": every(GROUPS, 64),
    "alone, within a tile": every(GROUPS, 32),
    "alone, in rounds": f"{GROUPS}unroll tile_k=3\n",
    "parts of k": f"{GROUPS}split_k parts=3\n",
    "producer": f"{GROUPS}{PRODUCER}persistent\n",
    "producer, each tile": f"{every(GROUPS, 64)}{PRODUCER}persistent\n",
    "producer, within a tile": f"{every(GROUPS, 16)}{PRODUCER}",
    "ping-pong": f"{GROUPS}persistent\nwarp_specialize producers=1 order=pingpong\n",
    "cluster": f"{GROUPS}{PRODUCER}persistent\ncluster m=2\n",
    "128 rows": f"{HIGH}{PRODUCER}fuse_epilogue relu(acc + bias[n])\n",
    "bytes": every(GROUPS.replace("A=bf16 B=bf16 C", "A=e4m3 B=e5m2 C"), 128) + PRODUCER,
    "lanes": LANES,
    "lanes, each tile": every(LANES, 32),
    "lanes, within a tile": every(LANES, 32).replace("k=32", "k=64"),
    "lanes, persistent": f"{COPIES}persistent\n",
    "lanes, a ragged first tile": f"{COPIES}assume K % 8 == 0\nresidue k=first\n",
    "lanes, parts of k": f"{every(COPIES, 16)}split_k parts=3\n",
    "lanes, steps in a loop": f"{every(LANES, 16)}unroll k=16 tile_k=2\ndouble_buffer A B\n",
}


@functools.cache
def emitted(name: str) -> Emitted:
    return compile_source(Source(SCHEDULES[name], f"{name}.sched"))


def complaint(name: str, text: str | None = None) -> str | None:
    """What runs find wrong: of several tiles of C with intervals, the last one shorter, and
    ends in a ragged tile, with one group, and of an empty sum."""
    known = emitted(name)
    kernel = CompiledKernel(text or known.text, known.interface, checked=True, warn=text is None)
    try:
        orders = product(ORDERS[-1:], BOX_LANDINGS if "target" in SCHEDULES[name] else ("late",))
        cases = [Case((131, 40, 232), "normal", 0.7, -1.0, 1, *order) for order in orders]
        cases += [Case((70, 20, k), "normal", 0.7, -1.0, 1, "ascending", "late") for k in (0, 24)]
        caller = Caller(known)
        for each in cases:
            found = caller.complaint(each, kernel)
            if found is not None:
                return found
        return None
    except KernelFailure as failure:
        return str(failure)
    finally:
        kernel.close()


@pytest.mark.by_default("lanes")
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", SCHEDULES)
def test_every_group_is_folded_once(name: str) -> None:
    assert complaint(name) is None


@pytest.mark.by_default("lanes, each tile")
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", SCHEDULES)
def test_every_pass_keeps_the_meaning(name: str) -> None:
    keeps_its_meaning(Subject(emitted(name)), name, SCHEDULES)


WAIT = "gg_wgmma_end(part);"
NAMED = 'asm volatile("" : "+f"(acc[i / columns][i % columns]) :: "memory");'
RELEASE = """

                // release the stage of this step
                __syncwarp();
                if (threadIdx.x % 32 == 0) gg_arrive(empty[stage]);
"""
RAGGED = " || tile_k + BK >= K"
WHOLE = "(tile_k + BK) % PROMOTE == 0"
FOLDED = "acc[reg_m][reg_n] += part[reg_m][reg_n];"
PLANTS = {
    "the last group is forgotten": ("producer", RAGGED, "", 1),
    "only the last group is folded": ("producer", WHOLE, "false", 1),
    "accumulators go on after a promotion": ("producer", "tile_k % PROMOTE > 0", "tile_k > 0", 1),
    "accumulators restart with each tile": ("producer", " || tile_k % PROMOTE > 0", "", 1),
    "accumulators go on from tile to tile of C": (
        "producer",
        "k > 0 || tile_k % PROMOTE > 0",
        "1",
        1,
    ),
    "a group is folded after each of its tiles": ("producer", WHOLE, "true", 1),
    "a promotion takes the place of the accumulators": (
        "producer",
        FOLDED,
        FOLDED.replace("+=", "="),
        1,
    ),
    "a promotion counts twice": ("producer", FOLDED, FOLDED.replace("+= ", "+= 2.0f * "), 1),
    "a promotion before the wait": ("producer", WAIT, "", 1),
    "a promotion after a wait that names no accumulators": ("producer", NAMED, ";", 1),
    "totals go on from tile to tile of C": (
        "producer",
        "acc[reg_m][reg_n] = 0.0f;",
        "acc[reg_m][reg_n] += 0.0f;",
        1,
    ),
    "groups are counted from k = 0": ("parts of k", "(tile_k - start_k) %", "tile_k %", 1),
    "accumulators go on within a tile": ("producer, within a tile", "k % PROMOTE > 0", "k > 0", 1),
    "no fence after a promotion": ("producer, within a tile", "gg_wgmma_fence();", "", 2),
    "the stage is released before it is read": ("producer", WAIT + RELEASE, RELEASE + WAIT, 1),
    "the last group of lanes is forgotten": ("lanes", RAGGED, "", 1),
    "lanes' accumulators go on after a promotion": ("lanes", "part[reg_m][reg_n] = 0.0f;", "", 1),
    "lanes' accumulators are not zero at first": (
        "lanes",
        "part[TM][TN] = {};",
        "part[TM][TN];",
        1,
    ),
    "promotions of the step before": (
        "lanes, within a tile",
        "(k + IK) % PROMOTE",
        "k % PROMOTE",
        1,
    ),
}


@pytest.mark.by_default("a promotion before the wait")
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("plant", PLANTS)
def test_finds(plant: str) -> None:
    name, old, new, nth = PLANTS[plant]
    assert complaint(name, planted(emitted(name).text, old, new, nth)) is not None


Patch = pytest.MonkeyPatch


def _never_again(patch: Patch) -> None:
    patch.setattr(PromotionIntervals, "goes_on", lambda _own, _k: Int(1))


def _ragged_forgotten(patch: Patch) -> None:
    folded = PromotionIntervals.after_tile

    def after_tile(own: PromotionIntervals, _stop: Expr) -> tuple[Timed, ...]:
        return folded(own, Int(1 << 30))

    patch.setattr(PromotionIntervals, "after_tile", after_tile)


def _never_folded(patch: Patch) -> None:
    patch.setattr(PromotionIntervals, "_promoted", lambda _own, _body: Block("nothing", (), ()))


@pytest.mark.proof
@pytest.mark.parametrize("plant", (_never_again, _ragged_forgotten, _never_folded))
def test_the_meaning_shows_it(plant: object, monkeypatch: Patch) -> None:
    assert callable(plant)
    known = emitted("alone")
    plant(monkeypatch)
    assert meaning.check(Subject(known)).status == "failed"
