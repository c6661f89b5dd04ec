"""Warps with their own roles, interpreted: a producer that writes tiles and consumers that add
them up, with named barriers between them; and what hangs."""

from __future__ import annotations

import numpy as np
import pytest

from gemmgen.calling.launches import ORDERS, Order
from gemmgen.interpreter.interpret import Trap, interpret
from gemmgen.ir.control import Assign, Define, For, If
from gemmgen.ir.expr import Element, Float, Int, Var
from gemmgen.ir.instruction import instruction
from gemmgen.ir.interface import Interface
from gemmgen.ir.lowered import LoweredKernel, LoweredProgram, SharedArray
from gemmgen.ir.param import Param
from gemmgen.ir.thread_code import Node
from gemmgen.ir.warp_roles import WarpRole, WarpRoles

from .kernels import BLOCK, X, of

PARAMS = (
    Param("M", "extent"),
    Param("x", "tensor", ("m",)),
    Param("out", "tensor", ("m",), written=True),
)
CONSUMERS, PRODUCER, TILES = 64, 32, 5
STAGE = of("%", "tile_k", 2)
LANE = of("-", X, CONSUMERS)


def over_tiles(*body: Node) -> Node:
    return For("tile_k", Int(0), Int(TILES), Int(1), body)


def fill() -> Node:
    """The producer's two elements of each tile: those of x, which has a tile for each block."""
    at = of("+", LANE, of("*", "half", PRODUCER))
    source = of("+", of("*", of("+", of("*", BLOCK, TILES), "tile_k"), CONSUMERS), at)
    write = Assign(Element("tile", (STAGE, at)), Element("x", (source,)))
    return For("half", Int(0), Int(2), Int(1), (write,))


ADD = Assign("sum", of("+", "sum", Element("tile", (STAGE, X))))
STORE = Assign(Element("out", (of("+", of("*", BLOCK, CONSUMERS), X),)), Var("sum"))
BEGIN = Define("sum", Float(0.0), "float", mutable=True)


def roles(producer: tuple[Node, ...], consumers: tuple[Node, ...]) -> Node:
    is_producer = of(">=", X, CONSUMERS)
    return WarpRoles(
        (
            WarpRole("producer", CONSUMERS, PRODUCER, "fill tiles", (), producer, is_producer),
            WarpRole("consumers", 0, CONSUMERS, "add them up", (), consumers),
        )
    )


EVERY = Int(CONSUMERS + PRODUCER)
BARRIER = instruction("sync_block")
FILLED, READ = instruction("sync_warps", Int(1), EVERY), instruction("sync_warps", Int(2), EVERY)


def synchronized_consumers() -> tuple[Node, ...]:
    return (BEGIN, over_tiles(FILLED, ADD, READ), STORE)


def synchronized() -> tuple[Node, ...]:
    """Both sides pass two barriers together: a tile is filled, and it is read."""
    return (roles((over_tiles(fill(), FILLED, READ),), synchronized_consumers()),)


def run(body: tuple[Node, ...], order: Order = "ascending", blocks: int = 1) -> np.ndarray:
    threads = CONSUMERS + PRODUCER
    interface = Interface("test", PARAMS, (threads, 1), (("M", CONSUMERS),), (), 0, 0, ())
    tile = SharedArray("tile", "f32", (Int(2), Int(CONSUMERS)), (2, CONSUMERS))
    kernel = LoweredKernel(interface, (), (), (tile,), body, threads)
    out = np.zeros(blocks * CONSUMERS, np.float32)
    x = np.arange(blocks * TILES * CONSUMERS, dtype=np.float32)
    interpret(LoweredProgram((kernel,)), {"M": out.size, "x": x, "out": out}, order=order)
    wanted = x.reshape(blocks, TILES, CONSUMERS).sum(axis=1).reshape(-1)
    return out == wanted


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("blocks", [1, 3])
def test_a_producer_and_consumers_meet_at_named_barriers(order: Order, blocks: int) -> None:
    assert run(synchronized(), order, blocks).all()


def test_values_show_a_barrier_at_the_wrong_place() -> None:
    early = over_tiles(FILLED, fill(), READ)
    assert not run((roles((early,), synchronized_consumers()),), "descending").all()


def test_who_waits_for_which_barrier_is_said_if_all_wait() -> None:
    found = trap((roles((over_tiles(fill(), READ, FILLED),), synchronized_consumers()),))
    assert found == (
        "barrier[2]: no thread can go on: "
        "producer waits for barrier 2, to which 32 of 96 threads have come; "
        "consumers waits for barrier 1, to which 64 of 96 threads have come, "
        "by block 0, thread (64, 0)"
    )


def trap(body: tuple[Node, ...], order: Order = "ascending") -> str:
    with pytest.raises(Trap) as found:
        run(body, order)
    return str(found.value)


def test_a_barrier_of_the_block_within_a_role_waits_for_all_of_it() -> None:
    found = trap((roles((BARRIER,), ()),))
    assert "producer waits for barrier 0, to which 32 of 96 threads have come" in found
    tile = Assign(Element("tile", (Int(0), LANE)), Float(2.0))
    read = Assign(Element("out", (X,)), Element("tile", (Int(0), of("%", X, PRODUCER))))
    run((roles((tile, BARRIER), (BARRIER, read)),), "descending")


def named(number: int, threads: int) -> Node:
    return instruction("sync_warps", Int(number), Int(threads))


def test_named_barriers_count_whole_warps() -> None:
    def met(producer: Node) -> str:
        return trap((roles((producer,), (named(1, 96),)),), "descending")

    assert "barrier[1]: 64 threads, but others come" in met(named(1, 64))
    assert "barrier[16]: a block has 16 of them" in met(named(16, 32))
    assert "barrier[2]: 33 threads are not number of whole" in met(named(2, 33))
    half = If(of("<", X, CONSUMERS + 16), (named(2, 32),))
    assert "barrier[2]: not all lanes of its warp" in met(half)
    assert "more than 32 threads come" in trap((roles((), (named(2, 32),)),))


def test_the_threads_of_a_role_all_go_its_way() -> None:
    wrong = WarpRoles(
        (
            WarpRole("producer", CONSUMERS, PRODUCER, "", (), (BARRIER,), of(">=", X, 32)),
            WarpRole("consumers", 0, CONSUMERS, "", (), ()),
        )
    )
    assert "thread (32, 0)" in trap((wrong,), "descending")
    assert "goes the way of another" in trap((wrong,), "descending")


def test_what_a_thread_may_not_do_ends_the_other_roles_too() -> None:
    outside = Assign(Element("tile", (Int(2), X)), Float(1.0))
    assert trap((roles((outside,), (BARRIER,)),)).startswith("tile[192]")
