"""promote: the sums of an instruction are folded into others, and begin anew (CUTLASS: promotion).

Tensor cores add products to a sum with fewer bits than f32 has, and cut off the rest: the larger
the sum, the more is lost.  Folded every so many terms into sums of the FMA units, which are rounded
to nearest, it stays small.
"""

from __future__ import annotations

from dataclasses import replace

from gemmgen.base.errors import Refusal
from gemmgen.base.source import remainder
from gemmgen.ir.atoms import ATOMS, Via
from gemmgen.ir.edit import contraction, edit_loops, pipeline_of
from gemmgen.ir.nodes import Contract, Fold, Kernel, Loop
from gemmgen.ir.problem import Problem
from gemmgen.passes.base import Stated

PART = "part"
"""The sums of an instruction, since they were folded."""


def promoted(kernel: Kernel, problem: Problem, terms: int, via: Via, stated: Stated) -> Kernel:
    """``kernel`` with the sums of its tensor cores folded into its own every ``terms`` along k;
    raises ``Refusal`` if it can't be."""
    _check_sums(kernel, problem, via, stated)
    _check_terms(kernel, terms, via, stated)
    fold = Fold("acc", PART, terms, origins=(stated.origin,))

    def steps(loop: Loop) -> Loop:
        summed = (replace(s, acc=PART) if isinstance(s, Contract) else s for s in loop.body)
        return replace(loop, body=(*summed, fold))

    part = replace(kernel.buffer("acc"), name=PART, origins=(stated.origin,))
    acc = kernel.buffer("acc")
    others = (buffer for buffer in kernel.buffers if buffer != acc)
    return edit_loops(replace(kernel, buffers=(*others, part, acc)), steps)


def _check_sums(kernel: Kernel, problem: Problem, via: Via, stated: Stated) -> None:
    if problem.accumulate != "f32":
        raise Refusal(
            "promote folds sums of tensor cores that have fewer bits than f32",
            at=stated.span_of("promote"),
            notes=(f"sums of {problem.a.dtype} are {problem.accumulate}, which lose nothing",),
            hint="leave promote out",
        )
    if not kernel.spread.has_coordinates:
        raise Refusal(
            f"tensor_core via={via} takes no promote",
            at=stated.span_of("promote"),
            notes=("no lane knows which sums it has, and fragments of WMMA are what it adds to",),
            hint="via=mma, which has sums in registers",
        )


def _check_terms(kernel: Kernel, terms: int, via: Via, stated: Stated) -> None:
    """Checks that sums are folded behind whole steps: some of a tile, or some tiles."""
    pipeline = pipeline_of(kernel)
    assert pipeline is not None
    step, each = pipeline.step, ATOMS[contraction(kernel).atom].k
    within = [size for size in range(each, step, each) if step % size == 0]
    atom, whole = ATOMS[contraction(kernel).atom], tuple[str, ...]()
    if atom.in_place and atom.splits and terms % step:
        # All terms of a tile are multiplied for one product before those of the next.
        within = []
        whole = ("all terms of a tile are multiplied for one product of parts before the next",)
    if terms in within or terms % step == 0:
        return
    known = (*within, max(1, terms // step) * step, -(-terms // step) * step)
    near = sorted({*[s for s in known if s < terms][-1:], *[s for s in known if s > terms][:1]})
    arithmetic = f"{step} % {terms} = {step % terms}"
    if whole and terms < step:
        arithmetic = f"{terms} < {step}"
    elif terms > step:
        arithmetic = remainder(terms, step)
    elif step % terms == 0 and not whole:
        arithmetic = f"via={via} multiplies {each} of them at once, and {remainder(terms, each)}"
    raise Refusal(
        f"promote={terms}: sums are folded behind whole steps along {pipeline.letter}",
        at=stated.span_of("promote"),
        notes=(*whole, f"a tile has {step} along {pipeline.letter}: {arithmetic}"),
        hint=" or ".join(f"promote={size}" for size in near),
    )
