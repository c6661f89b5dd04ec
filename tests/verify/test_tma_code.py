"""C3 looks at the machine code of kernels whose tiles TMA copies."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import compilers
import pytest
from passes.schedules import CASES

from gemmgen.base.source import Source
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof import tma_code
from gemmgen.proof.code_findings import Findings


@cache
def ring() -> Emitted:
    return compile_source(Source(CASES["TMA, read ahead"].text))


@pytest.fixture(autouse=True)
def tools() -> None:
    compilers.needs_sass()


@pytest.mark.proof
def test_the_ring_has_what_it_promises() -> None:
    assert tma_code.findings(ring()) == Findings()


def test_a_kernel_without_tma_promises_nothing() -> None:
    kernel = compile_source(Source(CASES["three stages"].text))
    assert tma_code.findings(kernel) == Findings()


@pytest.mark.proof
def test_a_fence_in_the_main_loop_is_a_note() -> None:
    """As a barrier's scope of the whole GPU would bring one: slow, and right."""
    at = "while (!gg_try_wait(full[stage], phase)) {}"
    text = ring().text.replace(at, f"{at} __threadfence();")
    assert text != ring().text
    found = tma_code.findings(replace(ring(), text=text))
    assert not found.errors
    assert any("MEMBAR" in note for note in found.notes)


@pytest.mark.proof
def test_loads_that_are_missing_are_found() -> None:
    text = compile_source(Source(CASES["three stages"].text)).text
    errors = tma_code.findings(replace(ring(), text=text)).errors
    assert any("UTMALDG" in error for error in errors)
