"""Fragments in the interpreter: products of warps, and what traps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gemmgen.interpreter.interpret import Trap, interpret
from gemmgen.ir.arithmetic import Arithmetic
from gemmgen.ir.control import Assign, If
from gemmgen.ir.expr import Element, Expr, Int, Var
from gemmgen.ir.instruction import instruction
from gemmgen.ir.interface import Interface
from gemmgen.ir.lowered import LoweredKernel, LoweredProgram, SharedArray
from gemmgen.ir.param import Param
from gemmgen.ir.tensor_core_rules import rule_of
from gemmgen.ir.thread_code import Node
from gemmgen.ir.warp_matrices import (
    FragmentArray,
    LoadFragment,
    MultiplyFragments,
    StoreFragment,
)

from .kernels import X, of

THREADS, PITCH = 64, 24
PARAMS = (
    Param("M", "extent"),
    Param("x", "tensor", ("m",), dtype="f16"),
    Param("out", "tensor", ("m",), written=True),
)
ME, WARP = X, of("/", X, 32)
SHARED = (
    SharedArray("tile", "f16", (Int(16 * PITCH),), (16 * PITCH,), aligned=32),
    SharedArray("sums", "f32", (Int(2 * 16 * 16),), (2 * 16 * 16,), aligned=32),
)
ARRAYS = (
    FragmentArray("a", "f16", (Int(1),), (1,)),
    FragmentArray("b", "f16", (Int(1),), (1,)),
    FragmentArray("acc", "f32", (Int(1), Int(1)), (1, 1), zero=True),
)
A, B = Element("a", (Int(0),)), Element("b", (Int(0),))
ACC = Element("acc", (Int(0), Int(0)))


def load(at: Expr | int = 0, pitch: int = PITCH, side: str = "a", line: str = "row") -> Node:
    target = A if side == "a" else B
    return LoadFragment(target, Element("tile", (of("+", at, 0),)), Int(pitch), side, line, "f16")


MULTIPLY = MultiplyFragments(ACC, A, B, "row", "col", "f16")
BARRIER, SYNC_WARP = instruction("sync_block"), instruction("sync_warp")
STORE = StoreFragment(Element("sums", (of("*", WARP, 256),)), ACC, Int(16), "row")


def run(*body: Node) -> np.ndarray:
    """What the second warp leaves, after ``x`` (a permutation's multiples) was put in the tile."""
    fill = tuple(
        Assign(
            Element("tile", (of("+", of("*", ME, 6), e),)),
            Element("x", (of("+", of("*", ME, 6), e),)),
        )
        for e in range(6)
    )
    drain = tuple(
        Assign(
            Element("out", (of("+", of("*", ME, 8), e),)),
            Element("sums", (of("+", of("*", ME, 8), e),)),
        )
        for e in range(8)
    )
    arithmetic = Arithmetic(rule_of("sm_80", "wmma", "f16"))
    sizes = (THREADS, 1), (("M", 512),), (), 0, 0, ()
    interface = Interface("test", PARAMS, *sizes, arithmetic=arithmetic)
    nodes = (*fill, BARRIER, *ARRAYS, *body, BARRIER, *drain)
    kernel = LoweredKernel(interface, (), (), SHARED, nodes, THREADS)
    tile = np.zeros((16, PITCH), np.float16)
    tile[:, :16] = np.arange(256).reshape(16, 16) % 7 - 3
    out = np.zeros(512, np.float32)
    given = {"M": 512, "x": tile.view(np.uint16).reshape(-1), "out": out}
    interpret(LoweredProgram((kernel,)), given)
    return out.reshape(2, 16, 16)


def test_every_warp_multiplies_for_itself() -> None:
    matrix = (np.arange(256).reshape(16, 16) % 7 - 3).astype(np.float32)
    found = run(load(), load(side="b", line="col"), MULTIPLY, MULTIPLY, STORE, SYNC_WARP)
    assert (found == 2 * matrix @ matrix.T).all()
    transposed = replace(MULTIPLY, a_line="col")
    assert (run(load(), load(side="b"), transposed, STORE)[1] == matrix.T @ matrix.T).all()
    by_columns = replace(STORE, line="col")
    assert (run(load(), load(side="b"), MULTIPLY, by_columns)[0] == (matrix @ matrix.T).T).all()


def test_some_warps_alone() -> None:
    one = If(of("==", WARP, 1), (load(), load(side="b"), MULTIPLY))
    found = run(one, STORE)
    assert (found[0] == 0).all() and (found[1] != 0).any()


SOME = of("<", X, 40)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ((load(8),), r"tile\[8\]: no fragment begins there, by block 0, thread \(0, 0\)"),
        ((load(pitch=20),), r"tile\[0\]: lines 20 elements apart"),
        (
            (load(of("*", of("/", X, 48), 16)),),
            r"tile\[16\]: another address than its warp's, by block 0, thread \(48, 0\)",
        ),
        ((load(16),), "out of bounds"),
        ((If(SOME, (load(),)),), r"not all of its lanes come to it, by block 0, thread \(40, 0\)"),
        ((If(SOME, (MULTIPLY,)),), "not all of its lanes"),
        ((If(SOME, (STORE,)),), "not all of its lanes"),
        ((If(SOME, (SYNC_WARP,)),), "not all of its lanes"),
    ],
)
def test_traps(body: tuple[Node, ...], message: str) -> None:
    with pytest.raises(Trap, match=message):
        run(*body)


def test_what_was_not_loaded_is_no_number() -> None:
    assert np.isnan(run(load(), MULTIPLY, STORE)).all()


def test_registers_of_sums_have_an_index_of_their_own() -> None:
    """Those of other blocks' lanes are added to them, where sums are split."""
    place = Element("acc", (Int(0), Int(0), Int(3)))
    found = run(Assign(place, Var("M")), STORE)
    assert (found == 512).sum() == 64 and (found == 0).sum() == 448
