"""The texts of ``gg_*`` functions compile to the PTX instructions that they are named after."""

from __future__ import annotations

import re

import pytest
from functions import EMITTED, TYPES, texts_of

from gemmgen.base.errors import CannotCheck
from gemmgen.emit import device_function, device_functions, warpgroup_functions
from gemmgen.gpu import compiler, sass, sass_loops
from gemmgen.ir.dtypes import DType
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
    files = {path.stem for path in device_function.FILES.iterdir()}
    functions = {function.file for function in device_functions.FUNCTIONS}
    assert files == {*functions, device_functions.TENSOR_MAP.file}


WGMMA = """    __shared__ alignas(1024) unsigned short tiles[2][256][64];
    float sums[2][%(n)d / 4];
    const unsigned long long a = gg_matrix_128B(tiles[0]), b = gg_matrix_128B(tiles[1]);
    gg_wgmma_fence();
    gg_wgmma_m64n%(n)dk16_%(dtype)s%(transposed)s(sums[0], sums[1], a, b, 0);
    gg_wgmma_m64n%(n)dk16_%(dtype)s%(transposed)s(sums[0], sums[1], a + 2, b + 2, at);
    gg_wgmma_commit();
    gg_wgmma_wait<1>();
    gg_wgmma_end(sums);
#pragma unroll
    for (int i = 0; i < %(n)d / 2; ++i) {
        x[threadIdx.x * %(n)d / 2 + i] = sums[i / (%(n)d / 4)][i %% (%(n)d / 4)];
    }
"""


@pytest.mark.by_default("24-bf16-transposed0")
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("n", [8, 24, 256])
def test_a_warpgroup_multiplies(n: int, dtype: DType, transposed: tuple[bool, bool]) -> None:
    function = warpgroup_functions.multiply(n, (dtype, dtype, "f32"), transposed).text()
    assert max(map(len, function.split("\n"))) <= 100
    (suffix,) = re.findall(rf"k16_{dtype}(\w*)\(", function)
    text = "\n\n".join((*TYPES, *EMITTED, *([] if function in EMITTED else [function])))
    found = ptx(text, WGMMA % {"n": n, "dtype": dtype, "transposed": suffix}, "sm_90a")
    assert found.count(f"m64n{n}k16.f32.{dtype}.{dtype}") == 2
    order = ("fence", "mma_async", "mma_async", "commit_group", "wait_group", "wait_group")
    assert re.findall(r"wgmma\.(\w+)\.sync", found) == list(order)


@pytest.mark.by_default("4-True")
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_warp_stores_matrices(count: int, transposed: bool) -> None:
    function = warpgroup_functions.stmatrix(count, transposed)
    text = "\n\n".join(each.text() for each in (*function.needs, function))
    body = "    __shared__ alignas(16) unsigned short rows[64][8];\n"
    body += "    alignas(16) unsigned short pairs[8] = {};\n"
    body += f"    gg_stmatrix_x{count}{'_trans' * transposed}(rows[threadIdx.x], pairs);"
    found = ptx(text, body, "sm_90a")
    assert f"stmatrix.sync.aligned.m8n8.x{count}{'.trans' * transposed}.shared.b16" in found


@pytest.mark.by_default("f32-xor-sm_75", "f32-down-sm_90a", "f64-down-sm_75", "f64-xor-sm_90a")
@pytest.mark.parametrize("arch", ["sm_75", "sm_90a"])
@pytest.mark.parametrize("name", ["xor", "down"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_a_shuffle(name: str, dtype: str, arch: str) -> None:
    kind = "double" if dtype == "f64" else "float"
    (text,) = (t for t in texts_of(f"gg_shuffle_{name}") if f"{kind} gg_shuffle" in t)
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
    loop = sass_loops.main_loop(sass.disassemble(compiled.cubin))
    assert loop is not None
    # 4 x 4 fragments of a warp, 2 steps a tile, 2 instructions for 16 columns.
    assert sass.count(loop, "HMMA") == 4 * 4 * 2 * 2
    assert sass.count(loop, "LDSM") == (4 + 4) * 2
    assert sass.count(loop, "LDGSTS") == 2 + 4
    assert sass.count(loop, "FFMA", "LDS", "STS", "LDG") <= 3  # ptxas's padding of copies
