"""A box that begins within 16 bytes of a row is an error of TMA, in every model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gemmgen import pipeline
from gemmgen.base.source import Source
from gemmgen.calling.launches import Case
from gemmgen.language import parse_schedule
from gemmgen.passes.residue import Residue
from gemmgen.pipeline import Emitted, compile_schedule, make_concrete
from gemmgen.proof.calls import Caller
from gemmgen.proof.cpu import first_complaint
from gemmgen.proof.equivalence import same_meaning

TYPES = {4: "f32", 2: "bf16"}
"""By the bytes of an element."""


def schedule(size: int) -> str:
    """Its first tile begins at ``K % 32 - 32``, along the rows of A."""
    kind = TYPES[size]
    return f"""\
gemm            C[m, n] = A[m, k] * B[k, n]
dtype           A={kind} B={kind} acc=f32
target          sm_90
tile            m=16 n=32 k=32
cache_shared    A[m, k] B
register_block  m=2 n=4
double_buffer   A B stages=3
async_copy      A B via=tma
residue         k=first
"""


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The pass and the check of the lowered program let any K through."""
    monkeypatch.setattr(Residue, "_check_box", lambda *_: None)
    monkeypatch.setattr(pipeline, "check_box_addresses", lambda *_: None)
    return


def emitted(size: int) -> Emitted:
    return compile_schedule(parse_schedule(Source(schedule(size))))


CALLS = [(4, 36), (4, 33), (4, 30), (2, 40), (2, 36), (2, 9), (2, 18)]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.by_default("2-9")
@pytest.mark.parametrize(("size", "k"), CALLS)
def test_the_emitted_text_is_found(size: int, k: int) -> None:
    known = emitted(size)
    found = first_complaint(Caller(known), known.text, [Case((17, 36, k), "normal", 0.7, -1.0, 4)])
    if k * size % 16 == 0:
        assert found is None
        return
    first = k % 32 - 32
    wanted = f"misaligned: a box that begins with element {first} of a row, at byte {first * size}"
    assert found is not None and wanted in found, found
    assert "gg_load_box_2d(A_shared" in found, found


@pytest.mark.usefixtures("unchecked")
@pytest.mark.by_default("2-9")
@pytest.mark.parametrize(("size", "k"), CALLS)
def test_the_lowered_program_is_found(size: int, k: int) -> None:
    program = emitted(size).program
    found = same_meaning(make_concrete(program), program.problem, (17, 36, k))
    if k * size % 16 == 0:
        assert found is None
        return
    assert found is not None
    assert "no box begins here: no multiple of 16 bytes" in found.text()
