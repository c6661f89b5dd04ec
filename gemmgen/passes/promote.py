"""promote: the accumulators of an instruction are promoted into others, and start again at zero
(CUTLASS: promotion).

Tensor cores keep fewer bits of an accumulator than f32 has, and truncate it: the larger the
accumulator, the larger the error. Every N terms it is added to an f32 accumulator, rounded to
nearest, and reset to zero, which keeps the error small. Split f32 (``decompose``) has the accuracy
of f32 only with a promotion interval.
"""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from gemmgen.base.errors import Refusal
from gemmgen.base.source import remainder
from gemmgen.ir.atoms import ATOMS, VIA, Via
from gemmgen.ir.blocked_letters import block, plain
from gemmgen.ir.buffers import Buffer, Role
from gemmgen.ir.edit import contraction, edit_loops, pipeline_of
from gemmgen.ir.nodes import Contract, Kernel, Loop, Promote
from gemmgen.ir.problem import Problem, Tensor
from gemmgen.passes.base import Stated, tile_with

PART = "part"
"""The partial accumulators: what an instruction accumulated since the last promotion."""
USUAL = 64
"""The longest promotion interval that a hint proposes for split f32."""
LONGEST = 128
"""The longest promotion interval of split f32."""


def promoted(kernel: Kernel, problem: Problem, terms: int, via: Via, stated: Stated) -> Kernel:
    """``kernel`` with the accumulators of its tensor cores promoted into its own every ``terms``
    along k; raises ``Refusal`` if it can't be."""
    _check_accumulators(kernel, problem, via, stated)
    _check_terms(kernel, terms, via, stated)
    scales = tuple(_factors(scaling.tensor) for scaling in problem.scales)
    names = tuple(buffer.name for buffer in scales)
    promotion = Promote("acc", PART, terms, names, origins=(stated.origin,))

    def steps(loop: Loop) -> Loop:
        summed = (replace(s, acc=PART) if isinstance(s, Contract) else s for s in loop.body)
        return replace(loop, body=(*summed, promotion))

    acc = kernel.accumulator
    part = replace(acc, name=PART, role=Role.PARTIAL, origins=(stated.origin,))
    others = (buffer for buffer in kernel.buffers if buffer != acc)
    return edit_loops(replace(kernel, buffers=(*others, *scales, part, acc)), steps)


def _factors(tensor: Tensor) -> Buffer:
    """The factors of an operand's blocks, in global memory."""
    shape = tuple((letter, None) for letter in tensor.letters)
    return Buffer(tensor.name, Role.TENSOR, tensor.dtype, shape)


def check_split(kernel: Kernel, problem: Problem, terms: int, via: Via, stated: Stated) -> None:
    """Refuse split f32 without a promotion interval (``terms`` 0) or with one that is too long.

    The accumulator of tensor cores is truncated at each step, so that its error grows with K: at
    K = 4096 it was 61 times that of sgemm, at K = 65536 up to 500 times.
    """
    contract, pipeline = contraction(kernel), pipeline_of(kernel)
    if contract.into is None or pipeline is None or 0 < terms <= LONGEST:
        return
    usual = usual_interval(via, pipeline.step)
    hint = f"tensor_core via={via} promote={usual}"
    if usual > LONGEST:
        hint = f"{tile_with(kernel, problem.k, USUAL)}, and tensor_core via={via} promote={USUAL}"
    if terms:
        raise Refusal(
            f"promote={terms}: the promotion interval of decompose is at most {LONGEST} terms",
            at=stated.span_of("promote"),
            notes=("tensor cores truncate, and the error of an interval grows with its terms",),
            hint=hint,
        )
    raise Refusal(
        "decompose without promote is less accurate than f32",
        at=stated.span,
        notes=(
            f"tensor cores truncate their accumulator, so that the error grows with {problem.k}: "
            f"to 61 times that of an f32 kernel at {problem.k} = 4096",
        ),
        hint=hint,
    )


def check_blocks(kernel: Kernel, problem: Problem, terms: int, via: Via, stated: Stated) -> None:
    """Refuse scales of blocks along k whose products would be added before they are scaled: each
    tile, and each promotion interval, must lie within one block."""
    pipeline = pipeline_of(kernel)
    if not problem.scales or pipeline is None:
        return
    k, step = problem.k, pipeline.step
    sizes = {
        scaling: block(letter)
        for scaling in problem.scales
        for letter in scaling.tensor.letters
        if plain(letter) == k
    }
    scaling, size = min(sizes.items(), key=lambda pair: pair[1])
    text = scaling.tensor.text
    if not terms:
        with_registers: Via = via if kernel.spread.has_coordinates else "mma"
        raise Refusal(
            f"tensor_core via={via} adds products before they can be scaled by {text}",
            at=stated.span,
            notes=(f"its accumulators must be promoted at least every {size} along {k}",),
            hint=f"tensor_core via={with_registers} promote={gcd(size, step)}",
        )
    if size % step:
        fitting = gcd(size, step)
        raise Refusal(
            f"a tile's terms along {k} belong to several blocks of {text}",
            at=stated.span,
            notes=(f"a tile has {step} along {k}: {remainder(size, step)}",),
            hint=f"{tile_with(kernel, problem.k, fitting)}, and promote={fitting}",
        )
    if terms > step:
        raise Refusal(
            f"promote={terms}: products are scaled by {text} tile by tile",
            at=stated.span_of("promote"),
            notes=(f"a tile has {step} along {k}",),
            hint=f"promote={step}",
        )


def usual_interval(via: Via, step: int) -> int:
    """The promotion interval that hints propose for split f32 and tiles of ``step`` terms: the
    longest up to ``USUAL`` that ends with whole steps, or else a tile."""
    atom = next(ATOMS[atom] for atom in VIA[via] if ATOMS[atom].splits)
    if atom.in_place or step <= USUAL:
        return max(1, USUAL // step) * step
    fitting = (size for size in range(atom.k, USUAL + 1, atom.k) if step % size == 0)
    return max(fitting, default=USUAL)


def _check_accumulators(kernel: Kernel, problem: Problem, via: Via, stated: Stated) -> None:
    if problem.accumulate != "f32":
        raise Refusal(
            "promote is for tensor-core accumulators with fewer bits than f32",
            at=stated.span_of("promote"),
            notes=(f"{problem.a.dtype} accumulates in {problem.accumulate}, which loses nothing",),
            hint="leave promote out",
        )
    if not kernel.spread.has_coordinates:
        raise Refusal(
            f"tensor_core via={via} takes no promote",
            at=stated.span_of("promote"),
            notes=(
                "no lane knows which accumulators it has, and fragments of WMMA are what it adds "
                "to",
            ),
            hint="via=mma, which has accumulators in registers",
        )


def _check_terms(kernel: Kernel, terms: int, via: Via, stated: Stated) -> None:
    """Checks that accumulators are promoted after whole steps: some of a tile, or some tiles."""
    pipeline = pipeline_of(kernel)
    assert pipeline is not None
    step, each = pipeline.step, ATOMS[contraction(kernel).atom].k
    within = [size for size in range(each, step, each) if step % size == 0]
    atom, whole = ATOMS[contraction(kernel).atom], tuple[str, ...]()
    if atom.in_place and atom.splits and terms % step:
        # All terms of a tile are multiplied for one product before those of the next.
        within = []
        whole = ("all of a tile is multiplied for one product of terms before the next",)
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
        f"promote={terms}: accumulators are promoted after whole steps along {pipeline.letter}",
        at=stated.span_of("promote"),
        notes=(*whole, f"a tile has {step} along {pipeline.letter}: {arithmetic}"),
        hint=" or ".join(f"promote={size}" for size in near),
    )
