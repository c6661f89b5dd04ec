"""Scales of blocks: right kernels of every kind pass, and mistakes in their texts are found on a
CPU."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from part_of_calls import is_right, keeps_its_meaning

from gemmgen.base.source import Source
from gemmgen.calling.launches import BOX_LANDINGS, LANDINGS, Case
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof import cpu
from gemmgen.proof.calls import Caller

from .subjects import subject

GEMM = """\
gemm C[m, n] = (A[m, k] * SA[k/128, m]) * (B[n, k] * SB[n/32, k/128])
dtype A=e4m3 B=e4m3 C=bf16
"""
TMA = """\
target sm_90a
tile m=64 n=64 k=128
cache_shared A B
tensor_core via=wgmma promote=128
swizzle A B
double_buffer A B
async_copy A B via=tma
"""
RING = f"{GEMM}{TMA}"
ROLES = f"{RING}warp_tile m=64 n=64\npersistent\nwarp_specialize producers=1\n"
SWAPPED = ROLES.replace("promote", "rows=n promote").replace("m=64 n=64 k", "m=16 n=64 k")
SWAPPED = SWAPPED.replace("warp_tile m=64", "warp_tile m=16")
ROWS = RING.replace("SA[k/128, m]", "SA[m, k/256]").replace("SB[n/32, k/128]", "SB[k/128, n]")
MMA = f"""\
{GEMM.replace("k/128", "k/64")}target sm_89
tile m=32 n=64 k=32
cache_shared A B
warp_tile m=16 n=32
tensor_core via=mma promote=32
"""
BY_TMA = f"{MMA}swizzle A B\ndouble_buffer A B\nasync_copy A B via=tma\n".replace("sm_89", "sm_90")
AHEAD = MMA.replace("k=32\n", "k=64\n") + "double_buffer A B A.register B.register\n"
FMA = """\
gemm C[m, n] = (A[m, k] * SA[m/2, k/8]) * (B[k, n] * SB[k/16, n])
tile m=16 n=32 k=8
cache_shared A[k, m] B[k, n]
register_block m=2 n=4
double_buffer A B
"""
RIGHT = {
    "roles": ROLES,
    "one role": RING,
    "cluster": f"{ROLES}cluster m=2\n",
    "swapped": SWAPPED,
    "rows of factors along k": ROWS,
    "slices of k": f"{RING}split_k parts=2\nfuse_epilogue relu(acc + bias[n])\n",
    "half a block": ROLES.replace("promote=128", "promote=64"),
    "mma": MMA,
    "mma by TMA": BY_TMA,
    "mma ahead": AHEAD,
    "fma": FMA,
    "naive": GEMM,
}


@pytest.mark.proof
@pytest.mark.in_proof("roles", "mma by TMA", "fma", "naive", "swapped", "mma ahead")
@pytest.mark.parametrize("name", RIGHT)
def test_right_kernels_hold(name: str) -> None:
    kernel = subject(RIGHT[name])
    keeps_its_meaning(kernel, name, RIGHT)
    is_right(kernel, name, RIGHT)


CALLS = (
    Case((65, 70, 300), "normal", 0.75, 1.0, pad=4),
    Case((130, 66, 520), tight=True, order="shuffled"),
    Case((65, 34, 0)),
)


@cache
def emitted(schedule: str) -> Emitted:
    return compile_source(Source(schedule))


def complaint_of(schedule: str, text: str) -> str | None:
    """What runs of ``text``, which is nearly that of ``schedule``, show."""
    kernel = emitted(schedule)
    landings = BOX_LANDINGS if kernel.interface.maps else LANDINGS[:1]
    cases = (replace(call, landing=landing) for call in CALLS for landing in landings)
    return cpu.first_complaint(Caller(kernel), text, tuple(cases), warn=False)


@pytest.mark.by_default("roles", "naive")
@pytest.mark.parametrize("name", RIGHT)
def test_each_kind_is_right_in_some_calls(name: str) -> None:
    assert complaint_of(RIGHT[name], emitted(RIGHT[name]).text) is None


_FENCE = "gg_fence_async();\n                __syncwarp();"
_ROW = "gg_load_box_2d(SA_shared[stage], SA, full[stage], tile_m, tile_k / 128)"
_ADDED = "SA_frag[reg_m] * SB_frag[reg_n / 8], acc[reg_m][reg_n])"
OF_ROLES = {
    "the next block of k": (_ROW, _ROW.replace("tile_k / 128", "tile_k / 128 + 1"), "C: "),
    "k for its block": (_ROW, _ROW.replace("tile_k / 128", "tile_k"), "C: "),
    "rows of the first tile": (_ROW, _ROW.replace("tile_m", "0"), "C: "),
    "not copied": (f"{_ROW};", "", ""),
    "into the next stage": (_ROW, _ROW.replace("SA_shared[stage]", "SA_shared[1 - stage]"), ""),
    "read from the next stage": ("= SA_shared[stage]", "= SA_shared[1 - stage]", ""),
    "no fence": (_FENCE, "__syncwarp();", "fence"),
    "no factor of A": (_ADDED, _ADDED.replace("SA_frag[reg_m] * ", ""), "C: "),
    "no factor of B": (_ADDED, _ADDED.replace(" * SB_frag[reg_n / 8]", ""), "C: "),
    "one factor of all columns": (_ADDED, _ADDED.replace("reg_n / 8", "0"), "C: "),
    "another row's": ("[thread_m + reg_m * LM];", "[thread_m];", "C: "),
    "bytes not counted": ("+ BM * 4;", ";", ""),
    "another pitch": ("(n / 32) * ldsb", "(n / 32) * (ldsb + 1)", ""),
    "no division of n": ("(n / 32) * ldsb", "n * ldsb", ""),
    "no division of k": ("* ldsb + tile_k / 128]", "* ldsb + tile_k]", ""),
    "blocks of 64 columns": ("(n / 32) * ldsb", "(n / 64) * ldsb", "C: "),
    "blocks of 64 along k": ("* ldsb + tile_k / 128]", "* ldsb + tile_k / 64]", ""),
    "columns outside": ("n < N ? SB[", "n < N + 64 ? SB[", ""),
    "a map of another pitch": ("{4LL * ldsa}", "{4LL * (ldsa + 4)}", ""),
}
OF_MMA = {
    "exchanged": (
        "*__restrict__ SA,\n    int ldsa, const float *__restrict__ SB, int ldsb)",
        "*__restrict__ SB,\n    int ldsb, const float *__restrict__ SA, int ldsa)",
        "",
    ),
    "factors of A for those of B": ("SA_frag[reg_m] * SB_frag", "SA_frag[0] * SA_frag[1]", "C: "),
    "blocks of 128 along k": ("SA[(long long)(tile_k / 64)", "SA[(long long)(tile_k / 128)", "C: "),
    "another pitch": ("(tile_k / 64) * ldsa", "(tile_k / 64) * ldsb", ""),
    "no division": ("(tile_k / 64) * ldsa", "tile_k * ldsa", ""),
    "half a block later": ("(tile_k / 64) * ldsa", "((tile_k + 32) / 64) * ldsa", ""),
}
MUTANTS = {
    **{f"roles: {name}": (ROLES, *each) for name, each in OF_ROLES.items()},
    **{f"mma: {name}": (MMA, *each) for name, each in OF_MMA.items()},
}
"""Schedule, text, what replaces it, and what the run says."""


@pytest.mark.by_default("roles: the next block of k", "roles: no fence", "mma: exchanged")
@pytest.mark.in_proof(share=2)
@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_of_the_text_are_found(name: str) -> None:
    schedule, before, after, said = MUTANTS[name]
    text = emitted(schedule).text
    assert before in text, "mend this test"
    found = complaint_of(schedule, text.replace(before, after))
    assert found is not None and said in found, found
