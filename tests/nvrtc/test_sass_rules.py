"""Machine code that is illegal is found, each pattern of it; no example has any."""

from __future__ import annotations

from pathlib import Path

import compilers
import pytest

from gemmgen.base.errors import CannotCheck
from gemmgen.base.source import Source
from gemmgen.gpu import compiler, sass, sass_rules
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof import code_checks
from gemmgen.schedule.read import read_source

from .test_sass import needs_tool

EXAMPLES = Path(__file__).parents[2] / "examples"
LEGAL = """
.text.gemm:
        /*0000*/                   ULDC.64 UR4, c[0x0][0x208] ;
        /*0008*/                   ULDC.64 UR6, c[0x0][0x210] ;
        /*0010*/                   LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;
        /*0020*/                   LDS.64 R10, [R17+UR5+0x10] ;
        /*0030*/                   R2UR P0, UR9, R3 ;
        /*0040*/                   IMAD.WIDE R6, R3, UR9, R8 ;
        /*0050*/                   ISETP.GT.AND P0, PT, R3, UR9, PT ;
        /*0060*/                   {line} ;
        /*0070*/                   EXIT ;
"""
ILLEGAL = {
    "descriptor": "LDGSTS.E.64 [R40+UR4], desc[UR5][R46.64]",
    "address": "LDG.E R4, desc[UR4][R3.64+0x10]",
    "base of addresses": "LDG.E R4, desc[UR4][R3.U32+UR5]",
    "matrix descriptor": "HGMMA.64x64x16.F32.BF16 R24, R4, gdesc[UR5], R24",
    "two matrix descriptors": "HGMMA.64x64x16.F32.BF16 R24, gdesc[UR6].tnspA, R24, UP0",
    "tensor map": "UTMALDG.2D [UR4], [UR9]",
    "vector": "STG.E.128 desc[UR4][R2.64], R6",
    "pair": "DFMA R28, R28, R33.reuse, R4",
    "wide product": "IMAD.WIDE.U32 R8, R2, R123, R9",
    "accumulator": "HMMA.16816.F32.BF16 R28, R40.reuse, R14, R30",
}
"""A line for each rule, with registers that are written."""
MORE = (
    "LDS.128 R6, [R4]",
    "LDS.64 R5, [R4+UR5]",
    "LDSM.16.MT88.4 R6, [R4]",
    "STSM.16.M88.2 [R4], R7",
    "LDC.64 R3, c[0x0][0x210]",
    "ULDC.64 UR5, c[0x0][0x220]",
    "UIADD3.64 UR4, UR5, 0x200, URZ",
    "UIMAD.WIDE UR5, UR4, 0x20, URZ",
    "STL.64 [R1], R9",
    "DSETP.NEU.AND P1, PT, R31, RZ, PT",
    "DMMA.8x8x4 R4, R3.reuse, R28, R4",
    "IMMA.16832.S8.S8 R6, R20.reuse.ROW, R24.COL, R4",
    "UTMASTG.2D [UR4], [UR5]",
    "MOV.64 R11, UR4",
)
UNWRITTEN = ("LDS.128 R4, [R8+UR16]", "LDG.E R4, desc[UR16][R2.64]", "MOV R4, UR11")


def found(line: str) -> list[sass_rules.Violation]:
    return list(sass_rules.violations(sass.parse(LEGAL.format(line=line))["gemm"]))


def test_each_rule_has_a_line_that_breaks_it_and_no_other_line_does() -> None:
    assert set(ILLEGAL) == {rule.name for rule in sass_rules.RULES}
    assert not found("NOP")
    for rule in sass_rules.RULES:
        (violation,) = found(ILLEGAL[rule.name])
        assert violation.why == rule.why
        assert violation.text().startswith(f"0060 {ILLEGAL[rule.name]}: ")


@pytest.mark.parametrize("line", MORE)
def test_every_kind_of_operand_is_looked_at(line: str) -> None:
    assert [violation.instruction.address for violation in found(line)] == [0x60]


@pytest.mark.parametrize("line", UNWRITTEN)
def test_a_uniform_register_that_nothing_writes_is_found(line: str) -> None:
    (violation,) = found(line)
    assert violation.why == sass_rules.UNWRITTEN


def emitted(name: str) -> Emitted:
    return compile_source(Source((EXAMPLES / f"{name}.sched").read_text(), name))


def names() -> list[str]:
    paths = EXAMPLES.rglob("*.sched")
    found = sorted(str(p.relative_to(EXAMPLES).with_suffix("")) for p in paths)
    return [n for n in found if not n.startswith("spaces/")]


@needs_tool
@pytest.mark.by_default("naive")
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", names())
def test_no_example_has_an_illegal_instruction_or_a_note(name: str) -> None:
    """For its own target, and for sm_90, where ptxas was seen to write one; those of ``best``,
    tuned and measured there, for sm_90 alone."""
    kernel = emitted(name)
    measured = compilers.measured_on(kernel.target)
    archs = dict.fromkeys((measured,) if name.startswith("best/") else (kernel.target, measured))
    checked, done = code_checks.checked(kernel, archs)
    assert (checked.errors, checked.notes) == ((), ()), done
    assert done.endswith(f"({', '.join(archs)})")


FOLDED = Path(__file__).parents[1] / "fuzz/regressions/policy_with_a_uniform_address.sched"
"""Swizzled copies by cp.async with a policy: each address is a thread's own part, which does not
change from tile to tile, and the stage's, which a block's threads share."""
SEEN = ("NVRTC 12.9", "NVRTC 13.", "nvcc 12.9", "nvcc 13.")
"""Compilers whose ptxas was seen to write the illegal instruction."""
IN_VECTOR_REGISTER = '    asm("prmt.b32 %0, %0, %0, 0x3210;" : "+r"(to));\n'


@pytest.mark.proof
@needs_tool
def test_copies_with_a_policy_have_a_legal_address() -> None:
    """ptxas merges a uniform part into the address unless another operation comes between."""
    text = compile_source(read_source(str(FOLDED))).text
    assert text.count(IN_VECTOR_REGISTER) == 2
    assert code_checks.legality(text, "sm_90").errors == ()
    errors = code_checks.legality(text.replace(IN_VECTOR_REGISTER, ""), "sm_90").errors
    if not compiler.compiler().name.startswith(SEEN):
        pytest.skip(f"{compiler.compiler().name} was not seen to miscompile it")
    (error,) = errors
    assert "illegal instruction in gemm: " in error and "LDGSTS" in error and "desc[UR" in error


def test_without_a_tool_it_says_that_nothing_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    compilers.needed()

    def missing() -> tuple[str, ...]:
        raise CannotCheck("neither nvdisasm nor cuobjdump is here")

    monkeypatch.setattr(sass, "tool", missing)
    checked, done = code_checks.checked(emitted("tiled"), ("sm_80",))
    assert checked.errors == checked.notes == ()
    assert done == "the machine code was not checked: neither nvdisasm nor cuobjdump is here"
