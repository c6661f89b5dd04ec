"""Kernels of every type: goldens that are run, each directive with each type, what is emitted."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from gemmgen.base.source import Source
from gemmgen.gpu import compiler
from gemmgen.language import fmt_source
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof import compiled, cpu, meaning, round_trip
from gemmgen.proof.outcome import Outcome, Subject

from .schedules import EVERY, SOME, TYPES, text

FOLDER = Path(__file__).parents[2] / "examples" / "types"
EXAMPLES = sorted(path.stem for path in FOLDER.glob("*.sched"))
RAGGED = ((1, 1, 1), (33, 67, 35), (5, 70, 16), (40, 9, 0))


def source(name: str) -> Source:
    return Source((FOLDER / f"{name}.sched").read_text(encoding="utf-8"), f"{name}.sched")


def proved(outcome: Outcome) -> None:
    assert outcome.status == "passed", outcome.detail or outcome.reason


def test_there_is_an_example_of_every_type() -> None:
    stated = "".join(source(name).text for name in EXAMPLES)
    assert all(f"={dtype}" in stated for dtype in ("f64", "f16", "bf16", "f32"))


@pytest.mark.by_default("bf16")
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_golden_is_what_is_emitted_and_right(
    name: str, golden: Callable[[str, str], str]
) -> None:
    emitted = compile_source(source(name))
    assert emitted.text == golden(f"types/{name}.cu", emitted.text)
    for layer in (round_trip, meaning, cpu):
        proved(layer.check(Subject(emitted)))
    assert fmt_source(source(name)) == source(name).text


@pytest.mark.by_default("bf16")
@pytest.mark.parametrize("name", EXAMPLES)
def test_compiles_without_a_warning(name: str) -> None:
    """For the oldest architecture that can run it, and for a new one."""
    missing = compiler.available()
    if missing is not None:
        pytest.skip(missing)
    kernel = compile_source(source(name))
    known = compiled.architectures(kernel)
    newer = any(f"={dtype}" in source(name).text for dtype in ("bf16", "e4m3", "e5m2"))
    assert ("sm_75" in known) == (not newer)
    for arch in {known[0], "sm_90"}:
        assert compiler.reported(kernel.text, arch).spills == 0


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize(("schedule", "types"), SOME)
def test_each_directive_takes_each_type(schedule: str, types: str) -> None:
    emitted = compile_source(Source(text(schedule, types)))
    proved(round_trip.check(Subject(emitted)))
    proved(meaning.check(Subject(emitted, ((3, 5, 7), (33, 67, 17)))))
    proved(cpu.check(Subject(emitted, RAGGED)))


@functools.cache
def emitted(schedule: str, types: str) -> Emitted:
    return compile_source(Source(text(schedule, types)))


@pytest.mark.proof
def test_nothing_is_included() -> None:
    for schedule, types in EVERY:
        assert "#include" not in emitted(schedule, types).text


@pytest.mark.proof
def test_functions_stand_only_where_they_are_used() -> None:
    for schedule, types in EVERY:
        whole = emitted(schedule, types).text
        head, _, kernel = whole.partition("// ---- kernel ----")
        for function in ("gg_from_f16", "gg_to_f16", "gg_from_bf16", "gg_to_bf16"):
            assert (f"{function}(" in head) == (f"{function}(" in kernel), (schedule, types)


def test_f64_text_computes_nothing_in_single_precision() -> None:
    for schedule in ("naive", "wide", "epilogue", "asynchronous"):
        whole = emitted(schedule, "f64").text
        kernel = whole.partition("// ---- kernel ----")[2]
        assert "float" not in kernel and "fmaf" not in kernel and "f," not in kernel
        assert "double alpha" in whole or schedule == "epilogue"


def test_copies_to_shared_memory_convert_nothing() -> None:
    """Tiles and staging registers hold the bits of the matrix."""
    whole = emitted("wide", "f16").text
    assert "unsigned short A_shared[2][BK][BM]" in whole
    assert "unsigned short A_next[A_VECTORS][VEC], B_next[B_VECTORS][VEC]" in whole
    stores = [line for line in whole.splitlines() if "_shared[next_stage]" in line and "=" in line]
    assert stores and not any("gg_" in line for line in stores)


def test_a_result_is_rounded_once() -> None:
    whole = emitted("wide", "f16").text
    assert whole.count("gg_to_f16(") == 2, "its definition, and the store"


def test_alignment_is_reported_in_bytes_of_the_type() -> None:
    for types, aligned in (("f64", 16), ("f16", 16), ("f16 times f32", 16)):
        lines = emitted("wide", types).text.splitlines()
        (message,) = (line for line in lines if "aligned to" in line and "B" in line)
        assert f"aligned to {aligned} bytes" in message
    halves = emitted("wide", "f16 times f32").text
    assert "A aligned to 8 bytes" in halves and "B, C aligned to 16 bytes" in halves
    assert "lda % 4 == 0" in halves and "lda % 8 == 0" in emitted("wide", "f16").text


@pytest.mark.parametrize("types", list(itertools.islice(TYPES, 3)))
def test_names_of_the_text_are_kept(types: str) -> None:
    """A tensor can't be called what the text calls its raw elements."""
    from gemmgen.base.errors import ScheduleError

    with pytest.raises(ScheduleError, match="the emitted text's name for part of A"):
        compile_source(Source(f"{TYPES[types][0]}\nfuse_epilogue acc + A_raw[n]"))


@pytest.mark.proof
def test_arrays_of_dynamic_memory_begin_where_wide_accesses_can() -> None:
    """An odd tile before a wide one leaves a gap."""
    odd = (
        "tile m=128 n=256 k={k}\ncache_shared A[k, m] B\nregister_block m=8 n=16\npad A by=1\n"
        "vectorize B width={w}\ndouble_buffer A B stages=3"
    )
    for types, k, width in (("", 13, 4), ("dtype A=f16 B=bf16 C=f16\n", 27, 8)):
        kernel = compile_source(Source(types + odd.format(k=k, w=width)))
        assert "+ 15) / 16 * 16" in kernel.text and kernel.interface.dynamic_shared % 16 == 0
        proved(cpu.check(Subject(kernel, ((33, 67, 3 * k + 1),))))
