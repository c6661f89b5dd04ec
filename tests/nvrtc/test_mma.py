"""Every product of mma.sync compiles to its instruction, for each architecture that has it and in
each storage order."""

from __future__ import annotations

import itertools

import pytest

from gemmgen.base.errors import CannotCheck
from gemmgen.base.source import Source
from gemmgen.emit import matrix_functions
from gemmgen.emit.ctypes import STORED, product_name, register_type
from gemmgen.gpu import compiler, sass, sass_loops
from gemmgen.ir.atoms import ATOMS, VIA, Atom, Product
from gemmgen.ir.target import SINCE, TARGETS, offers
from gemmgen.pipeline import compile_source

pytestmark = pytest.mark.skipif(compiler.available() is not None, reason=str(compiler.available()))

PRODUCTS = [(atom, types) for atom in VIA["mma"] for types in ATOMS[atom].products]
ORDERS = tuple(itertools.product(("m, k", "k, m"), ("k, n", "n, k"), ("m, n", "n, m")))


def there(target: str, atom: Atom, types: Product) -> bool:
    return offers(target, atom) and all(offers(target, dtype) for dtype in types)


@pytest.mark.by_default("sm_89")
@pytest.mark.parametrize("target", TARGETS)
def test_each_instruction_is_of_its_architectures(target: str) -> None:
    """All products that an architecture has in one unit, and none that it lacks; parts of numbers
    are multiplied by the same function as numbers of their type."""
    texts, calls, expected = list[str](), list[str](), list[str]()
    for number, (atom, types) in enumerate(PRODUCTS):
        if not there(target, atom, types):
            continue
        function = matrix_functions.mma(atom, types)
        texts.append(function.text())
        first = f"static_cast<{STORED[types[2]]} *>(c) + {8 * number}"
        sums = ", ".join((first, f"{first} + 2")[: ATOMS[atom].m // 8])
        word = register_type(types[0])
        operands = ", ".join(f"static_cast<const {word} *>({x})" for x in "ab")
        calls.append(f"    gg_mma_{product_name(atom, types)}({sums}, {operands});")
        expected.append(
            f"mma.sync.aligned.{ATOMS[atom].shape}.row.col.{dict(function.names)['types']}"
        )
    body = "\n".join(calls)
    arguments = "void *c, const void *a, const void *b"
    kernel = f'extern "C" __global__ void probe({arguments})\n{{\n{body}\n}}\n'
    ptx = compiler.compile_text("\n\n".join((*dict.fromkeys(texts), kernel)), target).ptx
    assert expected and all(mnemonic in ptx for mnemonic in expected)


AHEAD = """\
gemm C[m, n] = A[m, k] * B[n, k]
dtype A=bf16 B=bf16 C=bf16
{}tile m=64 n=64 k=64
cache_shared A B
warp_tile m=32 n=32
tensor_core via=mma
vectorize A.global B.global width=8
swizzle A B
double_buffer A B stages=3
double_buffer A.register B.register
async_copy A B via=cp_async
"""


@pytest.mark.proof
def test_copies_of_whole_vectors_compute_no_sizes() -> None:
    """Each saves four instructions of the loop or more."""
    try:
        sass.tool()
    except CannotCheck as missing:
        pytest.skip(str(missing))
    found: list[sass.Code] = []
    for assumed in ("", "assume K % 8 == 0\n"):
        text = compile_source(Source(AHEAD.format(assumed), "x.sched")).text
        loop = sass_loops.main_loop(sass.disassemble(compiler.compile_text(text, "sm_90").cubin))
        assert loop is not None
        found.append(loop)
    any_k, whole = found
    copies = sass.count(whole, "LDGSTS")
    assert copies == sass.count(any_k, "LDGSTS") == 8
    assert len(any_k) - len(whole) >= 4 * copies


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("order", range(4))
@pytest.mark.parametrize("product", range(len(PRODUCTS)))
def test_each_storage_order_compiles(product: int, order: int) -> None:
    """Each product with all orders of A and B; those of C, which is written after the products,
    alternate."""
    atom, types = PRODUCTS[product]
    a, b, c = ORDERS[2 * order + (order.bit_count() + product) % 2]
    splits = ATOMS[atom].splits
    types = (splits, splits, splits) if splits else types
    since = max(SINCE.get(feature, 75) for feature in (atom, *types))
    lines = (
        f"gemm C[{c}] = A[{a}] * B[{b}]",
        "dtype "
        + " ".join(map("=".join, zip(("A", "B", "C", "acc"), (*types, types[2]), strict=True))),
        f"target sm_{since}",
        f"tile m=32 n=32 k={3 * ATOMS[atom].k}",
        "cache_shared A[m, k] B[n, k]",
        "warp_tile m=16 n=16",
        f"decompose into={'bf16' if splits else 'f32'}",
        f"tensor_core via=mma promote={16 * bool(splits)}",
    )
    emitted = compile_source(Source("\n".join((*lines, "")), "x.sched"))
    assert atom in str(emitted.program.main.spread.atom)
    compiled = compiler.compile_text(emitted.text, f"sm_{since}")
    pieces = 16 // ATOMS[atom].m * 16 // ATOMS[atom].n
    products = 6 if splits else 1
    assert compiled.spills == 0 and compiled.ptx.count("mma.sync.") == 3 * pieces * products
