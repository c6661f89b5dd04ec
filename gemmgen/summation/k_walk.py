"""The additions of one block in the order of its program: a walk over the expanded body for one K.

Only what decides the order is run: loops and conditions, which tile is in which stage, and what is
multiplied and added.  Roles run one after another, the producer first; a wait for a full barrier
takes the oldest tile that was copied to it.

Over 300 lines: a case for each kind of statement of one walk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from gemmgen.base.record import record
from gemmgen.ir.barriers import BarrierArray
from gemmgen.ir.blocked_letters import block, plain
from gemmgen.ir.buffers import Space
from gemmgen.ir.control import AdvanceRing, Assign, Block, Break, Define, For, If
from gemmgen.ir.edit import pipeline_of
from gemmgen.ir.expanded import (
    CopyBox,
    CopyTileAsync,
    DescribeOperands,
    Fetch,
    Load,
    LoadLaneSlice,
    Multiply,
    MultiplyAgain,
    OneThread,
    ReadScales,
    Release,
    Stage,
    Store,
    Tiles,
    Timed,
    Transfer,
    Unscale,
    WarpReduce,
)
from gemmgen.ir.expr import Element, Expr, Int, Var, walk
from gemmgen.ir.instruction import Instruction
from gemmgen.ir.nodes import Init, Kernel, Map, Promote
from gemmgen.ir.output_slices import StageSlice, StoreBoxes, StoreSlice
from gemmgen.ir.partial_sums import Arrive, ReducePartials, StorePartial
from gemmgen.ir.warp_roles import WarpRoles
from gemmgen.summation.walk_values import Unknown, Value, evaluate

THREAD = "threadIdx.x"
ENDS = ("wgmma_end", "wgmma_end_i32")
"""Instructions that name accumulators and leave their values."""
MOST = 200_000
"""Statements after which a walk gives up."""


class WalkEnded(Exception):
    """The walk can't go on: ``names`` decide what it does, or ``what`` is not known."""

    def __init__(self, what: str, names: frozenset[str] = frozenset()):
        super().__init__(what)
        self.what, self.names = what, names


@record
class Products:
    """Products of the elements ``first`` to ``stop`` along k, of these terms of split operands,
    added in one accumulation."""

    first: int
    stop: int
    terms: tuple[int, int] = (0, 0)


@record
class PartialAccumulator:
    """Accumulations that are a sum of their own before they are added."""

    additions: tuple[Addition, ...]


@record
class Combination:
    """What is done with the accumulators besides adding products: ``name`` says it."""

    name: str


Addition = Products | PartialAccumulator | Combination


@record
class Walked:
    """``additions``: what is added to an element's accumulator, in order, which begins at zero.
    ``stored``: the expressions of C in which it is used."""

    additions: tuple[Addition, ...]
    stored: tuple[Expr, ...]


class Walk:
    """One run of a block's body.  ``values`` has the constants and the arguments by name."""

    def __init__(self, kernel: Kernel, values: Mapping[str, Value], depth: int):
        """``depth``: elements along k that one ``Multiply`` takes."""
        self._kernel, self._values, self._depth = kernel, dict(values), depth
        pipeline = pipeline_of(kernel)
        self._letter = pipeline.letter if pipeline else ""
        self._tiles: dict[tuple[str, Value], Value] = {}
        self._loaded: dict[str, Value] = {}
        self._arriving: dict[tuple[str, Value, str], deque[tuple[Value, Value]]] = {}
        self._scales: dict[str, Value] = {}
        self._accumulators: dict[str, list[Addition]] = {}
        self._stored: list[Expr] = []
        self._count = 0

    def run(self, body: tuple[Timed, ...]) -> Walked:
        """The additions of the whole ``body``; raises ``WalkEnded``."""
        self._body(body)
        name = self._kernel.accumulator.name
        return Walked(tuple(self._accumulators.get(name, ())), tuple(dict.fromkeys(self._stored)))

    # Control.

    def _body(self, body: tuple[Timed, ...]) -> bool:
        """Runs the statements; whether a ``break`` ended them."""
        return any(self._statement(node) for node in body)

    def _statement(self, node: Timed) -> bool:
        self._count += 1
        if self._count > MOST:
            raise WalkEnded("the program is too long")
        match node:
            case For():
                return self._loop(node)
            case If():
                return self._body(node.body if self._decided(node.condition) else node.otherwise)
            case Break():
                return bool(self._decided(node.condition))
            case Block():
                return self._body(node.body)
            case OneThread():
                if node.condition is None or self._decided(node.condition):
                    self._body(node.body)
            case Tiles():
                self._body(node.before)
                self._body(node.body)
            case WarpRoles():
                for role in sorted(node.roles, key=lambda role: _multiplies(role.body)):
                    self._values[THREAD] = role.first
                    self._body(role.body)
            case _:
                rule = _RULES.get(type(node))
                if rule is None:
                    raise WalkEnded(f"{type(node).__name__} is not known")
                rule(self, node)
        return False

    def _loop(self, node: For[Timed]) -> bool:
        index, stop, step = map(self._decided, (node.start, node.stop, node.step))
        while index < stop:
            self._values[node.variable] = index
            if self._body(node.body):
                break
            index += step
        return False

    def _value(self, expr: Expr) -> Value:
        return evaluate(expr, self._values)

    def _decided(self, expr: Expr) -> int:
        found = self._value(expr)
        if isinstance(found, Unknown):
            raise WalkEnded("what is added depends on more than K", found.names)
        return found

    def _stage(self, stage: Stage) -> Value:
        return 0 if stage is None else self._value(stage)

    def define(self, node: Define) -> None:
        self._values[node.name] = self._value(node.value)

    def assign(self, node: Assign) -> None:
        if isinstance(node.target, str):
            self._values[node.target] = self._value(node.value)
        elif node.target.buffer in self._accumulators:
            raise WalkEnded(f"{node.target.buffer} is assigned")

    def advance(self, node: AdvanceRing) -> None:
        for each in node.assignments:
            self.assign(each)

    def instruct(self, node: Instruction) -> None:
        """A wait for a full barrier takes what was copied to it; else the order stays."""
        if node.result:
            self._values[node.result] = 0
        if node.name == "try_wait":
            barrier = node.operands[0]
            assert isinstance(barrier, Element)
            self._arrive(barrier.buffer, self._value(barrier.indices[0]))
            return
        named = {x.name for each in node.operands for x in walk(each) if isinstance(x, Var)}
        held = {buffer.name for buffer in self._kernel.buffers if buffer.spread}
        if named & held and node.name not in ENDS:
            raise WalkEnded(f"{node.name} takes the accumulators")

    # Tiles.

    def _arrive(self, barrier: str, at: Value) -> None:
        for (name, stage, tile), queue in self._arriving.items():
            if (name, stage) == (barrier, at) and queue:
                place, origin = queue.popleft()
                self._tiles[tile, place] = origin

    def copy_box(self, node: CopyBox) -> None:
        barrier = node.barrier.buffer, self._value(node.barrier.indices[0]), node.copy.dst
        queue = self._arriving.setdefault(barrier, deque())
        queue.append((self._stage(node.stage), self._value(node.origin)))

    def transfer(self, node: Transfer | CopyTileAsync) -> None:
        self._tiles[node.copy.dst, self._stage(node.stage)] = self._value(node.origin)

    def load(self, node: Load) -> None:
        self._loaded[node.copy.dst] = self._value(node.origin)

    def store(self, node: Store) -> None:
        loaded = self._loaded.get(node.copy.dst, Unknown(frozenset((node.copy.dst,))))
        self._tiles[node.copy.dst, self._stage(node.stage)] = loaded

    def fetch(self, node: Fetch) -> None:
        at = self._at(node.copy.src, node.stage, node.k, node.origin)
        self._tiles[node.copy.dst, self._stage(node.slot)] = at

    def load_lanes(self, node: LoadLaneSlice) -> None:
        for copy in node.copies:
            self._tiles[copy.dst, 0] = self._value(node.origin)

    def _at(self, name: str, stage: Stage, k: Expr, origin: Expr | None) -> Value:
        """The first element along k of a step: of a tile in ``stage``, of registers, or of
        global memory."""
        space = self._kernel.buffer(name).space
        if space is Space.GLOBAL:
            return self._value(k if origin is None else origin + k)
        nothing = Unknown(frozenset((name,)))
        found = self._tiles.get((name, self._stage(stage)), nothing)
        if space is Space.REGISTER or isinstance(found, Unknown):
            return found
        return evaluate(Int(found) + k, self._values)

    # Accumulators.

    def init(self, node: Init) -> None:
        self._accumulators[node.dst] = []

    def multiply(self, node: Multiply) -> None:
        contract = node.contract
        if node.accumulate is not None and not self._decided(node.accumulate):
            self._accumulators[contract.acc] = []
        first, other = (
            self._at(name, stage, node.k, node.origin)
            for name, stage in ((contract.a, node.a_stage), (contract.b, node.b_stage))
        )
        for each in (first, other):
            if isinstance(each, Unknown):
                raise WalkEnded("what is multiplied depends on more than K", each.names)
        assert isinstance(first, int)
        if first != other:
            raise WalkEnded(
                f"k = {first} of {contract.a} is multiplied by k = {other} of {contract.b}"
            )
        terms = node.a_part, node.b_part
        products = Products(first, first + self._depth, terms)
        self._accumulators.setdefault(contract.acc, []).append(products)

    def read_scales(self, node: ReadScales) -> None:
        """Of each tensor of factors the first element along k of the tile that they are of."""
        for name in node.scales:
            if self._kernel.buffer(name).space is Space.GLOBAL:
                self._scales[name] = self._value(node.origin)
            else:
                place, nothing = self._stage(node.stage), Unknown(frozenset((name,)))
                self._scales[name] = self._tiles.get((name, place), nothing)

    def _check_scales(self, name: str, part: list[Addition]) -> None:
        """Raises ``WalkEnded`` unless the factors in ``name`` are those of the block along k that
        the products of ``part`` are in."""
        letters = self._kernel.buffer(name).letters
        size = next(block(x) for x in letters if plain(x) == self._letter)
        read = self._scales.get(name, Unknown(frozenset((name,))))
        if isinstance(read, Unknown):
            raise WalkEnded("what multiplies an accumulator depends on more than K", read.names)
        for each in part:
            if isinstance(each, Products) and each.first // size != read // size:
                raise WalkEnded(f"k = {each.first} is scaled by {name} of k = {read}")

    def promote(self, node: Promote) -> None:
        part = self._accumulators.pop(node.part, [])
        for name in node.scales:
            self._check_scales(name, part)
        if part:
            self._accumulators.setdefault(node.dst, []).append(PartialAccumulator(tuple(part)))

    def reduce_lanes(self, _node: WarpReduce) -> None:
        self._step("lanes")

    def store_partial(self, node: StorePartial) -> None:
        self._step(f"store {node.scope}{' atomic' if node.atomic else ''}")

    def reduce(self, node: ReducePartials) -> None:
        self._step(f"reduce {node.scope}{' atomic' if node.atomic else ''}")

    def again(self, _node: MultiplyAgain) -> None:
        self._step("again")

    def _step(self, name: str) -> None:
        self._accumulators.setdefault(self._kernel.accumulator.name, []).append(Combination(name))

    def output(self, node: Map | StageSlice) -> None:
        written = node.map if isinstance(node, StageSlice) else node
        self._stored.append(written.value)

    def nothing(self, _node: object) -> None:
        """It orders accesses, or multiplies by powers of two, and adds nothing."""


_RULES: Mapping[type, Callable[[Walk, Any], None]] = {
    Define: Walk.define,
    Assign: Walk.assign,
    AdvanceRing: Walk.advance,
    Instruction: Walk.instruct,
    CopyBox: Walk.copy_box,
    Transfer: Walk.transfer,
    CopyTileAsync: Walk.transfer,
    Load: Walk.load,
    Store: Walk.store,
    Fetch: Walk.fetch,
    LoadLaneSlice: Walk.load_lanes,
    Init: Walk.init,
    Multiply: Walk.multiply,
    Promote: Walk.promote,
    ReadScales: Walk.read_scales,
    WarpReduce: Walk.reduce_lanes,
    StorePartial: Walk.store_partial,
    ReducePartials: Walk.reduce,
    MultiplyAgain: Walk.again,
    Map: Walk.output,
    StageSlice: Walk.output,
    **dict.fromkeys(
        (Arrive, BarrierArray, DescribeOperands, Release, StoreSlice, StoreBoxes, Unscale),
        Walk.nothing,
    ),
}


def _multiplies(body: tuple[Timed, ...]) -> bool:
    """Whether a role holds accumulators; those that only copy come first."""
    return any(isinstance(node, Tiles) and node.computes for node in body)
