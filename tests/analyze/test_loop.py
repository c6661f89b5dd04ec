"""The figures of ``explain`` about the main loop's machine code, also without a disassembler."""

from __future__ import annotations

import pytest

from gemmgen.analyze import resources
from gemmgen.analyze.explain import Explanation, explain
from gemmgen.analyze.figures import as_figures, as_json
from gemmgen.analyze.loop import LoopCode, measured
from gemmgen.analyze.tables import report
from gemmgen.base.errors import CannotCheck
from gemmgen.base.source import Source
from gemmgen.gpu import compiler, sass
from gemmgen.gpu.gpus import GPUS
from gemmgen.language import parse_schedule

LISTING = """
.text.gemm:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_0:
        /*0010*/                   LDG.E.128.CONSTANT R4, desc[UR6][R2.64] ;
        /*0020*/                   FFMA R8, R9.reuse, R10.reuse, R8 ;
        /*0030*/                   FFMA R8, R9, R11.reuse, R8 ;
        /*0040*/                   FFMA R8, R9, R11, R8 ;
        /*0050*/                   IMAD R8, R9.reuse, R11, R8 ;
        /*0060*/               @P1 BRA `(.L_x_0) ;
        /*0070*/                   EXIT ;
"""
BLOCKED = """
tile            m=128 n=128 k=8
cache_shared    A[k, m] B
register_block  m=8 n=8 order={}
vectorize       A B C width=4
launch_bounds   blocks=1
"""


def explained(order: str = "rows") -> Explanation:
    return explain(parse_schedule(Source(BLOCKED.format(order))), (512, 512, 512), GPUS["H200"])


def row(explanation: Explanation) -> str:
    (section,) = (s for s in report(explanation) if s.title == "resources")
    return next(cells[1] for cells in section.rows if cells[0] == "main loop")


def missing() -> str:
    try:
        sass.tool()
    except CannotCheck as why:
        return str(why)
    return str(compiler.available() or "")


def test_multiply_adds_are_distinguished_from_the_rest_and_marks_counted() -> None:
    found = measured(sass.parse(LISTING)["gemm"])
    assert found == LoopCode("FFMA", 3, 3, 2 / 3, 3 / 9)


def test_code_without_a_loop_has_no_figures() -> None:
    assert measured(sass.parse(LISTING.replace("BRA `(.L_x_0)", "NOP"))["gemm"]) is None


@pytest.mark.proof
@pytest.mark.skipif(bool(missing()), reason=missing())
def test_the_order_of_the_fmas_shows() -> None:
    rows, serpentine = (explained(order).resources.loop for order in ("rows", "serpentine"))
    assert rows is not None and serpentine is not None
    assert rows.count == serpentine.count == 8 * 8 * 8
    assert serpentine.operands > rows.operands
    assert row(explained()).startswith(f"512 FFMA and {rows.others} other instructions (")
    assert rows.code == 16 * (512 + rows.others)
    assert as_figures(explained())["main loop: FFMA"] == "512"


def test_a_machine_without_the_tool_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(cubin: bytes) -> LoopCode | None:
        raise CannotCheck("nvdisasm is not here")

    monkeypatch.setattr(resources, "loop_code", nothing)
    found = explained()
    if found.resources.registers is not None:
        assert row(found) == "not available: nvdisasm is not here"
        assert as_json(found)["resources"]["main_loop"] is None  # type: ignore[index]


def test_a_machine_without_nvrtc_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(text: str, arch: str) -> None:
        raise CannotCheck("NVRTC is not installed")

    monkeypatch.setattr(resources, "compile_text", nothing)
    assert row(explained()) == "not available: NVRTC is not installed"
    assert "main loop: FFMA" not in as_figures(explained())
