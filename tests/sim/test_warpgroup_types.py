"""Warpgroups multiply operands of 8 and of 32 bits on the CPU, and compilers take the text."""

from __future__ import annotations

from pathlib import Path

import compilers
import numpy as np
import pytest
from functions import with_functions

from gemmgen.base.record import record
from gemmgen.gpu import compiler
from gemmgen.ir.arithmetic import Arithmetic
from gemmgen.ir.atoms import Atom
from gemmgen.ir.dtypes import DType
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param
from gemmgen.ir.tensor_core_rules import rule_of
from gemmgen.numerics.formats import stored
from gemmgen.sim.run import compile_kernel

SOURCE = Path(__file__).with_name("warpgroup_types.cu")


@record
class Variant:
    """Types of the operands, in C and in memory, and the instruction."""

    a: DType
    b: DType
    operand: str
    product: str

    @property
    def accumulators(self) -> DType:
        return "i32" if self.a == "i8" else "f32"

    def text(self) -> str:
        source = SOURCE.read_text(encoding="utf-8")
        source = source.replace("MULTIPLY", f"gg_wgmma_m64n32{self.product}")
        source = source.replace("SUM", "int" if self.accumulators == "i32" else "float")
        return with_functions(source.replace("OPERAND", self.operand))

    def interface(self) -> Interface:
        params = (
            *(Param(extent, "extent") for extent in "MNK"),
            *(Param("A", "tensor", ("m", "k"), dtype=self.a), Param("lda", "ld")),
            *(Param("B", "tensor", ("n", "k"), dtype=self.b), Param("ldb", "ld")),
            Param("C", "tensor", ("m", "n"), written=True, read=False, dtype=self.accumulators),
            Param("ldc", "ld"),
        )
        pitch = (("A", "lda"), ("B", "ldb"), ("C", "ldc"))
        tiles = (("M", 64), ("N", 32))
        sizes = tiles, (), 0, 0, pitch
        atom: Atom = "m64nNk8" if self.a == "f32" else "m64nNk32"
        rule = rule_of("sm_90a", atom, "tf32" if self.a == "f32" else self.a)
        arithmetic = Arithmetic(rule)
        return Interface("warpgroup_types", params, (128, 1), *sizes, arithmetic=arithmetic)


VARIANTS = (
    Variant("f32", "f32", "float", "k8_tf32"),
    Variant("i8", "i8", "signed char", "k32_i8"),
    Variant("e4m3", "e4m3", "unsigned char", "k32_e4m3"),
    Variant("e5m2", "e5m2", "unsigned char", "k32_e5m2"),
    Variant("e4m3", "e5m2", "unsigned char", "k32_e4m3_e5m2"),
    Variant("e5m2", "e4m3", "unsigned char", "k32_e5m2_e4m3"),
)


def name_of(variant: Variant) -> str:
    return variant.product


@pytest.mark.by_default("k32_e4m3_e5m2")
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("variant", VARIANTS, ids=name_of)
def test_sums_are_exact(variant: Variant) -> None:
    kernel = compile_kernel(variant.text(), variant.interface(), checked=True)
    rng = np.random.default_rng(1)
    m, n, k = 70, 37, 150
    a, b = (rng.integers(-3, 4, (side, k)).astype(np.float32) for side in (m, n))
    kept = {"A": _kept(a, variant.a), "B": _kept(b, variant.b)}
    c = np.zeros((m, n), np.int32 if variant.accumulators == "i32" else np.float32)
    sizes = {"M": m, "N": n, "K": k, "lda": k, "ldb": k, "ldc": n}
    for landing in ("early", "late"):
        kernel.run({**sizes, **kept, "C": c}, order="shuffled", landing=landing, seed=1)
        assert np.array_equal(c, (a @ b.T).astype(c.dtype))


def _kept(values: np.ndarray, dtype: DType) -> np.ndarray:
    return values.astype(np.int8) if dtype == "i8" else np.asarray(stored(values, dtype))


@pytest.mark.proof
@pytest.mark.parametrize("variant", VARIANTS, ids=name_of)
def test_compiles_for_hopper(variant: Variant) -> None:
    compilers.needed()
    found = compiler.compile_text(variant.text(), "sm_90a")
    kind = {"f32": "tf32", "i8": "s8"}.get(variant.a, variant.a)
    assert (
        f"{variant.product.split('_')[0]}.{variant.accumulators.replace('i', 's')}.{kind}"
        in found.ptx
    )
