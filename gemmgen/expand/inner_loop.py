"""The inner loop: fragments and multiply-adds of one tile, with or without prefetched fragments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gemmgen.expand.k_range import k_range_of
from gemmgen.expand.promotion_intervals import groups_of, scales_read
from gemmgen.ir import names
from gemmgen.ir.atoms import ATOMS
from gemmgen.ir.buffers import Space
from gemmgen.ir.control import Block, Define, For, If
from gemmgen.ir.decompositions import product_note, products_of, sum_note
from gemmgen.ir.edit import contraction, pipeline_of, promotion_of
from gemmgen.ir.expanded import DescribeOperands, Fetch, Multiply, Stage, Timed
from gemmgen.ir.expr import Binary, Expr, Int, Select, Var
from gemmgen.ir.instruction import Instruction, instruction
from gemmgen.ir.nodes import Contract, Copy, Kernel, Loop, Program
from gemmgen.ir.occupancy import registers_are_scarce
from gemmgen.ir.simplify import div, less

StageOf = Callable[[str], Stage]
"""The stage that a shared tile is read from, by the tile's name."""

ALWAYS = Int(1)
"""Accumulators are added to."""
SINGLE_UNROLL = 8
"""Steps unrolled if a thread owns one element.  With full unrolling, compilers move some loads of
the next tile after the arithmetic."""


def plus(left: Expr, right: Expr) -> Expr:
    return left + right


def step_of(loop: Loop) -> Expr:
    """The elements along k of one step: one, or those of one instruction."""
    return Int(1) if loop.step == 1 else names.instruction(loop.letter)


def slot(kernel: Kernel, loop: Loop, fragment: str, k: Expr) -> Stage:
    """The slot of a fragment that holds step ``k``."""
    buffer = kernel.buffer(fragment)
    if buffer.space is Space.REGISTER and buffer.stages > 1:
        if isinstance(k, Int):
            return Int(k.value // loop.step % 2)
        return _number(loop, k) % 2
    return None


def _number(loop: Loop, k: Expr) -> Expr:
    """The number of the step that begins at ``k``, or at the step after it."""
    step = step_of(loop)
    if isinstance(k, Binary) and k.right == step != Int(1):
        return plus(div(k.left, step), Int(1))
    return div(k, step)


def fetches(loop: Loop) -> tuple[Copy, ...]:
    return tuple(s for s in loop.body if isinstance(s, Copy))


def reads_ahead(kernel: Kernel, copy: Copy) -> bool:
    """Whether the fragment that ``copy`` fills is read one step ahead."""
    return kernel.buffer(copy.dst).stages > 1


def fetch(
    kernel: Kernel, loop: Loop, copy: Copy, k: Expr, origin: Expr | None, stage: StageOf
) -> Fetch:
    return Fetch(copy, k, origin, stage(copy.src), slot(kernel, loop, copy.dst, k))


def multiply(
    kernel: Kernel, loop: Loop, k: Expr, origin: Expr | None, stage: StageOf
) -> tuple[Timed, ...]:
    """The contraction at step ``k``: its operands are fragments (slots) or tiles (stages)."""
    contract = next(s for s in loop.body if isinstance(s, Contract))

    def where(name: str) -> Stage:
        is_tile = kernel.buffer(name).space is not Space.REGISTER
        return stage(name) if is_tile else slot(kernel, loop, name, k)

    one = Multiply(contract, k, origin, where(contract.a), where(contract.b))
    groups = groups_of(kernel)
    return (one, *(groups.after_step(k, step_of(loop)) if groups else ()))


def unroll_of(kernel: Kernel, loop: Loop, usual: bool | int) -> bool | int:
    """How a loop over the steps of a tile is unrolled: as ``unroll`` says, else as usual."""
    pipeline = pipeline_of(kernel)
    assert pipeline is not None
    whole = loop.unroll == pipeline.step
    return (whole or loop.unroll // loop.step) if loop.unroll else usual


def steps_over_problem(program: Program, kernel: Kernel, loop: Loop) -> tuple[Timed, ...]:
    """The whole contraction in one loop, straight from global memory."""
    k_range = k_range_of(program, kernel, loop.letter)
    return (_serial(kernel, loop, k_range.start, k_range.stop),)


def steps_between(program: Program, kernel: Kernel, loop: Loop) -> tuple[Timed, ...]:
    """The steps of one tile straight from global memory: the last tile may be short."""
    k, size = names.tile_origin(loop.letter), k_range_of(program, kernel, loop.letter).stop
    end = plus(k, names.block(loop.letter))
    stop = f"end_{loop.letter}"
    return (
        Define(stop, Select(less(end, size), end, size)),
        _serial(kernel, loop, k, Var(stop)),
    )


def _serial(kernel: Kernel, loop: Loop, start: Expr, stop: Expr) -> For[Timed]:
    k = Var(loop.letter)
    body: list[Timed] = [
        fetch(kernel, loop, copy, k, None, lambda _: None) for copy in fetches(loop)
    ]
    body.extend(multiply(kernel, loop, k, None, lambda _: None))
    return For(loop.letter, start, stop, Int(1), tuple(body), unroll=loop.unroll)


def group(
    kernel: Kernel, loop: Loop, stages: tuple[Stage, Stage], accumulate: Expr = ALWAYS
) -> tuple[Timed, ...]:
    """Begins the multiplications of one tile, whose operands are in these ``stages``, as a group;
    ends them, too, if their accumulators are promoted into others."""
    contract, (a, b), k = contraction(kernel), stages, Var(loop.letter)
    groups, begun = groups_of(kernel), instruction("wgmma_fence")
    ended: tuple[Timed, ...] = (instruction("wgmma_commit"),)
    each: tuple[Timed, ...] = ()
    if groups:
        accumulate, ended = groups.goes_on(k), (*ended, end_multiplies(kernel))
        each = groups.after_step(k, step_of(loop), ended, (begun,))
    one = Multiply(contract, k, None, a, b, accumulate)
    described = DescribeOperands(contract, a, b)
    if kernel.buffer(contract.a).parts > 1:
        return (described, begun, *_products(kernel, loop, one), *ended)
    steps = _steps(kernel, loop, (one, *each))
    return (described, begun, steps, *(() if each else ended))


def _steps(kernel: Kernel, loop: Loop, body: tuple[Timed, ...]) -> For[Timed]:
    size, unroll = names.block(loop.letter), unroll_of(kernel, loop, True)
    return For(loop.letter, Int(0), size, step_of(loop), body, unroll)


def _products(kernel: Kernel, loop: Loop, one: Multiply) -> tuple[Timed, ...]:
    """The products of terms, each over all steps of the tile before the next one.

    Tensor cores truncate at the last bit of the accumulator, so the largest products come last.
    """
    pairs = products_of(one.contract.parts, one.contract.products)
    tensors, found = operands_of(kernel), list[Timed]()
    for pair in pairs:
        a, b = pair
        each = replace(one, a_part=a, b_part=b)
        if found:
            each = replace(each, accumulate=ALWAYS)
        note = product_note(tensors, pair)
        found.append(_steps(kernel, loop, (Block(note, (), (each,)),)))
    return tuple(found)


def operands_of(kernel: Kernel) -> tuple[str, str]:
    """The tensors whose elements the contraction multiplies, by name."""
    contract = contraction(kernel)
    a, b = kernel.buffer(contract.a).of, kernel.buffer(contract.b).of
    return a or contract.a, b or contract.b


def multiply_note(kernel: Kernel) -> str:
    """The comment over a tile's multiplications."""
    contract = contraction(kernel)
    if contract.parts == 1:
        return "multiply the tile"
    return sum_note(operands_of(kernel), contract.parts)


def end_multiplies(kernel: Kernel) -> Instruction:
    """Waits for all groups, and has the accumulators of their type."""
    acc = kernel.buffer(contraction(kernel).acc)
    name = "wgmma_end_i32" if acc.dtype == "i32" else "wgmma_end"
    return instruction(name, Var(acc.name))


def steps_in_tile(kernel: Kernel, loop: Loop, stage: StageOf) -> tuple[Timed, ...]:
    """The steps of one tile in shared memory; fragments with two slots are read one step ahead."""
    contract = contraction(kernel)
    if ATOMS[contract.atom].in_place:
        stages = stage(contract.a), stage(contract.b)
        ended = () if promotion_of(kernel) else (end_multiplies(kernel),)
        scales = scales_read(kernel, names.tile_origin(loop.letter), stage)
        return (*scales, *group(kernel, loop, stages), *ended)
    k, size = Var(loop.letter), names.block(loop.letter)
    origin = names.tile_origin(loop.letter)
    ahead = [c for c in fetches(loop) if reads_ahead(kernel, c)]
    present = [c for c in fetches(loop) if not reads_ahead(kernel, c)]
    first = tuple(fetch(kernel, loop, c, Int(0), origin, stage) for c in ahead)
    body: list[Timed] = []
    following = plus(k, step_of(loop))
    if ahead:
        then = tuple(fetch(kernel, loop, c, following, origin, stage) for c in ahead)
        body.append(If(less(following, size), then))
    if registers_are_scarce(kernel):
        present.reverse()  # decision 26: compilers spill less, and the loop is faster
    body.extend(fetch(kernel, loop, c, k, origin, stage) for c in present)
    body.extend(multiply(kernel, loop, k, origin, stage))
    unroll = unroll_of(kernel, loop, True if fetches(loop) else SINGLE_UNROLL)
    steps = For(loop.letter, Int(0), size, step_of(loop), tuple(body), unroll=unroll)
    return (*scales_read(kernel, origin, stage), *first, steps)
