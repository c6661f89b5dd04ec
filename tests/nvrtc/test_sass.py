from pathlib import Path

import pytest
from gpu import kernels

from gemmgen.base.errors import CannotCheck
from gemmgen.gpu import compiler, sass, sass_loops

LISTING = """
.text.gemm:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_0:
        /*0010*/                   LDG.E.128.CONSTANT R4, desc[UR6][R2.64] ;
        /*0020*/                   FFMA R8, R9.reuse, R10, R8 ;
        /*0030*/                   FFMA R8, R9, R11, R8 ;
        /*0040*/                   STS.128 [R20], R4 ;
        /*0050*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*0060*/               @P1 BRA `(.L_x_0) ;
        /*0070*/                   EXIT ;
.L_x_1:
        /*0080*/                   BRA `(.L_x_1);
"""


def tool_is_missing() -> str:
    try:
        sass.tool()
    except CannotCheck as why:
        return str(why)
    return "" if compiler.available() is None else str(compiler.available())


needs_tool = pytest.mark.skipif(bool(tool_is_missing()), reason=tool_is_missing())


def test_instructions_are_read_with_guards_and_targets() -> None:
    code = sass.parse(LISTING)["gemm"]
    assert len(code) == 9
    assert code[6] == sass.SassInstruction(0x60, "BRA", "`(.L_x_0)", "@P1", 0x10)
    assert code[1].is_a("LDG") and not code[1].is_a("LDGSTS")


def test_both_tools_are_read_alike() -> None:
    dump = "\t\tFunction : gemm\n" + LISTING.replace(".text.gemm:", "").replace(
        "`(.L_x_0)", "0x10"
    ).replace("`(.L_x_1)", "0x80").replace(";\n", "; /* 0x00000a00ff017b82 */\n")
    plain, dumped = sass.parse(LISTING)["gemm"], sass.parse(dump)["gemm"]
    assert [(i.address, i.opcode, i.target) for i in plain] == [
        (i.address, i.opcode, i.target) for i in dumped
    ]


def test_counts_and_reuse() -> None:
    code = sass.parse(LISTING)["gemm"]
    assert sass.count(code, "FFMA") == 2
    assert sass.count(code, "LDG.E.128") == 1
    assert sass.reuse_share(code) == 0.5


def test_the_loop_is_found_and_the_trap_at_the_end_is_none() -> None:
    code = sass.parse(LISTING)["gemm"]
    (body,) = sass_loops.loops(code)
    assert [body[0].address, body[-1].address] == [0x10, 0x60]
    assert sass_loops.main_loop(code) == body
    assert sass.overlap(body) == 1.0


def test_a_copy_before_the_arithmetic_overlaps_nothing() -> None:
    lines = LISTING.splitlines()
    lines.insert(5, lines.pop(7))  # the store right after the load
    (body,) = sass_loops.loops(sass.parse("\n".join(lines))["gemm"])
    assert sass.overlap(body) == 0.0


@pytest.mark.proof
@needs_tool
def test_double_buffering_puts_arithmetic_between_loads_and_stores() -> None:
    def share(name: str) -> float:
        cubin = compiler.compile_text(kernels.text(name), "sm_90").cubin
        body = sass_loops.main_loop(sass.disassemble(cubin))
        assert body is not None
        return sass.overlap(body)

    assert share("double_buffered") > 0.5
    assert share("vectorized") > 0.9
    assert share("tiled") == 0.0


@pytest.mark.proof
@needs_tool
def test_wide_accesses_show() -> None:
    code = sass.disassemble(
        compiler.compile_text(kernels.text("vectorized"), "sm_90").cubin, "gemm"
    )
    assert sass.count(code, "LDS.128") > 0
    assert sass.count(code, "LDG.E.128", "LDG.E.128.CONSTANT") > 0


@pytest.mark.proof
@needs_tool
def test_a_cubin_is_listed_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The next process finds the listing, and another tool does not."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    tool = sass.tool()
    cubin = compiler.compile_text(kernels.text("naive"), "sm_90").cubin
    listed = sass._functions.__wrapped__  # pyright: ignore[reportPrivateUsage]
    first = listed(cubin, tool)
    monkeypatch.setattr(sass, "_listing", lambda path, command: LISTING)
    assert listed(cubin, tool) == first
    other = tmp_path / "nvdisasm"
    other.write_text("")
    assert listed(cubin, (str(other), *tool[1:])) == sass.parse(LISTING) != first


def test_a_missing_tool_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(command: str, path: str) -> None:
        return None

    monkeypatch.setattr(sass.shutil, "which", nothing)
    with pytest.raises(CannotCheck, match="cuda-nvdisasm"):
        sass.tool()
