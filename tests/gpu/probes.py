"""Kernels that show what one of the emitted functions does, for a GPU and for its model."""

from __future__ import annotations

from dataclasses import dataclass

from functions import with_functions

from gemmgen.emit.ctypes import STORED
from gemmgen.ir.dtypes import BYTES, DType
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param
from gemmgen.sim.unit import BEGIN, END


@dataclass(frozen=True)
class Probe:
    """A kernel of ``blocks`` blocks of 32 threads: from A of ``read`` elements to C of
    ``written``."""

    body: str
    dtype: DType
    read: int
    written: int
    result: DType = "f32"
    blocks: int = 1

    def text(self) -> str:
        """The kernel under the functions that it calls."""
        kernel = f"""{BEGIN}
extern "C" __global__ void __launch_bounds__(32)
probe(int M, int N, const {STORED[self.dtype]} *__restrict__ A, {STORED[self.result]} *C,
    unsigned *counter)
{{
    const int lane = threadIdx.x;
    if (M < 0 || N < 0) C[0] = counter[0];
{self.body}
}}
{END}"""
        return with_functions(kernel)

    def interface(self) -> Interface:
        tensors = (
            Param("A", "tensor", ("m",), dtype=self.dtype),
            Param("C", "tensor", ("n",), written=True, dtype=self.result),
            Param("counter", "counter", per_tile=1, zeroed=True),
        )
        params = (Param("M", "extent"), Param("N", "extent"), *tensors)
        tiles = (("N", -(-self.written // self.blocks)),)
        return Interface("probe", params, (32, 1), tiles, (), 0, 0, ())


def copies(dtype: DType, size: int) -> Probe:
    """Each lane copies ``size`` bytes; its source has as many as the lane's index, at most all;
    C is what the lane's part of shared memory then holds."""
    elements = size // BYTES[dtype]
    stored = STORED[dtype]
    body = f"""\
    __shared__ alignas(16) {stored} there[32][{elements}];
    for (int e = 0; e < {elements}; ++e) there[lane][e] = A[0];
    __syncthreads();
    gg_copy_async_{size}(&there[lane][0], &A[lane * {elements}], lane < {size} ? lane : {size});
    gg_commit_group();
    gg_wait_group<0>();
    __syncthreads();
    for (int e = 0; e < {elements}; ++e) C[lane * {elements} + e] = there[lane][e];"""
    return Probe(body, dtype, 32 * elements, 32 * elements, dtype)


def groups(pending: int) -> Probe:
    """Four groups of copies; those that a wait for all but ``pending`` awaits are read."""
    body = f"""\
    __shared__ alignas(16) float there[4][32][4];
    for (int group = 0; group < 4; ++group) {{
        gg_copy_async_16(&there[group][lane][0], &A[(group * 32 + lane) * 4], 16);
        gg_commit_group();
    }}
    gg_wait_group<{pending}>();
    __syncthreads();
    for (int group = 0; group < {4 - pending}; ++group) {{
        for (int e = 0; e < 4; ++e) {{
            C[(group * 32 + lane) * 4 + e] = there[group][31 - lane][e];
        }}
    }}
    gg_wait_group<0>();"""
    return Probe(body, "f32", 512, 512)


def counts(last: int) -> Probe:
    """64 blocks count from 0 to ``last`` over and over; C is what each was given."""
    body = f"""\
    if (lane == 0) C[blockIdx.x] = static_cast<float>(gg_count_in(counter, {last}));"""
    return Probe(body, "f32", 1, 64, blocks=64)


def additions(dtype: DType) -> Probe:
    """All threads of 16 blocks add to two numbers."""
    body = f"""\
    gg_add(&C[lane % 2], A[lane] + static_cast<{STORED[dtype]}>(blockIdx.x));"""
    return Probe(body, dtype, 32, 16, dtype, blocks=16)


def bases(dtype: DType) -> Probe:
    """A pointer that stays the same."""
    return Probe("    C[lane] = gg_base(A + 3)[lane];", dtype, 40, 32, dtype)
