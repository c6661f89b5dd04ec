"""C3 looks at the machine code of kernels whose tiles the copy engine copies."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from passes.schedules import CASES

from gemmgen.base.errors import CannotCheck
from gemmgen.base.source import Source
from gemmgen.gpu import compiler, sass
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof import engine_code


@cache
def ring() -> Emitted:
    return compile_source(Source(CASES["the copy engine, read ahead"].text))


@pytest.fixture(autouse=True)
def tools() -> None:
    missing = compiler.available()
    if missing is not None:
        pytest.skip(missing)
    try:
        sass.tool()
    except CannotCheck as none:
        pytest.skip(str(none))


def test_the_ring_has_what_it_promises() -> None:
    assert engine_code.complaint(ring()) is None


def test_a_kernel_without_the_copy_engine_promises_nothing() -> None:
    assert engine_code.complaint(compile_source(Source(CASES["three stages"].text))) is None


@pytest.mark.proof
def test_a_fence_in_the_main_loop_is_found() -> None:
    """As a barrier's scope of the whole GPU would bring one."""
    at = "while (!gg_try_wait(full[stage], phase)) {}"
    text = ring().text.replace(at, f"{at} __threadfence();")
    assert text != ring().text
    found = engine_code.complaint(replace(ring(), text=text))
    assert found is not None and "MEMBAR" in found


def test_loads_that_are_missing_are_found() -> None:
    text = compile_source(Source(CASES["three stages"].text)).text
    found = engine_code.complaint(replace(ring(), text=text))
    assert found is not None and "UTMALDG" in found
