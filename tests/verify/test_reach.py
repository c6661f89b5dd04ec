"""What the calls of C2 reach: many blocks, long sums, stale tiles, offsets that no int holds."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import pytest

from gemmgen.calling.dimensions import ROW, values_of
from gemmgen.pipeline import compile_source
from gemmgen.proof import cpu
from gemmgen.proof.cases import cases_of, work
from gemmgen.proof.default_shapes import c2_shapes
from gemmgen.proof.outcome import Subject
from gemmgen.proof.shapes import fit, tile_of
from gemmgen.schedule import examples
from gemmgen.schedule.read import read_source
from gemmgen.sim.unit import BEGIN
from gemmgen.sim.widths import check_widths

from .subjects import NAIVE, subject

SMALL = "tile m=16 n=16 k=8\ncache_shared A[k, m] B\n"
RASTER = f"{SMALL}raster group=8\n"
BATCHED = f"gemm C[b, m, n] = A[b, m, k] * B[b, k, n]\n{SMALL}"
FUSED = f"{SMALL}fuse_epilogue acc + residual[m, n]\n"
WIDE = """\
tile            m=32 n=32 k=8
cache_shared    A[k, m] B[k, n]
register_block  m=4 n=4
vectorize       A B C width=4
double_buffer   A B
"""
PARTS = f"{WIDE}split_k parts=3\n"
CLUSTERS = """\
gemm            C[m, n] = A[k, m] * B[k, n]
target          sm_90a
tile            m=32 n=32 k=8
cache_shared    A B
register_block  m=4 n=4
double_buffer   A B
async_copy      A B via=tma
warp_specialize producers=1
cluster         m=2 n=2
"""
BANDS = f"{CLUSTERS}raster group=2\n"
DECOMPOSED = """\
gemm            C[m, n] = A[m, k] * B[n, k]
target          sm_80
tile            m=32 n=16 k=16
cache_shared    A B
warp_tile       m=16 n=16
decompose       into=bf16
tensor_core     via=mma promote=32
pad             A B by=4
"""
MATVEC = read_source(str(examples.path_of("matvec"))).text
FILL = "target[e] = i < rows && j + e < cols ? X[(long long)i * ldx + j + e] : 0.0f;"
A_NEXT, B_NEXT = "        load4(A_next, A,", "        load4(B_next, B,"
STALE = "if (i < rows && j + e < cols) target[e] = X[(long long)i * ldx + j + e];"

PLANTED = {
    "an int in every offset": (WIDE, "(long long)", ""),
    "an int in an operand's": (WIDE, "&X[(long long)i", "&X[i"),
    "an int in an operand's after a guard": (WIDE, "? X[(long long)i", "? X[i"),
    "an int in A's": (SMALL, " A[(long long)m", " A[m"),
    "an int in B's": (SMALL, " B[(long long)k", " B[k"),
    "an int in A's of sums computed again": (
        DECOMPOSED,
        "A[(long long)m * lda + k]",
        "A[m * lda + k]",
    ),
    "an int in B's of sums computed again": (
        DECOMPOSED,
        "B[(long long)n * ldb + k]",
        "B[n * ldb + k]",
    ),
    "an int in C's": (WIDE, "&C[(long long)m", "&C[m"),
    "an int in the epilogue's": (FUSED, "residual[(long long)m", "residual[m"),
    "an int in a batch's": (BATCHED, "A += stride_A_b * b", "A += (int)(stride_A_b * b)"),
    "a last band as high as the others": (
        RASTER,
        "tile_in_group % group_rows",
        "tile_in_group % full_group",
    ),
    "a tile too many where all are whole": (SMALL, "(N - 1) / BN + 1", "N / BN + 1"),
    "K ends at 100": (SMALL, "tile_k < K;", "tile_k < (K < 100 ? K : 100);"),
    "no blocks from the 30th on": (SMALL, "if (m < M", "if (blockIdx.x < 30 && m < M"),
    "M taken for K": (MATVEC, "<= M && tile_k + BK <= K", "<= M && tile_k + BK <= M"),
    "a tile too many in a band": (RASTER, "(N - 1) / BN + 1", "N / BN + 1"),
    "a cluster too many where all are whole": (
        CLUSTERS,
        "(N - 1) / (BN * CLUSTER_N) + 1",
        "N / (BN * CLUSTER_N) + 1",
    ),
    "a cluster too many in a band": (
        BANDS,
        "(M - 1) / (BM * CLUSTER_M) + 1",
        "M / (BM * CLUSTER_M) + 1",
    ),
    "a last band of clusters as high as the others": (
        BANDS,
        "tile_in_group % group_rows",
        "tile_in_group % full_group",
    ),
    "C's rows taken for its columns": (WIDE, ", n, N);", ", n, M);"),
    "stale elements in a part": (PARTS, FILL, STALE),
    "stale elements where 0 belongs": (WIDE, FILL, STALE),
    "a stale vector of A in a part": (PARTS, A_NEXT, f"if (next_k + A_k < stop_k) {A_NEXT}"),
    "a stale vector of A where 0 belongs": (WIDE, A_NEXT, f"if (next_k + A_k < K) {A_NEXT}"),
    "a stale vector of B where 0 belongs": (WIDE, B_NEXT, f"if (next_k + B_k < K) {B_NEXT}"),
}
"""Mistakes that calls of small shapes with finite numbers let pass."""


def planted(schedule: str, before: str, after: str) -> Subject:
    """The kernel of ``schedule`` with each ``before`` in it replaced."""
    right = subject(schedule)
    header, begin, kernel = right.emitted.text.partition(BEGIN)
    assert before in kernel, f"the emitted text has no {before!r} any more: mend this test"
    text = header + begin + kernel.replace(before, after)
    return Subject(replace(right.emitted, text=text))


@pytest.mark.by_default("K ends at 100", "an int in a batch*")
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", PLANTED)
def test_is_seen(name: str) -> None:
    wrong = planted(*PLANTED[name])
    only = [case for case in cases_of(wrong.emitted) if case.shape not in _default(wrong)]
    message = cpu.first_complaint(cpu.Caller(wrong.emitted), wrong.emitted.text, only, warn=False)
    assert message is not None, "no call shows it"


def _default(kernel: Subject) -> tuple[tuple[int, ...], ...]:
    return c2_shapes(kernel.emitted)


@pytest.mark.by_default("1")
@pytest.mark.parametrize(
    "schedule", (SMALL, RASTER, WIDE, BATCHED, FUSED, PARTS, BANDS), ids=range(7)
)
def test_right_kernels_pass_them(schedule: str) -> None:
    kernel = subject(schedule)
    only = [case for case in cases_of(kernel.emitted) if case.shape not in _default(kernel)]
    assert cpu.first_complaint(cpu.Caller(kernel.emitted), kernel.emitted.text, only) is None


@pytest.mark.parametrize("name", (*examples.LADDER, "tensor_core", "matvec", "split_k"))
def test_the_shapes_reach_what_the_text_can_do(name: str) -> None:
    emitted = compile_source(read_source(str(examples.path_of(name))))
    chosen, interface = cases_of(emitted), emitted.interface
    m, n, k, stages = tile_of(emitted.program)
    shapes = [case.shape[:3] for case in chosen]
    sizes = [{"M": rows, "N": columns} for rows, columns, _ in shapes]
    assert max(interface.grid(size) for size in sizes) >= 40
    band = emitted.program.main.work.raster
    assert any(rows == (band + 1) * m and columns in (2 * n, 3 * n) for rows, columns, _ in shapes)
    assert max(depth for *_, depth in shapes) >= max(520, 3 * k * stages)
    assert {"infinities in A", "infinities in B"} <= {case.data for case in chosen}
    if band > 1:
        assert any(ceil(rows / m) == band + 2 and columns > n for rows, columns, _ in shapes)
    assert max(work(emitted, case.shape) for case in chosen) <= cpu.MOST


PERSISTENT = f"{CLUSTERS}persistent\n"


@pytest.mark.proof
@pytest.mark.parametrize("name", ("if (blockIdx.x >= 30) return;", "if (own_tile >= 30) break;"))
def test_a_mistake_of_late_persistent_blocks_and_tiles_is_seen(name: str) -> None:
    right = subject(PERSISTENT).emitted
    at = 'extern "C" __global__' if "return" in name else "own_tile += gridDim.x)"
    head, mark, rest = right.text.rpartition(at)
    before, brace, after = rest.partition("{")
    wrong = "".join((head, mark, before, brace, name, after))
    only = [case for case in cases_of(right) if case.held]
    only += [replace(case, held=0) for case in only]
    assert cpu.first_complaint(cpu.Caller(right), right.text, only) is None
    assert cpu.first_complaint(cpu.Caller(right), wrong, only, warn=False) is not None


@pytest.mark.parametrize("name", ("vectorized", "tensor_core"))
def test_the_third_row_of_a_far_call_is_beyond_an_int(name: str) -> None:
    emitted = compile_source(read_source(str(examples.path_of(name))))
    far = [case for case in cases_of(emitted) if case.far]
    assert len(far) == 2
    for case in far:
        values = values_of(emitted.interface, case)
        leading = [values[p.name] for p in emitted.interface.params if p.kind == "ld"]
        assert min(leading) >= ROW and 2 * ROW > 2**31 and len(set(leading)) == len(leading)
        assert case.shape == fit(emitted, case.shape)


@pytest.mark.parametrize("reduce", ("ordered", "atomic"))
def test_an_int_in_a_workspaces_offset_is_seen(reduce: str) -> None:
    schedule = f"{SMALL}split_k parts=3 reduce={reduce}\n"
    outcome = cpu.check(planted(schedule, "workspace[(long long)", "workspace["))
    assert outcome.status == "failed"
    assert "gemm.cu:" in outcome.detail and "workspace has 64 bits" in outcome.detail
    check_widths(subject(schedule).emitted.text, subject(schedule).emitted.interface)


def test_without_address_space_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "can_span", lambda size: False)
    outcome = cpu.check(subject(NAIVE))
    assert outcome.status == "passed" and "none past 2^31 elements" in outcome.detail


@pytest.mark.by_default("load4*")
@pytest.mark.parametrize(
    ("before", "after"),
    (
        ("load4(A_next, A, lda, M,", "load4(A_next, A, lda, N,"),
        (", n, N);", ", n, M);"),
    ),
)
def test_the_first_of_two_places_is_seen(before: str, after: str) -> None:
    """The first tile of a part after its guards; C's columns if it is read."""
    right = subject(PARTS)
    assert right.emitted.text.count(before) == 2
    wrong = right.emitted.text.replace(before, after, 1)
    chosen = [case for case in cases_of(right.emitted) if case.shape not in _default(right)]
    assert cpu.first_complaint(cpu.Caller(right.emitted), wrong, chosen, warn=False) is not None
