"""The goldens compile without a warning, have callers, and give good machine code."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from gemmgen.base.errors import CannotCheck
from gemmgen.base.source import Source
from gemmgen.gpu import compiler, device, sass, sass_loops
from gemmgen.ir.atoms import VIA
from gemmgen.ir.target import SINCE, has, nvcc_flag
from gemmgen.pipeline import compile_source

GOLDEN = Path(__file__).parents[1] / "golden"
CALLERS = Path(__file__).parent / "callers"
NAMES = tuple(sorted(path.stem for path in GOLDEN.glob("*.cu")))
ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a")

needs_compiler = pytest.mark.skipif(
    compiler.available() is not None, reason=compiler.available() or "a compiler is here"
)
needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")


ALONE = re.compile("setmaxnreg|wgmma|multicast::cluster")
"""Instructions of exact targets (sm_90a)."""


def text(name: str) -> str:
    return (GOLDEN / f"{name}.cu").read_text(encoding="utf-8")


def is_for(name: str, arch: str) -> bool:
    """Whether ``arch`` has what the golden's schedule asks for: the features of its target, and
    instructions that only that one has; without a target cp.async and mma.sync, if the text has
    them."""
    stated = re.search(r"^// +target +(sm_(\d+)a?)$", text(name), re.MULTILINE)
    if stated is None:
        asked = ["cp_async"] if "cp.async" in text(name) else []
        asked += [atom for atom in VIA["mma"] if f"gg_mma_{atom}" in text(name)]
        return all(has(arch, SINCE.get(feature, 0)) for feature in asked)
    return arch == stated[1] if ALONE.search(text(name)) else has(arch, int(stated[2]))


def chosen(name: str) -> list[str]:
    """The first architecture, sm_80, sm_90 (sm_90a of a golden for that alone, and of every third)
    and one of sm_86 and sm_89 by turns."""
    found, at = [arch for arch in ARCHITECTURES if is_for(name, arch)], NAMES.index(name)
    turns = ("sm_86", "sm_89")[at % 2], "sm_90a" if at % 3 == 0 else found[0]
    return [arch for arch in found if arch in (found[0], "sm_80", "sm_90", *turns)]


@pytest.mark.by_default("vectorized-sm_90")
@needs_compiler
@pytest.mark.parametrize(
    ("name", "arch"), [(name, arch) for name in NAMES for arch in chosen(name)]
)
def test_nvrtc_compiles_it_without_a_warning(name: str, arch: str) -> None:
    compiled = compiler.reported(text(name), arch)
    # A few registers may spill where two blocks share a multiprocessor.  An array of sums or
    # fragments that is indexed at run time would take hundreds of bytes of slow memory.
    assert compiled.spills <= 64 and compiled.stack <= 64


def nvcc(*arguments: str, folder: Path, arch: str = "sm_80") -> None:
    command = ["nvcc", "-std=c++17", nvcc_flag(arch), "-Werror", "all-warnings"]
    done = subprocess.run([*command, *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout


@pytest.mark.proof
@needs_nvcc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_nvcc_compiles_all_without_a_warning(arch: str, tmp_path: Path) -> None:
    """All goldens in one unit, each in a namespace, for one start of nvcc: what sm_80 has not is
    compiled for sm_90a."""
    units = [
        f'#define gemm {name}_gemm\nnamespace {name} {{\n#include "{GOLDEN / name}.cu"\n}}\n'
        "#undef gemm\n"
        for name in NAMES
        if is_for(name, "sm_80") == (arch == "sm_80")
    ]
    (tmp_path / "all.cu").write_text("".join(units))
    nvcc("-c", "-Xcompiler", "-Wall", "all.cu", "-o", "all.o", folder=tmp_path, arch=arch)


@pytest.mark.proof
@needs_nvcc
@pytest.mark.parametrize("name", sorted(path.stem for path in CALLERS.glob("*.cu")))
def test_a_caller_is_written_from_the_comment_alone(name: str, tmp_path: Path) -> None:
    nvcc(str(CALLERS / f"{name}.cu"), str(GOLDEN / f"{name}.cu"), "-o", name, folder=tmp_path)
    missing = device.missing()
    if missing is None:
        subprocess.run([tmp_path / name], check=True)


# Machine code.


def _find_tool() -> str | None:
    """None where machine code can be read; the wheel's nvdisasm counts."""
    wheel = importlib.util.find_spec("nvidia")
    for place in wheel.submodule_search_locations or () if wheel else ():
        for folder in Path(place).glob("*/bin"):
            os.environ["PATH"] += os.pathsep + str(folder)
    try:
        sass.tool()
    except CannotCheck as missing:
        return str(missing)
    return compiler.available()


WITHOUT_TOOL = _find_tool()
needs_sass = pytest.mark.skipif(WITHOUT_TOOL is not None, reason=WITHOUT_TOOL or "nvdisasm is here")


@functools.cache
def code(name: str, arch: str) -> sass.Code:
    return sass.disassemble(compiler.compile_text(text(name), arch).cubin)


@pytest.mark.by_default("vectorized-sm_90")
@needs_sass
@pytest.mark.parametrize("arch", ("sm_80", "sm_90"))
@pytest.mark.parametrize("name", ("double_buffered", "vectorized"))
def test_the_next_tile_is_loaded_before_the_arithmetic_and_stored_after(
    name: str, arch: str
) -> None:
    loop = sass_loops.main_loop(code(name, arch))
    assert loop is not None
    assert sass.count(loop, "LDG") and sass.count(loop, "STS") and sass.count(loop, "FFMA")
    assert sass.overlap(loop) >= 0.8


@pytest.mark.by_default("sm_80")
@needs_sass
@pytest.mark.parametrize("arch", ("sm_75", "sm_80", "sm_90"))
def test_the_vectorized_kernel_moves_16_bytes_at_a_time(arch: str) -> None:
    instructions = code("vectorized", arch)
    for opcode in ("LDG", "LDS", "STG", "STS"):
        wide = [i for i in instructions if i.is_a(opcode) and ".128" in i.opcode]
        assert wide, opcode


@pytest.mark.proof
@needs_sass
@pytest.mark.parametrize("arch", ("sm_80", "sm_86", "sm_90"))
def test_asynchronous_copies_pass_through_no_register(arch: str) -> None:
    """LDGSTS moves 16 bytes at a time past L1, fills with zeros by itself, and is waited for after
    most of the arithmetic; the same schedule without the directive loads and stores."""
    loop = sass_loops.main_loop(code("async_copy", arch))
    assert loop is not None
    copies = [i for i in loop if i.is_a("LDGSTS")]
    assert copies and all({"BYPASS", "128", "ZFILL"} <= set(i.opcode.split(".")) for i in copies)
    assert sass.count(loop, "LDG", "STS") == 0
    assert sass.count(loop, "LDGDEPBAR") == sass.count(loop, "DEPBAR") == 1
    assert sass.overlap(loop) >= 0.7
    lines = (GOLDEN.parents[1] / "examples" / "async_copy.sched").read_text("utf-8").splitlines()
    without = "\n".join(line for line in lines if not line.startswith("async_copy"))
    plain = compiler.compile_text(compile_source(Source(without)).text, arch).cubin
    loop = sass_loops.main_loop(sass.disassemble(plain))
    assert loop is not None
    assert sass.count(loop, "LDGSTS") == 0 and sass.count(loop, "LDG") and sass.count(loop, "STS")


@pytest.mark.by_default("2")
@needs_sass
@pytest.mark.parametrize("width", (1, 2))
def test_narrow_asynchronous_copies_are_of_their_width(width: int) -> None:
    schedule = (
        "tile m=32 n=32 k=8\ncache_shared A B\nregister_block m=4 n=4\n"
        f"vectorize A.global B.global width={width}\ndouble_buffer A B\n"
        "async_copy A B via=cp_async\n"
    )
    emitted = compile_source(Source(schedule))
    instructions = sass.disassemble(compiler.compile_text(emitted.text, "sm_80").cubin)
    copies = [i for i in instructions if i.is_a("LDGSTS")]
    assert copies and all(("64" in i.opcode.split(".")) == (width == 2) for i in copies)
    assert not any("128" in i.opcode for i in copies)


@needs_sass
def test_the_single_buffered_kernel_shows_that_the_check_can_fail() -> None:
    loop = sass_loops.main_loop(code("tiled", "sm_80"))
    assert loop is not None and sass.overlap(loop) < 0.5
