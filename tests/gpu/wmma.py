"""A kernel of one warp that multiplies 16 x 16 x K on tensor cores, for the model and for a GPU."""

from __future__ import annotations

from dataclasses import dataclass

from functions import with_functions

from gemmgen.emit.ctypes import REGISTERS
from gemmgen.ir.arithmetic import Arithmetic
from gemmgen.ir.dtypes import DType
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param
from gemmgen.ir.tensor_core_rules import rule_of
from gemmgen.sim.unit import BEGIN, END


def interface(dtype: DType, target: str = "sm_80") -> Interface:
    """M = N = 16; A and B have consecutive rows and columns, K elements apart. Products are added
    as tensor cores of ``target`` do."""
    params = (
        *(Param(extent, "extent") for extent in "KMN"),
        Param("A", "tensor", ("m", "k"), dtype=dtype),
        Param("B", "tensor", ("n", "k"), dtype=dtype),
        Param("C", "tensor", ("m", "n"), written=True),
        Param("ldc", "ld"),
    )
    pitches = (("A", "K"), ("B", "K"), ("C", "ldc"))
    arithmetic = Arithmetic(rule_of(target, "wmma", dtype))
    return Interface("wmma", params, (32, 1), (), (), 0, 0, pitches, arithmetic=arithmetic)


DEPTH, PITCH = 64, 24
"""The greatest K; elements between lines of 16 in shared memory."""


@dataclass(frozen=True)
class Variant:
    """How A, B and the accumulators lie: by rows or by columns."""

    a: str
    b: str
    c: str
    dtype: DType

    def text(self) -> str:
        """C += A * B; A is read by lines of its layout (i, or k, slowest), so is B."""
        a_at = "k * PITCH" if self.a == "col" else "k"
        b_at = "k * PITCH" if self.b == "row" else "k"
        a_lines = "DEPTH][PITCH" if self.a == "col" else "16][DEPTH + 8"
        b_lines = "DEPTH][PITCH" if self.b == "row" else "16][DEPTH + 8"
        a_pitch = "PITCH" if self.a == "col" else "DEPTH + 8"
        b_pitch = "PITCH" if self.b == "row" else "DEPTH + 8"
        a_line = "A_shared[i % K][i / K]" if self.a == "col" else "A_shared[i / K][i % K]"
        b_line = "B_shared[i % K][i / K]" if self.b == "row" else "B_shared[i / K][i % K]"
        there = "x * 20 + y" if self.c == "row" else "y * 20 + x"
        layouts = f"{self.a}_{self.b}_{self.dtype}"
        count = REGISTERS[self.dtype]
        return with_functions(f"""{BEGIN}
constexpr int DEPTH = {DEPTH}, PITCH = {PITCH};

extern "C" __global__ void __launch_bounds__(32)
    wmma(int K, int M, int N, const unsigned short *A, const unsigned short *B, float *C, int ldc)
{{
    __shared__ alignas(32) unsigned short A_shared[{a_lines}];
    __shared__ alignas(32) unsigned short B_shared[{b_lines}];
    __shared__ alignas(32) float sums[16 * 20];
    const int lane = threadIdx.x;
    for (int i = lane; i < 16 * K; i += 32) {{
        {a_line} = A[i];
        {b_line} = B[i];
    }}
    __syncthreads();
    unsigned A_frag[{count}], B_frag[{count}];
    float acc[8] = {{}};
    for (int k = 0; k < K; k += 16) {{
        gg_wmma_load_a_{self.a}_{self.dtype}(A_frag, &A_shared[0][0] + {a_at}, {a_pitch});
        gg_wmma_load_b_{self.b}_{self.dtype}(B_frag, &B_shared[0][0] + {b_at}, {b_pitch});
        gg_wmma_multiply_{layouts}(acc, A_frag, B_frag);
    }}
    gg_wmma_store_{self.c}(sums, acc, 20);
    __syncwarp();
    for (int i = lane; i < 256; i += 32) {{
        const int x = i / 16, y = i % 16;
        C[x * ldc + y] += sums[{there}];
    }}
}}
{END}
""")
