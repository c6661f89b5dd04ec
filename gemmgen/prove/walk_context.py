"""What a walk over a kernel knows everywhere: its parameters, its theory, what it has found.

Over 300 lines: one class, with a case for each kind of requirement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

import numpy as np

from gemmgen.base.record import record
from gemmgen.ir.blocked_letters import block, plain
from gemmgen.ir.decompositions import DECOMPOSITIONS, products_of
from gemmgen.ir.interface import INT_MAX
from gemmgen.ir.lowered import LoweredKernel
from gemmgen.ir.param import Param
from gemmgen.ir.requirement import (
    Aligned,
    AtLeast,
    AtLeastBlocks,
    AtMost,
    Equal,
    MultipleOf,
    Within,
)
from gemmgen.ir.target import WARP
from gemmgen.numerics.operators import Bools, Ints
from gemmgen.prove import conditions, data, polynomials
from gemmgen.prove.conditions import Condition
from gemmgen.prove.data import Data, Place, ScalarArgument
from gemmgen.prove.goals import Fact, Goal, KnownViolation, Ledger, Range, Where
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.launch_grid import grid_of
from gemmgen.prove.mbarriers import BarrierStates, barrier_count, conditions_of
from gemmgen.prove.partials import Partials
from gemmgen.prove.polynomials import Polynomial
from gemmgen.prove.questions import Questions
from gemmgen.prove.rerolled_loops import rerolled
from gemmgen.prove.samples import drawn
from gemmgen.prove.shared_state import Events, new_cells
from gemmgen.prove.state import Binding, GlobalPlace, SharedPlace, WalkScope, WalkState
from gemmgen.prove.theory import Theory
from gemmgen.prove.warp_clocks import new_clocks

INT64_MAX = 2**63 - 1
MOST_EPOCHS = 6 << 20
"""Elements of shared memory times warps: a state has 8 bytes for each, and dozens are kept."""

Found = tuple[Ledger, int]
"""What a walk has found until some point: its ledger, and how many stores to C."""


@record
class OutputStore:
    """A store of one element of C for each thread."""

    at: Place
    value: Data
    path: tuple[Condition, ...]
    mask: Bools | None
    where: Where


class WalkContext:
    """One kernel, for symbolic sizes; those in ``given`` have these values.

    ``exact``: no loop of unknown length came before, whose invariant may say less than is so;
    ``assumed`` are limits of a launch, beside the requirements of a call.
    ``periods`` has the step and the period of each such loop; ``stopped`` says why the walk
    did not come to the end.  Nothing is known of symbols in
    ``free`` but their range.  ``block_scales`` has the tensor of scales of each operand that has
    one; ``base`` the operand of each name that its elements may have, times their scales or not.
    ``named`` are the threads of each named barrier.  ``later`` are
    stores to tiles that are not a block's first.  ``bounded``: it looks for violations of some
    trips, not for a proof.

    The blocks of a cluster are walked as one block: ``threads`` are those of all of its ``ranks``,
    ``block_threads`` those of one; ``rank`` is the block of each.
    """

    def __init__(
        self,
        kernel: LoweredKernel,
        seconds: float,
        given: Mapping[str, int],
        questions: Questions,
    ):
        self.kernel, self.interface = rerolled(kernel), kernel.interface
        self.block_threads, self.ranks = self.interface.threads, self.interface.cluster_blocks
        self.threads = self.ranks * self.block_threads
        self.theory = Theory(self.threads, seconds, questions)
        self.ledger, self.events = Ledger(), Events()
        self.stores: list[OutputStore] = []
        self.later: list[OutputStore] = []
        self.statements: list[Where] = []
        self.where = Where()
        self.free: dict[str, tuple[int, int] | None] = {}
        self.exact, self.stopped = True, ""
        self.periods: list[tuple[int, int]] = []
        self.assumed: list[str] = []
        self.every = cast(Ints, np.arange(self.threads))
        self.rank = self.every // self.block_threads
        self.aligned: dict[str, int] = {}
        self.named: dict[tuple[int, int], bytes] = {}
        self._permuted: dict[tuple[int, tuple[int, ...]], tuple[Data, Data]] = {}
        self.theory.samples = [*drawn(self.interface, given)]
        self.sizes = {p.name: self._size(p, given) for p in self.interface.params if _is_size(p)}
        self.long = {p.name for p in self.interface.params if p.kind == "stride"}
        self._require()
        self.output = next(p for p in self.interface.tensors if p.written)
        letters = dict.fromkeys(plain(x) for p in self.interface.tensors for x in p.indices)
        self.contracted = [x for x in letters if x not in self.output.indices]
        self.factors = [
            p.name for p in self.interface.tensors if set(self.contracted) & set(p.indices)
        ]
        count = self.interface.arithmetic.products
        into = self.interface.arithmetic.into
        self.pairs = products_of(DECOMPOSITIONS[into].parts, count) if into else ()
        self.scales = {p.name for p in self.interface.params if p.scales is not None}
        self.grid = grid_of(self.interface, self.theory, self.sizes)
        if self.ranks > 1 and self.block_threads % WARP:
            raise Unsupported("clusters of blocks with a part of a warp")
        self.block_scales = dict(self._block_scales())
        self.scale_tensors = {*self.block_scales.values()}
        self.base = {name: name for name in self.factors}
        self.base |= {self.scaled(name): name for name in self.block_scales}
        self.bounded = bool(given)
        parts, added = self.interface.parts, not self.interface.ordered
        groups = self.interface.groups
        self.partials = Partials(parts, self.threads, groups, added) if parts > 1 else None

    # ---- what is assumed ----

    def _size(self, param: Param, given: Mapping[str, int]) -> Polynomial:
        if param.name in given:
            return polynomials.fixed(given[param.name])
        own = self.theory.symbol(param.name)
        self.theory.sizes.append(param.name)
        least = 1 if param.name in self.interface.shaping() else 0
        most = INT64_MAX if param.kind == "stride" else INT_MAX
        low = conditions.not_negative(polynomials.add(own, polynomials.fixed(-least)))
        self.theory.known(own, low, conditions.at_least(polynomials.fixed(most), own))
        return own

    def _require(self) -> None:
        for rule in self.interface.requirements:
            match rule:
                case AtLeast(name, other):
                    self._known(name, conditions.at_least(self.sizes[name], self.sizes[other]))
                case AtLeastBlocks(name, other, elements):
                    spanned = polynomials.scale(self.sizes[name], elements)
                    self._known(name, conditions.at_least(spanned, self.sizes[other]))
                case AtMost(name, most):
                    self._known(
                        name, conditions.at_least(polynomials.fixed(most), self.sizes[name])
                    )
                case MultipleOf(name, divisor):
                    self._known(name, conditions.Multiple(self.sizes[name], divisor))
                    known = self.theory.multiples.get(name, 1)
                    self.theory.multiples[name] = int(np.lcm(known, divisor))
                case Equal(name, other):
                    apart = polynomials.subtract(self.sizes[name], self.sizes[other])
                    self._known(name, conditions.is_zero(apart))
                case Within(name, least, most):
                    own = self.sizes[name]
                    self._known(name, conditions.at_least(own, polynomials.fixed(least)))
                    self._known(name, conditions.at_least(polynomials.fixed(most), own))
                case Aligned(name, count):
                    self.aligned[name] = count

    def _known(self, name: str, condition: Condition) -> None:
        if not self.sizes[name].concrete:
            self.theory.known(self.sizes[name], condition)

    # ---- names ----

    def scope(self) -> WalkScope:
        names: dict[str, Binding] = dict(self.sizes)
        for param in self.interface.params:
            if param.kind == "scalar":
                names[param.name] = ScalarArgument(param.name)
            elif param.kind in ("tensor", "workspace", "counter"):
                names[param.name] = GlobalPlace(param, polynomials.ZERO)
        x, _ = self.interface.block
        thread = self.every % self.block_threads
        names |= {
            "threadIdx.x": polynomials.fixed(thread % x),
            "threadIdx.y": polynomials.fixed(thread // x),
            "blockIdx.x": self.grid.of_rank(self.grid.block, self.rank),
            "gridDim.x": self.grid.blocks,
        }
        names |= {one.name: polynomials.fixed(one.value) for one in self.kernel.constants}
        names |= {one.name: SharedPlace(one.name) for one in self.kernel.shared}
        return WalkScope(names)

    def state(self) -> WalkState:
        barriers = self.ranks * barrier_count(self.kernel.body)
        timed = barriers > 0 or bool(self.interface.maps)  # TMA may store without any mbarrier
        warps = -(-self.threads // WARP) if timed else 0
        counts = {one.name: self.ranks * int(np.prod(one.sizes)) for one in self.kernel.shared}
        if warps * sum(counts.values()) > MOST_EPOCHS:
            size = f"{sum(counts.values())} elements of shared memory, {warps} warps"
            raise Unsupported(f"{size}: the order of their accesses takes too much memory")
        cells = {name: new_cells(count, warps) for name, count in counts.items()}
        if not timed:
            return WalkState(cells)
        clocks = new_clocks(warps, barriers, timed=self.ranks > 1)
        own = BarrierStates(warps, barriers, clocks.now.size, clocks.timed)
        if not barriers:  # TMA stores alone: the order of accesses is that of barriers
            own.begin()
        return WalkState(cells, clocks=clocks, barriers=own)

    def extent(self, letter: str) -> Polynomial:
        """The extent of a letter; of one that numbers blocks that of the elements."""
        return self.sizes[self.interface.extent(plain(letter))]

    def _block_scales(self) -> Iterator[tuple[str, str]]:
        """Each operand that has scales of blocks, and their tensor, which has the same letters."""
        for param in self.interface.tensors:
            if any(block(letter) > 1 for letter in param.indices):
                own = {plain(letter) for letter in param.indices}
                (of,) = (
                    each.name
                    for each in self.interface.tensors
                    if each.name in self.factors and set(each.indices) == own
                )
                yield of, param.name

    def scaled(self, operand: str) -> str:
        """The name of an operand's elements, each times the scale of its block: no tensor has
        it."""
        return f"{operand} * {self.block_scales[operand]}"

    def scales_of(self, name: str) -> str | None:
        """The scales that elements of this name are multiplied by."""
        base = self.base[name]
        return None if base == name else self.block_scales[base]

    def permuted(self, value: Data, lanes: tuple[int, ...]) -> Data:
        """``value`` with the number of each thread taken from the lane of its warp that ``lanes``
        names; computed once."""
        key = (id(value), lanes)
        if key not in self._permuted:
            own = self.every % WARP
            places = self.every - own + np.asarray(lanes)[own]
            self._permuted[key] = value, data.taken(value, places)
        return self._permuted[key][1]

    # ---- what is found ----

    def mark(self) -> Found:
        """What was found until now, for ``reset``."""
        return self.ledger.mark(), len(self.stores)

    def reset(self, mark: Found) -> None:
        """Forgets what was found since ``mark``."""
        ledger, stores = mark
        self.ledger.reset(ledger)
        del self.stores[stores:]

    def statement(self) -> int:
        """The number of the statement that is walked."""
        if not self.statements or self.statements[-1] is not self.where:
            self.statements.append(self.where)
        return len(self.statements) - 1

    def active(self, state: WalkState) -> Ints:
        """The numbers of the threads that are here."""
        return self.every if state.mask is None else self.every[state.mask]

    def by_rank(self, state: WalkState) -> list[tuple[int, WalkState]]:
        """``state`` in the threads of each block of a cluster that are here."""
        if self.ranks == 1:
            return [(0, state)]
        found: list[tuple[int, WalkState]] = []
        for rank in np.unique(self.rank[self.active(state)]):
            mine = cast(Bools, self.rank == rank)
            found.append((int(rank), self.masked(state, mine)))
        return found

    def masked(self, state: WalkState, mask: Bools) -> WalkState:
        """``state`` in those of its threads that are of ``mask``, with the same shared memory."""
        own = state.branch()
        own.mask = mask if state.mask is None else mask & state.mask
        return own

    def thread_text(self, thread: int) -> str:
        if self.ranks == 1:
            return f"thread {thread}"
        rank, own = divmod(thread, self.block_threads)
        return f"thread {own} of block {rank}"

    def claim(
        self,
        state: WalkState,
        fact: Fact,
        claim: Condition,
        about: str,
        address: tuple[str, tuple[Polynomial, ...]] = ("", ()),
        path: tuple[Condition, ...] = (),
        certain: bool = True,
    ) -> None:
        """A goal at this point."""
        full = (*state.path, *path)
        self.ledger.goal(Goal(fact, claim, full, state.mask, self.where, about, address, certain))

    def check(self, state: WalkState, fact: Fact, wrong: bool | Bools, about: str) -> bool:
        """A check of known numbers: whether no thread is ``wrong``."""
        self.ledger.count(fact)
        if wrong is False:
            return True
        if state.mask is not None:
            wrong = wrong & state.mask
        if not np.any(wrong):
            return True
        thread = int(np.argmax(wrong)) if isinstance(wrong, np.ndarray) else 0
        self.violated(state, fact, about, thread)
        return False

    def violated(
        self,
        state: WalkState,
        fact: Fact,
        about: str,
        thread: int = 0,
        certain: bool = True,
        assumed: tuple[Condition, ...] = (),
    ) -> None:
        sure, assumed = certain and self.exact, (*state.guard, *assumed)
        if state.barriers is not None:
            assumed = (*assumed, *conditions_of(state.barriers))
        own = KnownViolation(fact, about, state.path, thread, self.where, sure, assumed)
        self.ledger.violated(own)

    def ranged(self, state: WalkState, form: Polynomial, path: tuple[Condition, ...]) -> None:
        """``form`` must fit 32 bits, unless it has a stride, which is a long long."""
        if not form.concrete and not form.symbols & self.long:
            self.ledger.ranged(Range(form, (*state.path, *path), state.mask, self.where))


def _is_size(param: Param) -> bool:
    return param.kind in ("extent", "ld", "stride")
