"""Choose the atom that multiplies a problem's types on its target; refuse types that no atom
multiplies."""

from __future__ import annotations

from gemmgen.base.errors import Refusal
from gemmgen.base.source import Span, indexed
from gemmgen.ir.atoms import ATOMS, VIA, Atom, AtomTraits, Via
from gemmgen.ir.dtypes import BYTES, DType
from gemmgen.ir.edit import contraction, pipeline_of
from gemmgen.ir.nodes import Kernel, Program
from gemmgen.ir.problem import Problem
from gemmgen.ir.target import ONLY, SINCE, offers


def chosen_atom(via: Via, program: Program, at: Span) -> Atom:
    """The first of ``via`` that multiplies these types on this architecture, if there is one with
    an extent that divides the tile's along k; raises ``Refusal``."""
    problem, target = program.problem, program.target
    fitting = _multiplying(via, problem, contraction(program.main).into)
    if not fitting:
        raise _unknown_types(via, problem, at)
    offered: list[Atom] = [atom for atom in fitting if offers(target, atom)]
    if offered:
        pipeline = pipeline_of(program.main)
        for atom in offered:
            if pipeline and pipeline.step % ATOMS[atom].k == 0:
                return atom
        return offered[0]
    first = min(fitting, key=lambda atom: SINCE.get(atom, 0))
    if first in ONLY:
        raise Refusal(
            f"tensor_core via={via} is an instruction of {ONLY[first]} alone",
            at=at,
            notes=(f"the target is {target}",),
            hint=f"target {ONLY[first]}, or via=mma",
        )
    raise Refusal(
        f"{target} has no tensor_core via={via} of {problem.a.dtype}",
        at=at,
        notes=(f"{ATOMS[first].shape} came with sm_{SINCE[first]}",),
        hint=f"target sm_{SINCE[first]} or later, or register_block",
    )


def _multiplying(via: Via, problem: Problem, into: DType | None = None) -> list[Atom]:
    """The atoms of an instruction that multiply the types of a problem, or those that split its
    operands ``into`` parts of another."""
    a, b = problem.a.dtype, problem.b.dtype
    wanted, whole = (into or a, into or b, problem.accumulate), a if into else None
    return [
        atom for atom in VIA[via] if wanted in ATOMS[atom].products and ATOMS[atom].splits == whole
    ]


def _unknown_types(via: Via, problem: Problem, at: Span) -> Refusal:
    a, b = problem.a, problem.b
    products = tuple(product for atom in VIA[via] for product in ATOMS[atom].products)
    types: tuple[DType, ...] = tuple(dict.fromkeys(left for left, _, _ in products))
    alike = all(left == right for left, right, _ in products)
    alike_in_memory = (t for t in types if BYTES[t] == BYTES[a.dtype] == BYTES[b.dtype])
    wanted = next((t.dtype for t in (a, b) if t.dtype in types), next(alike_in_memory, types[0]))
    ways = [other for other in ("mma", "wgmma") if other != via and _multiplying(other, problem)]
    hint = f"via={ways[0]}" if ways else f"dtype {a.name}={wanted} {b.name}={wanted}"
    return Refusal(
        f"tensor_core via={via} multiplies {', '.join(types[:-1])} or {types[-1]}, with one type "
        f"for both operands{'' if alike else ', or two FP8'}",
        at=at,
        notes=(f"{a.name} is {a.dtype}, {b.name} is {b.dtype}",),
        hint=f"{hint}{_parts(via, problem)}, or register_block",
    )


def _parts(via: Via, problem: Problem) -> str:
    """The hint to use decompose, if it applies to these operands."""
    splits = (ATOMS[atom].splits for atom in VIA[via])
    found = problem.a.dtype == problem.b.dtype and problem.a.dtype in splits
    return ", decompose into=bf16" if found else ""


def check_lines(kernel: Kernel, problem: Problem, traits: AtomTraits, via: Via, at: Span) -> None:
    """Check that tiles are K-major if the instruction can't transpose their type."""
    contract, k = contraction(kernel), problem.k
    for tensor, name in ((problem.a, contract.a), (problem.b, contract.b)):
        tile, size = kernel.buffer(name), BYTES[tensor.dtype]
        letter = tile.letters[-1]
        if tensor.dtype in traits.mn_major or letter == k:
            continue
        order = indexed(tensor.name, (letter, k))
        raise Refusal(
            f"tensor_core via={via} reads {tensor.dtype} along {k} alone, and "
            f"{indexed(tile.name, tile.letters)} lies along {letter}",
            at=at,
            notes=(f"{_TRANSPOSES[via]} elements of 2 bytes; these have {size}",),
            hint=_TRANSPOSE_HINTS[traits.in_place].format(tile=order),
        )


_TRANSPOSES = {"mma": "ldmatrix.trans transposes", "wgmma": "a descriptor transposes"}
_TRANSPOSE_HINTS = {
    False: "cache_shared {tile}, which transposes the tile, or a matrix that is stored so",
    True: "a gemm with {tile}",
}
"""The hints.  TMA, which writes tiles that are read in place, cannot transpose."""
