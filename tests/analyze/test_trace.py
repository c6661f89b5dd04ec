"""A text gives its kernel and the changes of its passes, or its mistakes and where they are."""

from __future__ import annotations

import pytest

from gemmgen.analyze.trace import trace
from gemmgen.base.errors import ScheduleError
from gemmgen.base.source import Source
from gemmgen.pipeline import compile_source
from gemmgen.schedule import examples
from tests.cli.running import gemmgen

GEMM = "gemm C[m, n] = A[m, k] * B[k, n]\n"


@pytest.mark.parametrize("name", ("naive", "warp_tiled", "hopper/pingpong"))
def test_a_trace_has_the_text_of_emit_and_the_differences_of_show(name: str) -> None:
    path = examples.path_of(name)
    found = trace(Source(path.read_text(), str(path)))
    assert found.kernel is not None
    assert (found.mistakes, found.report) == ((), "")
    assert found.kernel.emitted.text == gemmgen("emit", str(path)).stdout
    first, *rest = found.changes
    shown = "\n".join([f"== {first.directive}\n{first.text}", *(c.text for c in rest)])
    assert shown == gemmgen("show", str(path), "--diff").stdout


def test_mistakes_are_returned_with_their_places() -> None:
    source = Source(GEMM + "tile m=0 n=64 k=8\nvectorise A\n", "mine.sched")
    found = trace(source)
    assert found.kernel is None
    assert [(m.line, m.column, m.length) for m in found.mistakes] == [(2, 8, 1), (3, 1, 9)]
    assert all(m.message and m.hint for m in found.mistakes)
    with pytest.raises(ScheduleError) as raised:
        compile_source(source)
    assert found.report == str(raised.value)


def test_a_text_without_a_gemm_line_has_a_mistake() -> None:
    found = trace(Source(""))
    assert found.kernel is None
    assert found.mistakes and found.report
