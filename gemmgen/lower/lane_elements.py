"""An operand of mma.sync by plain loads: each lane its own elements, wherever they lie."""

from __future__ import annotations

from collections.abc import Iterator

from gemmgen.ir import names
from gemmgen.ir.buffers import Buffer
from gemmgen.ir.control import Assign, Define, For
from gemmgen.ir.expanded import Fetch
from gemmgen.ir.expr import Expr, Int, Var
from gemmgen.ir.simplify import add, div, mod, mul
from gemmgen.ir.target import WARP
from gemmgen.ir.thread_code import Node, RegisterArray
from gemmgen.lower import addresses, warps
from gemmgen.lower.context import LANE, Context
from gemmgen.lower.mma_operand import Loading, MmaOperand, atom_of, extent


def load(context: Context, own: MmaOperand, node: Fetch, number: Expr) -> tuple[Node, ...]:
    """A loop for each digit of a register's number that has several values."""
    k = context.problem.k
    index: dict[str, Expr] = {
        own.letter: add(
            lane_origin(own.tile, own.letter), mul(number, names.instruction(own.letter))
        ),
        k: add(lane_origin(own.tile, k), node.k),
    }
    steps = {
        k: atom_of(context).k,
        names.instruction(k).name: atom_of(context).k,
        names.instruction(own.letter).name: extent(context, own.letter),
    }
    register: Expr = mul(number, Int(own.registers))
    below, loops = 1, list[tuple[str, int]]()
    for count, side, step in own.layout.register:
        if count == 1:
            continue
        letter = own.letter if side == own.side else k
        digit = Var(f"reg_{letter}")
        register = add(register, mul(digit, Int(below)))
        index[letter] = add(index[letter], mul(digit, Int(step)))
        loops.append((digit.name, count))
        below *= count
    source = addresses.in_shared(context, own.tile, node.stage, index, steps=steps)
    body: tuple[Node, ...] = (
        Assign(addresses.fragment_at(node.slot, node.copy.dst, register), source),
    )
    for name, count in loops:
        body = (For(name, Int(0), Int(count), Int(1), body, unroll=True),)
    return body


def origins(context: Context, own: MmaOperand) -> Iterator[Define]:
    """The lane's first element."""
    of_warp, k = warps.coordinates(context), context.problem.k
    for letter, is_k in ((own.letter, False), (k, True)):
        parts: list[Expr] = [] if is_k else [mul(of_warp[letter], names.warp(letter))]
        below = 1
        for count, side, step in own.layout.lane:
            if (side != own.side) == is_k:
                digit = div(LANE, Int(below))
                if below * count < WARP:
                    digit = mod(digit, Int(count))
                parts.append(mul(digit, Int(step)))
            below *= count
        yield Define(lane_origin(own.tile, letter).name, add(*parts))


def lane_origin(tile: Buffer, letter: str) -> Var:
    """Where a lane's elements of an operand begin along a letter: ``A_lane_m``."""
    return Var(f"{tile.tensor}_lane_{letter}")


LOADING = Loading(array=RegisterArray, together=lambda own: 1, load=load, origins=origins)
