"""Kernels that begin before the one in front has ended: no thread touches global memory before it
has waited, and what would let one do so is found."""

from __future__ import annotations

import functools

import pytest
from emitted_kernels import planted

from gemmgen.base.source import Source
from gemmgen.calling.launches import Case
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof import launcher
from gemmgen.proof.calls import Caller
from gemmgen.sim.failures import KernelFailure
from gemmgen.sim.run import CompiledKernel

HEAD = "target sm_90\ngemm C[m, n] = A[k, m] * B[k, n]\n"
TILED = HEAD + "tile m=32 n=32 k=8\ncache_shared A B\nregister_block m=4 n=2\n"
RING = TILED + "double_buffer A B stages=3\n"
SCHEDULES = {
    "naive": HEAD,
    "registers": TILED,
    "vectors past shared memory": HEAD + "register_block m=2 n=2\nvectorize A B width=2\n",
    "cp_async": RING + "async_copy A B via=cp_async\n",
    "tma": RING + "async_copy A B via=tma\n",
    "a producer": RING.replace("k=8", "k=16").replace("m=4 n=2", "m=4 n=2")
    + "async_copy A B via=tma\nwarp_specialize producers=1\n",
    "persistent": RING + "async_copy A B via=cp_async\npersistent\n",
    "parts": TILED + "split_k parts=2\n",
    "boxes of C": RING.replace("A B\nreg", "A B C\nreg")
    + "vectorize C width=4\nasync_copy A B C via=tma\n",
    "staged output": TILED + "cache_shared C\n",
}


@functools.cache
def emitted(name: str) -> Emitted:
    return compile_source(Source(SCHEDULES[name] + "overlap_launch\n", f"{name}.sched"))


def complaint(name: str, text: str | None = None) -> str | None:
    """What a checked run finds wrong."""
    known = emitted(name)
    try:
        kernel = CompiledKernel(
            text or known.text, known.interface, checked=True, warn=text is None
        )
    except KernelFailure as failure:
        return str(failure)
    try:
        wrong = launcher.complaint(known, text or known.text, kernel)
        return wrong or Caller(known).complaint(Case((35, 68, 44), "normal", 0.7, -1.0, 4), kernel)
    except KernelFailure as failure:
        return str(failure)
    finally:
        kernel.close()


@pytest.mark.by_default("a producer")
@pytest.mark.parametrize("name", SCHEDULES)
def test_every_thread_waits_before_it_touches_global_memory(name: str) -> None:
    text = emitted(name).text.partition("---- kernel")[2]
    assert text.count("gg_wait_grid();") == (2 if name == "a producer" else 1)
    assert text.count("gg_launch_dependents();") == 1 and "__restrict__" not in text
    assert complaint(name) is None


def test_barriers_and_indices_come_before_the_wait() -> None:
    front, _, _ = emitted("tma").text.partition("---- kernel")[2].partition("gg_wait_grid();")
    assert "gg_fence_barrier_init();" in front and "tile_m =" in front


def test_without_the_directive_nothing_waits() -> None:
    text = compile_source(Source(SCHEDULES["cp_async"])).text
    assert "grid()" not in text and "cudaLaunchKernelEx" not in text and "__restrict__" in text


WAIT = "gg_wait_grid();"
EARLY = "const float early = A[0]; if (early == 12345.0f) return; " + WAIT
PLANTS = {
    "the wait missing": ("cp_async", WAIT, "", 1, "too early"),
    "the producer's wait missing": ("a producer", WAIT, "", 1, "too early"),
    "the consumers' wait missing": ("a producer", WAIT, "", 2, "too early"),
    "one thread waits for all": ("cp_async", WAIT, "if (tid == 0) " + WAIT, 1, "too early"),
    "boxes asked for before": ("tma", WAIT, "", 1, "too early"),
    "a load in front of the wait": ("registers", WAIT, EARLY, 1, "too early"),
    "a store in front of the wait": (
        "naive",
        WAIT,
        "C[m * ldc + n] = 0.0f; " + WAIT,
        1,
        "too early",
    ),
    "a wait after the first load": (
        "registers",
        WAIT,
        "if (beta != 0.0f && C[0] == 12345.0f) return; " + WAIT,
        1,
        "too early",
    ),
    "pointers that are restricted": (
        "cp_async",
        "const float *A, int lda",
        "const float *__restrict__ A, int lda",
        2,
        "__restrict__",
    ),
    "a launch that does not overlap": (
        "cp_async",
        "overlap.val.programmaticStreamSerializationAllowed = 1;",
        "overlap.val.programmaticStreamSerializationAllowed = 0;",
        1,
        "launch attributes",
    ),
    "no attribute": ("cp_async", "&overlap, 1}", "&overlap, 0}", 1, "launch attributes"),
    "another stream": ("cp_async", "stream, &overlap", "nullptr, &overlap", 1, "stream"),
    "no dynamic memory": (
        "cp_async",
        "0, stream, &overlap",
        "4, stream, &overlap",
        1,
        "dynamic",
    ),
    "an error dropped": (
        "cp_async",
        "return cudaGetLastError();",
        "return cudaSuccess;",
        1,
        "error",
    ),
}


@pytest.mark.by_default("no attribute", "pointers that are restricted")
@pytest.mark.parametrize("plant", PLANTS)
def test_finds(plant: str) -> None:
    name, old, new, nth, kind = PLANTS[plant]
    text = emitted(name).text
    if old == WAIT:
        head, mark, tail = text.partition("---- kernel")
        changed = head + mark + planted(tail, old, new, nth)
    else:
        changed = planted(text, old, new, nth)
    found = complaint(name, changed)
    assert found is not None and kind in found, found


def test_the_dependent_kernel_may_begin_before_the_stores() -> None:
    """It waits for the end of this one before it touches memory, so that where it is asked to begin
    changes when it is set up, and no result."""
    text = emitted("cp_async").text
    head, mark, tail = text.partition("---- kernel")
    early = (
        head
        + mark
        + tail.replace("gg_launch_dependents();", "").replace(
            WAIT, WAIT + " gg_launch_dependents();"
        )
    )
    assert complaint("cp_async", early) is None
