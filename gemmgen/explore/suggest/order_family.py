"""The one summation order of all schedules for a request with ``require same_bits``.

It follows from the types, the GPU and the extents that the line does not name: the instruction is
wgmma if TMA takes the tensors whatever the named extents are, else mma.sync, else fmaf.  K is in
one slice, no lanes share a sum, accumulations begin at k = 0; split f32 (``fast``) is
promoted at the usual interval, all else not at all.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from gemmgen.base.record import record
from gemmgen.explore.cost import Kind
from gemmgen.explore.request import Request
from gemmgen.explore.suggest.warpgroup_plan import PROMOTE
from gemmgen.explore.suggest.warpgroup_plans import atoms_of_warpgroups, takes_warpgroups
from gemmgen.explore.warpgroup_cost import ATOM_BYTES
from gemmgen.ir.atoms import ATOMS, VIA, Atom
from gemmgen.ir.decompositions import DECOMPOSITIONS, products_of
from gemmgen.ir.dtypes import BYTES
from gemmgen.pipeline import Emitted
from gemmgen.schedule.roles import batches
from gemmgen.summation import SummationOrder, summation_order
from gemmgen.summation.order_reading import instruction_of
from gemmgen.summation.order_value import Slices


@record
class OrderFamily:
    """What the orders of a family have in common; all else of an order follows from the problem.

    ``terms``: pairs of terms of split operands; ``pair_extent``: how far along k each goes.
    """

    atom: Atom
    terms: tuple[tuple[int, int], ...] = ()
    pair_extent: int = 0
    interval: int = 0

    @property
    def warpgroups(self) -> bool:
        """Whether warpgroups multiply (wgmma)."""
        return ATOMS[self.atom].in_place

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The forms of threads and warps that sum so."""
        if self.atom == "fma":
            return ("block", "direct")
        return () if self.warpgroups else ("tensor",)

    def has(self, order: SummationOrder) -> bool:
        """Whether a schedule with this ``order`` is one of the family."""
        if order.depends or order.unread or order.walk != "ascending":
            return False
        if order.instruction == "integers":
            return True
        return (
            order.instruction == instruction_of(self.atom)
            and order.slices == Slices()
            and order.lanes == (1, 0)
            and order.aligned == "first"
            and order.interval == self.interval
            and order.terms == self.terms
            and order.pair_extent == self.pair_extent
        )

    def made(self, emitted: Emitted) -> bool:
        """Whether the kernel adds so."""
        return self.has(summation_order(emitted.program, emitted.lowered.kernels[0]))


def family_of(request: Request) -> OrderFamily | None:
    """The family of a request with ``require same_bits``; None without that line."""
    return None if request.problem.same_bits is None else _family(request)


@lru_cache(64)
def _family(request: Request) -> OrderFamily:
    worst = _least(request)
    # Of C that is stored by columns only few rows have plans for warpgroups.
    if takes_warpgroups(worst) and worst.along["c"] == "n":
        atom: Atom = next(x for x in VIA["wgmma"] if ATOMS[x] in atoms_of_warpgroups(worst))
        into = request.terms
        if into is None:
            terms = ATOM_BYTES // BYTES[request.dtype["a"]]
            return OrderFamily(atom, interval=terms if request.scaled_terms else 0)
        split: Atom = next(x for x in VIA["wgmma"] if ATOMS[x].splits == "f32")
        pairs = products_of(DECOMPOSITIONS[into].parts, DECOMPOSITIONS[into].products[0])
        return OrderFamily(split, pairs, ATOM_BYTES // BYTES[into], PROMOTE[into])
    return OrderFamily(request.atom or "fma")


def _least(request: Request) -> Request:
    """The request with extents of 1 along the letters of ``same_bits``: no row that they are part
    of the length of begins at a multiple of anything."""
    asked, gemm = request.problem.same_bits, request.problem.gemm
    assert asked is not None
    order = (*request.letters, *batches(gemm))
    sizes = zip(order, request.shape, strict=True)
    shape = tuple(1 if letter in asked.letters else size for letter, size in sizes)
    fixed = {
        access.tensor
        for access in request.access.values()
        if not any(letter in asked.letters for letter in access.indices[1:])
    }
    pitches = tuple(pitch for pitch in request.pitches if pitch[0] in fixed)
    return replace(request, shape=shape, pitches=pitches)
