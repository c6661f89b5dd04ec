"""The texts of ``gg_*`` functions compile to the PTX instructions that they are named after."""

from __future__ import annotations

import pytest
from functions import EMITTED, TYPES, texts_of

from gemmgen.base.errors import CannotCheck
from gemmgen.emit import device_functions
from gemmgen.gpu import compiler, sass
from gemmgen.pipeline import compile_source
from gemmgen.schedule import examples
from gemmgen.schedule.read import read_source

pytestmark = pytest.mark.skipif(compiler.available() is not None, reason=str(compiler.available()))


def ptx(text: str, body: str, arch: str) -> str:
    """The PTX of a kernel over ``x`` with this body."""
    kernel = f'extern "C" __global__ void probe(float *x, double *y, int at)\n{{\n{body}\n}}\n'
    compiled = compiler.compile_text(f"{text}\n\n{kernel}", arch)
    assert compiled.spills == 0
    return compiled.ptx


@pytest.mark.by_default("sm_80")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_120"])
def test_all_functions_live_in_one_unit(arch: str) -> None:
    ptx("\n\n".join((*TYPES, *EMITTED)), "", arch)


def test_every_file_is_a_function_or_the_type_of_tensor_maps() -> None:
    files = {path.stem for path in device_functions.FILES.iterdir()}
    functions = {function.file for function in device_functions.FUNCTIONS}
    assert files == {*functions, device_functions.TENSOR_MAP.file}


@pytest.mark.parametrize("arch", ["sm_75", "sm_90a"])
@pytest.mark.parametrize("name", ["xor", "down"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_a_shuffle(name: str, dtype: str, arch: str) -> None:
    (text,) = (t for t in texts_of(f"gg_shuffle_{name}") if ("double" in t) == (dtype == "f64"))
    array = "x" if dtype == "f32" else "y"
    body = f"    {array}[threadIdx.x] = gg_shuffle_{name}({array}[threadIdx.x], at);"
    found = ptx(text, body, arch)
    mode = "bfly" if name == "xor" else "down"
    assert found.count(f"shfl.sync.{mode}.b32") == (1 if dtype == "f32" else 2)


@pytest.mark.proof
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_tensor_cores_get_what_their_schedule_promises(arch: str) -> None:
    """Fragments by ldmatrix, products by HMMA, tiles by cp.async; no other arithmetic."""
    try:
        sass.tool()
    except CannotCheck as missing:
        pytest.skip(str(missing))
    emitted = compile_source(read_source(str(examples.path_of("tensor_core"))))
    compiled = compiler.compile_text(emitted.text, arch)
    assert compiled.spills == 0
    loop = sass.main_loop(sass.disassemble(compiled.cubin))
    assert loop is not None
    # 4 x 4 fragments of a warp, 2 steps a tile, 2 instructions for 16 columns.
    assert sass.count(loop, "HMMA") == 4 * 4 * 2 * 2
    assert sass.count(loop, "LDSM") == (4 + 4) * 2
    assert sass.count(loop, "LDGSTS") == 2 + 4
    assert sass.count(loop, "FFMA", "LDS", "STS", "LDG") <= 3  # ptxas's padding of copies
