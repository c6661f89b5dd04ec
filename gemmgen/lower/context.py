"""What every part of lowering asks: the kernel, its names, its guards, its addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

from gemmgen.base.record import record
from gemmgen.ir import names
from gemmgen.ir.dtypes import widest
from gemmgen.ir.edit import pipeline_of
from gemmgen.ir.expanded import CopyTileAsync, Edge, ExpandedKernel, Load, Stage, Transfer
from gemmgen.ir.expr import Binary, Element, Expr, Int, Var, walk
from gemmgen.ir.facts import divides, equal_to
from gemmgen.ir.nodes import AxisSpread, Buffer, Copy, Kernel, Map, Program, Space
from gemmgen.ir.problem import Problem, Tensor
from gemmgen.ir.simplify import add, all_of, div, less, mod, mul, wide_product
from gemmgen.lower.swizzle import Known, swizzled

THREADS = Var("THREADS")
TID, LANE = Var("tid"), Var("lane")
PARTS, GROUPS = Var("PARTS"), Var("GROUPS")
FIRST = Int(0)
WORKSPACE, ARRIVED = Var("workspace"), Var("arrived")
"""Where blocks that share a tile leave their sums, and where they count themselves."""


@record
class Context:
    """One kernel being lowered."""

    program: Program
    expanded: ExpandedKernel
    edge: Edge = "stop"
    """How the tile that is copied may be ragged along k."""
    origin: Expr = FIRST
    """Its first k."""

    def copying(self, node: Load | Transfer | CopyTileAsync) -> Context:
        """The same, where ``node`` copies a tile."""
        return replace(self, edge=node.edge, origin=node.origin)

    @property
    def kernel(self) -> Kernel:
        return self.expanded.kernel

    @property
    def problem(self) -> Problem:
        return self.program.problem

    @property
    def letters(self) -> tuple[str, str]:
        """The letters of the output: row, column."""
        return self.problem.m, self.problem.n

    @cached_property
    def leaves_early(self) -> bool:
        """May a thread outside C return at once?  It may where no barrier waits for it."""
        spaces = {b.space for b in self.kernel.buffers}
        return Space.SHARED not in spaces and self.scalar_sums and not self.is_split

    @property
    def is_split(self) -> bool:
        """Do several blocks share a tile?"""
        return self.kernel.work.parts > 1

    @cached_property
    def scalar_sums(self) -> bool:
        """Does a thread own one element, kept in a plain variable?"""
        has_fragments = any(b.name.endswith("_frag") for b in self.kernel.buffers)
        return self.kernel.spread.registers == 1 and not has_fragments

    @property
    def by_fragments(self) -> bool:
        """Do the lanes of a warp own its tile together, as tensor cores have it?"""
        return self.kernel.spread.holding == "opaque"

    @property
    def has_warps(self) -> bool:
        return self.by_fragments or self.kernel.spread.by_warp

    def buffer(self, name: str) -> Buffer:
        return self.kernel.buffer(name)

    @property
    def by_lanes(self) -> bool:
        """Do the lanes of a warp share its sums, each with its own terms?"""
        return self.kernel.spread.holding == "lanes"

    def axis(self, letter: str) -> AxisSpread:
        terms = self.kernel.spread.k_layout
        return terms if terms and terms.letter == letter else self.kernel.spread.axis(letter)

    @property
    def named(self) -> tuple[str, ...]:
        """The letters of the output, batches first: what an epilogue has as numbers."""
        return (*self.kernel.work.batch, *self.letters)

    @cached_property
    def element(self) -> Var:
        """Numbers the neighbours of a wide access: ``e``, or ``elem`` where a letter, a tensor or a
        scalar is called ``e``."""
        value = _map_of(self.kernel).value
        chosen = {v.name for v in walk(value) if isinstance(v, Var)}
        chosen |= {self.kernel.name, *self.problem.letters, *(t.name for t in self.tensors)}
        return Var("elem" if "e" in chosen else "e")

    def tensor(self, name: str) -> Tensor:
        """A tensor of the kernel in global memory, with its batch letters."""
        return next(t for t in self.tensors if t.name == name)

    @cached_property
    def tensors(self) -> tuple[Tensor, ...]:
        """Those of the buffers, then the epilogue's own in the order in which it names them."""
        problem = self.problem
        known = {t.name: t for t in (problem.a, problem.b, problem.c)}
        found: dict[str, Tensor] = {}
        for buffer in self.kernel.buffers:
            if buffer.space is Space.GLOBAL:
                # A matrix between two kernels has the letters of the output.
                own = Tensor(buffer.name, (*problem.batch, *buffer.layout.order), buffer.dtype)
                found[buffer.name] = known.get(buffer.name, own)
        for e in walk(_map_of(self.kernel).value):
            if isinstance(e, Element) and e.buffer not in found:
                letters = tuple(i.name for i in e.indices if isinstance(i, Var))
                found[e.buffer] = Tensor(e.buffer, letters, self.problem.dtype(e.buffer))
        return tuple(found.values())

    # Extents and guards.

    def extent(self, letter: str) -> Var:
        """The problem's extent along ``letter``, under the name the kernel knows it by."""
        return Var(equal_to(self.program, self.problem.extent(letter)))

    def stop(self, letter: str) -> Var:
        """The index behind the last one of ``letter`` that the block uses: its part's stop, or the
        extent."""
        if self.is_split and letter == self.problem.k:
            return names.stop(letter)
        return self.extent(letter)

    def step(self, letter: str) -> int:
        """The tile's extent along ``letter``."""
        sizes = dict(self.kernel.work.tile)
        if letter in sizes:
            return sizes[letter]
        pipeline = pipeline_of(self.kernel)
        return pipeline.step if pipeline else 1

    def is_whole(self, letter: str) -> bool:
        """Is every tile full along ``letter``, so that no guard is needed?"""
        if letter in self.letters and self.leaves_early:
            return True
        return divides(self.program, self.problem.extent(letter), self.step(letter))

    def multiple(self, letter: str, width: int) -> bool:
        """Is the extent along ``letter`` assumed to be a multiple of ``width``?"""
        return divides(self.program, self.problem.extent(letter), width)

    def inside(self, letter: str, index: Expr) -> Expr | None:
        """``index`` is before the end; None where every tile is full."""
        if self.is_whole(letter):
            return None
        if letter != self.problem.k or self.edge == "stop":
            return less(index, self.stop(letter))
        if self.edge == "tile":
            return less(self.origin, self.stop(letter))
        return all_of(Binary(">=", index, Int(0)), less(index, self.stop(letter)))

    # Addresses.

    def pitch(self, tensor: str) -> Var:
        """A matrix's leading dimension: its parameter, or the extent it is assumed equal to."""
        return Var(equal_to(self.program, names.ld_name(tensor)))

    def at(self, tensor: str, letters: tuple[str, ...], index: dict[str, Expr]) -> Element:
        """An element of the block's matrix of a tensor in global memory, at its flat 64-bit
        offset."""
        matrix = self.problem.matrix(letters)
        if len(matrix) < 2:
            return Element(tensor, (index[matrix[0]] if matrix else Int(0),))
        row = wide_product(index[matrix[0]], self.pitch(tensor))
        return Element(tensor, (add(row, index[matrix[-1]]),))

    def in_shared(
        self,
        tile: Buffer,
        stage: Stage,
        index: dict[str, Expr],
        *,
        steps: Mapping[str, int] | None = None,
        below: Mapping[str, int] | None = None,
    ) -> Element:
        """An element of a shared tile, in its layout's order.

        Variables of ``index`` are multiples of what ``steps`` says, and smaller than ``below``.
        """
        row, column = tile.layout.order
        place, swizzle = index[column], tile.layout.swizzle
        if swizzle is not None:
            places = {names.place(x).name: self.axis(x).width for x in self.letters}
            unrolled = frozenset((self.problem.k, *(f"reg_{x}" for x in self.letters)))
            known = Known(self.sizes, places | dict(steps or {}), below or {}, unrolled)
            place = swizzled(swizzle, index[row], tile.extent(row), place, known)
        return Element(tile.name, (*_present(stage), index[row], place))

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The values of the kernel's constants."""
        found = {THREADS.name: self.kernel.spread.threads}
        for letter in (*self.letters, self.problem.k):
            found[names.block(letter).name] = self.step(letter)
        for letter in self.letters:
            axis = self.axis(letter)
            found[names.warp(letter).name] = axis.extent // axis.warps
            found[names.registers(letter).name] = axis.registers
            found[names.piece(letter).name] = axis.width
            found[names.lanes(letter).name] = axis.lanes
        return found

    # A thread's elements.

    def own(self, letter: str, register: Expr, step: int = 1) -> Expr:
        """The tile's element in the thread's register ``register`` (a multiple of ``step``)."""
        axis = self.axis(letter)
        first = names.place(letter)
        if axis.registers == 1:
            return first
        if axis.pieces == 1:
            return add(first, register)
        lanes, piece = names.lanes(letter), names.piece(letter)
        if axis.width == 1 or step == axis.width:
            return add(first, mul(register, lanes))
        jump = mul(div(register, piece), mul(piece, lanes))
        return add(first, jump, mod(register, piece))

    def store_width(self, node: Map) -> int:
        """Elements that are stored at once: a temporary's may be wider than C's, and fewer."""
        return min(node.width, widest(self.buffer(node.dst).dtype))

    def sum_at(self, registers: dict[str, Expr]) -> Element | Var:
        """The register that holds the sum at these register indices."""
        if self.scalar_sums:
            return Var("acc")
        return Element("acc", tuple(registers[letter] for letter in self.letters))


def _map_of(kernel: Kernel) -> Map:
    return next(s for s in kernel.body if isinstance(s, Map))


def fragment_at(slot: Stage, name: str, register: Expr) -> Element:
    return Element(name, (*_present(slot), register))


def _present(stage: Stage) -> tuple[Expr, ...]:
    return () if stage.index is None else (stage.index,)


def next_name(copy: Copy) -> str:
    """The staging registers of a copy: ``A_next``."""
    return f"{copy.src}_next"


def after(first: Expr, by: int) -> Expr:
    """The index ``by`` elements behind ``first``."""
    return Binary("+", first, Int(by)) if by else first
