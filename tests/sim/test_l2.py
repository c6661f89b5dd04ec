"""Hints for the L2 cache: each operand's copies have its own, they change no value, and a policy
that is none is found."""

from __future__ import annotations

import functools
import re

import pytest
from emitted_kernels import planted

from gemmgen.base.source import Source
from gemmgen.calling.launches import Case
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof.calls import Caller
from gemmgen.sim.failures import CompileFailure, KernelFailure
from gemmgen.sim.run import CompiledKernel

COPIED = """
    target sm_90
    gemm C[m, n] = A[k, m] * B[k, n]
    tile m=32 n=64 k=8
    cache_shared A B
    register_block m=4 n=4
    vectorize A B width=4
    double_buffer A B stages=3
"""
SCHEDULES = {
    "cp_async": COPIED + "async_copy A B via=cp_async",
    "narrow": COPIED.replace("width=4", "width=1") + "async_copy A B via=cp_async",
    "tma": COPIED.replace("vectorize A B", "vectorize A.shared B.shared")
    + "async_copy A B via=tma",
}
HINTS = "\nl2 A evict=last\nl2 B evict=first"


@functools.cache
def emitted(name: str, hints: str = HINTS) -> Emitted:
    lines = (line.strip() for line in (SCHEDULES[name] + hints).strip().splitlines())
    return compile_source(Source("\n".join(lines) + "\n", f"{name}.sched"))


def complaint(name: str, text: str | None = None) -> str | None:
    """What a checked run finds wrong."""
    known = emitted(name)
    try:
        kernel = CompiledKernel(
            text or known.text, known.interface, checked=True, warn=text is None
        )
    except CompileFailure as failure:
        return str(failure)
    try:
        return Caller(known).complaint(Case((35, 68, 44), "normal", 0.7, -1.0, 4), kernel)
    except KernelFailure as failure:
        return str(failure)
    finally:
        kernel.close()


def statements(text: str) -> list[str]:
    return re.findall(r"gg_(?:copy_async|load_box)_\w+\([^;]*;", text.partition("---- kernel")[2])


@pytest.mark.by_default("tma")
@pytest.mark.parametrize("name", SCHEDULES)
def test_each_operands_copies_have_its_hint(name: str) -> None:
    found = statements(emitted(name).text)
    assert found and complaint(name) is None
    for statement in found:
        when = "last" if "A_shared" in statement else "first"
        assert statement.endswith(f"gg_evict_{when}());"), statement


@pytest.mark.parametrize("name", SCHEDULES)
def test_nothing_else_changes(name: str) -> None:
    """Without the policies it is the text without the directive."""
    plain, hinted = emitted(name, "").text, emitted(name).text
    kernel = hinted.partition("---- kernel")[2]
    bare = re.sub(r",\s+gg_evict_\w+\(\)", "", re.sub(r";\s+(?:// )?l2 \w evict=\w+", "", kernel))
    assert bare.split() == plain.partition("---- kernel")[2].split()


PLANTS = {
    "not a policy": ("gg_evict_last());", "0ull);", "not a policy"),
    "a policy that is not set": (
        'asm("createpolicy.fractional.L2::evict_last.b64 %0;" : "=l"(policy));',
        "policy = 0;",
        "not a policy",
    ),
    "half a policy": ("unsigned long long policy", "unsigned policy", "deleted"),
    "a hint without a policy": ("%2, %3;", "%2;", "no matching function"),
    "a policy without a hint": (".L2::cache_hint", "", "no matching function"),
    "a policy that is an input": ('"=l"(policy)', '"l"(policy)', "constrained as an input"),
}


@pytest.mark.by_default("a policy that is not set", "a hint without a policy")
@pytest.mark.parametrize("plant", PLANTS)
def test_finds(plant: str) -> None:
    old, new, kind = PLANTS[plant]
    nth = emitted("cp_async").text.count(old) if plant == "half a policy" else 1
    found = complaint("cp_async", planted(emitted("cp_async").text, old, new, nth))
    assert found is not None and kind in found, found
