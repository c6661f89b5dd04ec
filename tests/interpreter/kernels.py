"""Lowered kernels written by hand: a naive one and a tiled one with two stages of shared memory."""

from __future__ import annotations

from gemmgen.ir.control import Assign, Block, Define, For, If
from gemmgen.ir.expr import Binary, BinaryOp, Call, Element, Expr, Float, Int, Select, Var, Wide
from gemmgen.ir.instruction import instruction
from gemmgen.ir.interface import Interface
from gemmgen.ir.lowered import Constant, LoweredKernel, SharedArray
from gemmgen.ir.param import Param
from gemmgen.ir.problem import Problem, Tensor, default_epilogue
from gemmgen.ir.requirement import MultipleOf, Requirement
from gemmgen.ir.thread_code import Leave, Move, Node, RegisterArray

C, A, B = Tensor("C", ("m", "n")), Tensor("A", ("m", "k")), Tensor("B", ("k", "n"))
PROBLEM = Problem(C, A, B, "m", "n", "k", default_epilogue(C))

PARAMS = (
    *(Param(name, "extent") for name in ("M", "N", "K")),
    Param("alpha", "scalar"),
    Param("A", "tensor", ("m", "k")),
    Param("lda", "ld"),
    Param("B", "tensor", ("k", "n")),
    Param("ldb", "ld"),
    Param("beta", "scalar"),
    Param("C", "tensor", ("m", "n"), written=True),
    Param("ldc", "ld"),
)
PITCH = (("A", "lda"), ("B", "ldb"), ("C", "ldc"))
X, Y, BLOCK = Var("threadIdx.x"), Var("threadIdx.y"), Var("blockIdx.x")
M, N, K, ACC = Var("M"), Var("N"), Var("K"), Var("acc")


def of(op: BinaryOp, *parts: Expr | int | str) -> Expr:
    """``parts`` joined by ``op`` from the left; numbers and names as themselves."""
    first, *rest = (_expr(part) for part in parts)
    for part in rest:
        first = Binary(op, first, part)
    return first


def _expr(part: Expr | int | str) -> Expr:
    if isinstance(part, int):
        return Int(part)
    return Var(part) if isinstance(part, str) else part


def at(tensor: str, row: Expr | str, column: Expr | str) -> Element:
    """``tensor[row * ld + column]``."""
    ld = Var("ld" + tensor.lower())
    return Element(tensor, (of("+", of("*", Wide(_expr(row)), ld), column),))


def epilogue(row: str, column: str, value: Expr) -> tuple[Node, ...]:
    """``C = alpha * value + beta * C``, with no read of C where beta is 0."""
    target = at("C", row, column)
    old = Select(of("!=", "beta", Float(0.0)), target, Float(0.0))
    scaled = of("*", "alpha", value)
    return (
        Define("old", old, "float"),
        Assign(target, Call("fmaf", (Var("beta"), Var("old"), scaled))),
    )


def interface(
    name: str,
    block: tuple[int, int],
    tiles: tuple[int, int],
    requirements: tuple[Requirement, ...] = (),
) -> Interface:
    sizes = (("M", tiles[0]), ("N", tiles[1]))
    return Interface(name, PARAMS, block, sizes, requirements, 0, 0, PITCH)


def naive() -> LoweredKernel:
    """A thread per element of C, 32 along n by 8 along m."""
    blocks = of("+", of("/", of("-", N, 1), 32), 1)
    product = Call("fmaf", (at("A", "m", "k"), at("B", "k", "n"), ACC))
    body: tuple[Node, ...] = (
        Define("blocks_n", blocks),
        Define("m", of("+", of("*", of("/", BLOCK, "blocks_n"), 8), Y)),
        Define("n", of("+", of("*", of("%", BLOCK, "blocks_n"), 32), X)),
        Leave(of("||", of(">=", "m", M), of(">=", "n", N))),
        Define("acc", Float(0.0), "float", mutable=True),
        For("k", Int(0), K, Int(1), (Assign("acc", product),)),
        *epilogue("m", "n", ACC),
    )
    return LoweredKernel(interface("naive", (32, 8), (8, 32)), (), (), (), body, 256)


def load_a(stage: Expr, origin: Expr | int) -> Node:
    """The thread's element of an A tile, transposed on the way to shared memory."""
    k, m = of("+", origin, X), of("+", "tile_m", Y)
    inside = of("&&", of("<", m, M), of("<", k, K))
    value = Select(inside, at("A", m, k), Float(0.0))
    guard = of("<", X, "BK")
    return If(guard, (Assign(Element("A_shared", (stage, X, Y)), value),))


def load_b(stage: Expr, origin: Expr | int) -> Node:
    """Four neighbours of a B tile at once where all lie inside."""
    k, n = of("+", origin, Y), of("+", "tile_n", of("*", X, 4))
    to, start = Element("B_shared", (stage, Y, of("*", X, 4))), of("+", n, 3)
    whole = of("&&", of("<", k, K), of("<", start, N))
    inside = of("&&", of("<", k, K), of("<", of("+", n, "e"), N))
    one = Assign(
        Element("B_shared", (stage, Y, of("+", of("*", X, 4), "e"))),
        Select(inside, at("B", k, of("+", n, "e")), Float(0.0)),
    )
    each = For("e", Int(0), Int(4), Int(1), (one,), unroll=True)
    guard = of("&&", of("<", X, of("/", "BN", 4)), of("<", Y, "BK"))
    return If(guard, (If(whole, (Move(to, at("B", k, n), 4),), (each,)),))


def tiled() -> LoweredKernel:
    """Tiles of 16 x 32 x 4, two elements a thread, two stages, A transposed with a pad."""
    blocks = of("+", of("/", of("-", N, 1), "BN"), 1)
    stage, following = Var("stage"), of("-", 1, "stage")
    k = Var("k")
    fragment = Element("A_shared", (stage, k, Y))
    step = Assign(
        Element("acc", (Var("j"),)),
        Call(
            "fmaf",
            (Var("a"), Element("b", (Var("j"),)), Element("acc", (Var("j"),))),
        ),
    )
    inner: tuple[Node, ...] = (
        Define("a", fragment, "float"),
        RegisterArray("b", "f32", (Int(2),), (2,), wide=True),
        Move(Element("b", (Int(0),)), Element("B_shared", (stage, k, of("*", X, 2))), 2),
        For("j", Int(0), Int(2), Int(1), (step,), unroll=True),
    )
    next_k = of("+", "tile_k", "BK")
    loads = (load_a(following, next_k), load_b(following, next_k))
    steps = For(
        "tile_k",
        Int(0),
        K,
        Var("BK"),
        (
            Block("the next tile", (), (If(of("<", next_k, K), loads),)),
            For("k", Int(0), Var("BK"), Int(1), inner, unroll=True),
            instruction("sync_block"),
            Assign("stage", following),
        ),
    )
    store = For(
        "j",
        Int(0),
        Int(2),
        Int(1),
        (
            Define("n", of("+", "tile_n", of("*", X, 2), "j")),
            If(
                of("&&", of("<", "m", M), of("<", "n", N)),
                epilogue("m", "n", Element("acc", (Var("j"),))),
            ),
        ),
    )
    body: tuple[Node, ...] = (
        Define("blocks_n", blocks),
        Define("tile_m", of("*", of("/", BLOCK, "blocks_n"), "BM")),
        Define("tile_n", of("*", of("%", BLOCK, "blocks_n"), "BN")),
        RegisterArray("acc", "f32", (Int(2),), (2,), zero=True),
        load_a(Int(0), 0),
        load_b(Int(0), 0),
        Define("stage", Int(0), mutable=True),
        instruction("sync_block"),
        steps,
        Define("m", of("+", "tile_m", Y)),
        store,
    )
    shared = (
        SharedArray("A_shared", "f32", (Int(2), Var("BK"), Int(17)), (2, 4, 17)),
        SharedArray("B_shared", "f32", (Int(2), Var("BK"), Var("BN")), (2, 4, 32)),
    )
    constants = (Constant("BM", 16), Constant("BN", 32), Constant("BK", 4))
    face = interface("tiled", (16, 16), (16, 32), (MultipleOf("ldb", 4),))
    return LoweredKernel(face, constants, (), shared, body, 256)
