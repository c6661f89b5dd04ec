"""The summation order of a compiled program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from math import lcm

from gemmgen.expand import expand
from gemmgen.ir import names
from gemmgen.ir.assumptions import divides, equal_to
from gemmgen.ir.atoms import ATOMS, VIA, Atom
from gemmgen.ir.control import Define
from gemmgen.ir.dtypes import DType
from gemmgen.ir.edit import contraction, pipeline_of
from gemmgen.ir.expr import Element, Expr, Var, transform, walk
from gemmgen.ir.exprtext import format_expression
from gemmgen.ir.lowered import LoweredKernel
from gemmgen.ir.names import OWN_PART
from gemmgen.ir.nodes import Program
from gemmgen.ir.traversal import inside
from gemmgen.summation.block_additions import WHOLE, BlockAdditions
from gemmgen.summation.k_walk import Addition, PartialAccumulator, Products, Walk, Walked, WalkEnded
from gemmgen.summation.known_fields import unread
from gemmgen.summation.order_value import Slices, SummationOrder
from gemmgen.summation.walk_values import Unknown, Value, evaluate

ASCENDING = "ascending"
PARTS_WALKED = 3
"""The first slices that are walked; the last one is, too."""


def summation_order(program: Program, kernel: LoweredKernel) -> SummationOrder:
    """How an element of C is summed by ``program``, whose contracting kernel is ``kernel``."""
    parameters = BlockAdditions.of(program)
    found = _stated(program, parameters)
    how, letters = _walked(program, kernel, parameters)
    found = replace(found, walk=how, depends=letters, unread=unread(program))
    return _exact(found) if found.accumulator == "i32" else found


def _exact(order: SummationOrder) -> SummationOrder:
    """Sums modulo 2^32 have the same bits in every order."""
    known = order.walk == ASCENDING
    return SummationOrder(
        "integers",
        0,
        order.multiplied,
        order.accumulator,
        epilogue=order.epilogue,
        computed_in=order.computed_in,
        tensors=order.tensors,
        stored=order.stored,
        walk=order.walk,
        depends=() if known else order.depends,
        unread=order.unread,
    )


def _stated(program: Program, p: BlockAdditions) -> SummationOrder:
    """the order that the declared program means."""
    problem, contract = program.problem, contraction(program.main)
    first, second = problem.factors
    into = contract.into if p.terms != WHOLE else None
    types: tuple[DType, DType] = (into, into) if into else (first.dtype, second.dtype)
    terms = () if p.terms == WHOLE else p.terms
    if p.swapped:
        terms = tuple((j, i) for i, j in terms)
    shared = p.lanes[0] > 1
    epilogue = _expression(problem.epilogue)
    reads = dict.fromkeys(x.buffer for x in walk(problem.epilogue) if isinstance(x, Element))
    return SummationOrder(
        instruction_of(p.atom),
        1 if shared else p.depth,
        types,
        problem.accumulate,
        aligned=_aligned(program, p),
        terms=terms,
        pair_extent=(p.step if p.apart else p.depth) if terms else 0,
        interval=p.interval,
        interval_step=p.step if p.interval and p.residue == "first" else 0,
        scales=tuple(sorted(scaling.tensor.text for scaling in problem.scales)),
        lanes=p.lanes,
        slices=_slices(p),
        recomputed=ATOMS[p.atom].splits is not None,
        epilogue=epilogue,
        computed_in=problem.numbers,
        tensors=tuple((name, problem.dtype(name)) for name in reads),
        stored=problem.c.dtype,
    )


def instruction_of(atom: Atom) -> str:
    """PTX's name of what multiplies, without the extents that don't order k."""
    if atom == "fma":
        return "fma"
    via = next(via for via, atoms in VIA.items() if atom in atoms)
    traits = ATOMS[atom]
    return {
        "wmma": f"wmma {traits.shape}",
        "mma": f"mma.sync {traits.shape}",
        "wgmma": f"wgmma k{traits.k}",
    }[via]


def _aligned(program: Program, p: BlockAdditions) -> str:
    """A ragged first tile shifts accumulations, if they add several products each and K is no
    multiple of them."""
    shifts = p.residue == "first" and p.lanes[0] == 1 and (p.depth > 1 or p.interval > 0)
    k = program.problem.extent(program.problem.k)
    return "last" if shifts and not divides(program, k, p.interval or p.depth) else "first"


def _slices(p: BlockAdditions) -> Slices:
    """Two slices are added in either order with the same bits, and groups of one slice are
    slices."""
    if p.slices == 1:
        return Slices()
    groups = 1 if p.groups == p.slices else p.groups
    ordered = p.reduce == "ordered" or p.slices == 2
    return Slices(p.slices, p.step, groups if ordered else 1, ordered)


def _expression(expr: Expr) -> str:
    """The text of an epilogue, in which elements have their letters in one order."""

    def ordered(part: Expr) -> Expr | None:
        if isinstance(part, Element) and all(isinstance(x, Var) for x in part.indices):
            return Element(part.buffer, tuple(sorted(part.indices, key=format_expression)))
        return None

    return format_expression(transform(expr, ordered))


# The walk.


def _walked(
    program: Program, kernel: LoweredKernel, p: BlockAdditions
) -> tuple[str, tuple[str, ...]]:
    """``ascending`` if the expanded program adds what ``p`` says for each K that is tried, else a
    digest of what it does; and the letters whose extents it depends on."""
    body = expand(program).kernels[0].body
    seen: list[object] = []
    as_stated, letters = True, set[str]()
    for depth in _depths(program, p):
        for part in _parts(p.slices):
            try:
                values = _arguments(program, kernel, p, depth, part)
                walked = Walk(program.main, values, p.depth).run(body)
            except WalkEnded as lost:
                letters |= _letters(program, lost.names)
                seen.append((depth, part, lost.what))
                as_stated = False
                continue
            wanted = Walked(p.additions(part, depth), (program.problem.epilogue,))
            as_stated &= _within(walked, depth) == _within(wanted, depth)
            seen.append((depth, part, walked))
    how = ASCENDING if as_stated else sha256(repr(seen).encode()).hexdigest()[:12]
    return how, tuple(sorted(letters))


def _depths(program: Program, p: BlockAdditions) -> tuple[int, ...]:
    """Some K at which programs differ that add in different orders: about an accumulation, a tile,
    all stages and rounds of them, promotion intervals, and slices."""
    kernel, problem = program.main, program.problem
    pipeline = pipeline_of(kernel)
    step = p.step or p.depth
    stages = max((b.stages for b in kernel.buffers if b.role.value == "tile"), default=1)
    around = step * max(stages, pipeline.unroll if pipeline else 1)
    found = {0, 1, p.depth + 1, step - 1, step, step + 1, around + 1, 2 * around + step + 1}
    if p.interval:
        found |= {p.interval - 1, p.interval, 2 * p.interval + step + 1}
    if p.slices > 1:
        found |= {p.slices * step, p.slices * step + 1, 2 * p.slices * step + p.depth + 1}
    k = problem.extent(problem.k)
    unit = lcm(*(f.divisor or 1 for f in program.facts if f.name in (k, equal_to(program, k))))
    return tuple(sorted({-(-depth // unit) * unit for depth in found}))


def _parts(slices: int) -> tuple[int, ...]:
    return tuple(sorted({*range(min(slices, PARTS_WALKED)), slices - 1}))


def _arguments(
    program: Program, kernel: LoweredKernel, p: BlockAdditions, depth: int, part: int
) -> dict[str, Value]:
    """The constants, K, and the range of k of the block's slice as the lowered kernel computes
    it."""
    problem = program.problem
    k = problem.extent(problem.k)
    values: dict[str, Value] = {each.name: each.value for each in kernel.constants}
    values |= dict.fromkeys((k, equal_to(program, k)), depth)
    if p.slices > 1:
        values[OWN_PART.name] = part
        defines = {x.name: x.value for x in inside(kernel.body) if isinstance(x, Define)}
        for name in (names.start(problem.k).name, names.stop(problem.k).name):
            values[name] = _defined(Var(name), defines, values)
    return values


def _defined(expr: Expr, defines: dict[str, Expr], values: dict[str, Value]) -> Value:
    """The value of ``expr``, whose variables are those of ``defines``."""
    for part in walk(expr):
        if isinstance(part, Var) and part.name not in values and part.name in defines:
            values[part.name] = Unknown(frozenset((part.name,)))  # of itself
            values[part.name] = _defined(defines[part.name], defines, values)
    return evaluate(expr, values)


def _letters(program: Program, unknown: frozenset[str]) -> set[str]:
    """The letters whose extents are among the names; all of C's if a name is another one, as that
    of a block or of the grid."""
    problem = program.problem
    extents = {problem.extent(x): x for x in problem.c.letters}
    if unknown and unknown <= extents.keys():
        return {extents[name] for name in unknown}
    return set(problem.c.letters) if unknown else set()


def _within(walked: Walked, depth: int) -> Walked:
    """Without what lies beyond K or before 0, which is zero."""
    return Walked(tuple(_clipped(walked.additions, depth)), walked.stored)


def _clipped(additions: tuple[Addition, ...], depth: int) -> Iterator[Addition]:
    for one in additions:
        match one:
            case Products(first, stop, terms):
                first, stop = max(0, first), min(stop, depth)
                if first < stop:
                    yield Products(first, stop, terms)
            case PartialAccumulator(inner):
                kept = tuple(_clipped(inner, depth))
                if kept:
                    yield PartialAccumulator(kept)
            case _:
                yield one
