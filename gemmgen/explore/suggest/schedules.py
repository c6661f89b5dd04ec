"""The schedule of a form for a request, with the choices that storage, types and extents fix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

from gemmgen.base.record import record
from gemmgen.explore.cost import Kind
from gemmgen.explore.request import Request
from gemmgen.ir.atoms import ATOMS, AtomTraits
from gemmgen.ir.dtypes import BYTES, widest
from gemmgen.ir.exprtext import format_expression
from gemmgen.ir.target import SINCE, WARP, has
from gemmgen.schedule.formatting import format_schedule
from gemmgen.schedule.roles import extents

UNROLLED = 8
"""Elements along k of a step from which on its loop is unrolled if nothing is staged."""
GUARDED = 16
"""The least side of a tile whose guards cost time."""
PAIR = 2
"""Adjacent accumulators of a lane of mma.sync."""
ASYNC_BYTES = 4
"""Its smallest copy."""
GROUPED = 16
"""The least number of slices of K that are reduced in groups."""


def groups_of(parts: int) -> int:
    """The number of groups for a two-stage reduction: about the square root of many parts."""
    if parts < GROUPED:
        return 1
    return max(each for each in range(1, int(parts**0.5) + 1) if parts % each == 0)


@record
class Form:
    """How a block computes its tile.

    ``block``: both operands are staged in shared memory; a warp computes ``warp``, a thread
    ``micro`` of it.  ``tensor``: the same, with tensor cores.  ``lanes``: the lanes of a warp split
    k for ``micro`` accumulators, and nothing is staged.  ``direct``: threads read operands
    from global memory.

    ``stages`` of the shared tiles; ``blocks``: minimum resident blocks per multiprocessor for
    ``launch_bounds`` (0 for the compiler's choice).
    """

    kind: Kind
    tile: tuple[int, int, int]
    micro: tuple[int, int] = (1, 1)
    warp: tuple[int, int] = (0, 0)
    stages: int = 2
    blocks: int = 0

    @property
    def name(self) -> str:
        return f"{self.tile[0]} x {self.tile[1]}"

    @property
    def threads(self) -> int:
        (m, n, _), (rows, columns) = self.tile, self.micro
        if self.kind == "tensor":
            return WARP * (m // self.warp[0]) * (n // self.warp[1])
        return (m // rows) * (n // columns) * (WARP if self.kind == "lanes" else 1)

    def mirrored(self) -> Form:
        """The same with rows and columns exchanged."""
        m, n, k = self.tile
        return replace(
            self,
            tile=(n, m, k),
            micro=self.micro[::-1],
            warp=self.warp[::-1],
        )


@record
class SettledForm:
    """``parts`` of k are reduced in ``groups``; ``through``: transposed tiles are loaded wide into
    registers and stored late; ``exact``: extents are assumed to be multiples of the tile's;
    ``vector``: the most adjacent elements of a row of C that a thread owns."""

    form: Form
    request: Request
    parts: int = 1
    groups: int = 1
    raster: int = 1
    through: bool = False
    exact: bool = False
    vector: int = 4

    @property
    def staged(self) -> str:
        """The operands in shared memory, by role."""
        return "ab" if self.form.kind in ("block", "tensor") else ""

    def transposed(self, role: str) -> bool:
        """Whether the operand is transposed on its way into shared memory: tensor cores read some
        types along k alone."""
        along_k = self.request.along[role] == "k"
        if self.form.kind == "tensor":
            return not along_k and self.request.dtype[role] not in self.traits.mn_major
        return role in self.staged and along_k

    @cached_property
    def asynchronous(self) -> bool:
        """Whether cp.async copies all tiles: it copies at least 4 bytes, and transposes no wider
        vectors."""
        if not self.staged or not has(self.request.gpu.arch, SINCE["cp_async"]) or self.through:
            return False
        return all(
            (1 if self.transposed(role) else self.load(role)) * BYTES[self.request.dtype[role]]
            >= ASYNC_BYTES
            for role in self.staged
        )

    def load(self, role: str) -> int:
        """The width of an access of global memory: of A and B into tiles, or of C."""
        request = self.request
        along, wide = request.along[role], request.width[role]
        m, n = self.form.micro
        match self.form.kind:
            case "lanes":
                k_elements = self.form.tile[2] // WARP
                return min(wide, k_elements) if role != "c" and along == "k" else 1
            case "tensor":
                if role == "c":
                    return min(wide, PAIR) if along == "n" else 1
                return 1 if self.transposed(role) else wide
            case _ if role == "c":
                vector = {"m": m, "n": n}[along]
                vector = 1 if self.single else vector & -vector
                return min(wide, vector, widest(request.dtype["c"]))
            case _ if role not in self.staged:
                vector = {"m": m, "n": n}.get(along, 1)
                return min(wide, vector & -vector)
            case _:
                transposed = self.transposed(role)
                size = dict(zip("mnk", self.form.tile, strict=True))[along]
                return 1 if transposed and not self.through else min(wide, size & -size)

    def read(self, role: str) -> int:
        """The width of a fragment's read from shared memory."""
        if role not in self.staged or self.form.kind == "tensor":
            return 1
        vector = self.form.micro["ab".index(role)]
        if self.request.along["c"] == "mn"["ab".index(role)]:
            vector = min(vector & -vector, self.vector)
        return min(vector & -vector, widest(self.request.dtype[role]))

    @property
    def single(self) -> bool:
        """Whether adjacent lanes own adjacent elements of a row of C, so that the single stores of
        a warp fill sectors."""
        across = "mn".index(self.request.along["c"])
        wide = self.form.micro[across] > 1
        return self.form.kind == "block" and self.vector == 1 and wide

    @property
    def residue(self) -> bool:
        """Whether the partial tile of k is peeled to the front, so that copies in the loop have no
        guard.  It shifts the accumulations of tensor cores, which ``require same_bits`` fixes."""
        fixed = self.request.problem.same_bits is not None or self.request.scaled_terms > 0
        if fixed and self.form.kind == "tensor":
            return False
        ragged = self.request.shape[2] % self.form.tile[2] > 0
        return ragged and (self.asynchronous or self.through) and self.parts == 1 and self._one

    @property
    def _one(self) -> bool:
        """Whether no access is wide along k: those of tiles that begin before k = 0 would be
        misaligned."""
        return all(self.request.along[x] != "k" or self.load(x) == 1 for x in "ab")

    @cached_property
    def text(self) -> str:
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        problem = self.request.problem
        yield from format_schedule(replace(problem, epilogue=None)).splitlines()
        yield from self._assumptions()
        yield from self._directives()
        if problem.epilogue is not None:
            yield f"fuse_epilogue {format_expression(problem.epilogue.expression)}"

    @property
    def divides(self) -> bool:
        """Whether the extents are multiples of the tile, whose accesses then need no guard; a tile
        of few rows or columns gains nothing."""
        many = self.form.kind in ("block", "tensor") and min(self.form.tile[:2]) >= GUARDED
        sizes = zip(self.request.shape, self.form.tile, strict=False)
        return many and not any(size % tile for size, tile in sizes)

    @property
    def _vectors_along_k(self) -> int:
        """Elements of the widest asynchronous copy along k for tensor cores, if it divides K."""
        if self.form.kind != "tensor" or not self.asynchronous:
            return 1
        widths = [self.load(x) for x in "ab" if self.request.along[x] == "k"]
        wide = max(widths, default=1)
        return 1 if self.request.shape[2] % wide else wide

    def _assumptions(self) -> Iterator[str]:
        """Multiples of the tile, so that accesses have no guards, or of vectors along k, so that
        asynchronous copies need no size."""
        wide, names = self._vectors_along_k, extents(self.request.problem.gemm)
        if wide > 1 and not self.exact:
            yield f"assume {names[self.request.letters[2]]} % {wide} == 0"
        if self.exact:
            for letter, tile in zip(self.request.letters, self.form.tile, strict=True):
                if tile > 1:
                    yield f"assume {names[letter]} % {tile} == 0"

    def _directives(self) -> Iterator[str]:
        form, (m, n, k) = self.form, self.request.letters
        yield f"tile {m}={form.tile[0]} {n}={form.tile[1]} {k}={form.tile[2]}"
        if self.staged:
            yield f"cache_shared {' '.join(self._layout(role) for role in self.staged)}"
        if form.warp != (0, 0):
            yield f"warp_tile {m}={form.warp[0]} {n}={form.warp[1]}"
        if form.kind == "tensor":
            promote = f" promote={form.tile[2]}" if self.request.scaled_terms else ""
            yield f"tensor_core via=mma{promote}"
        elif form.micro != (1, 1):
            order = " order=serpentine" if form.kind == "block" and min(form.micro) > 1 else ""
            vectors = " interleave=1" if self.single else ""
            yield f"register_block {m}={form.micro[0]} {n}={form.micro[1]}{vectors}{order}"
        yield from self._accesses()
        yield from self._stages()
        if form.kind == "direct" and form.tile[2] >= UNROLLED:
            yield f"unroll {k}={form.tile[2]}"
        if form.blocks:
            yield f"launch_bounds blocks={form.blocks}"
        if self.raster > 1:
            yield f"raster group={self.raster}"
        if form.kind == "lanes":
            yield "split_k within=warp"
        elif self.parts > 1:
            yield f"split_k parts={self.parts} groups={self.groups}"

    def name(self, role: str) -> str:
        return self.request.access[role].tensor

    def _layout(self, role: str) -> str:
        m, n, k = self.request.letters
        across = m if role == "a" else n
        if self.form.kind == "tensor":
            return f"{self.name(role)}[{across}, {k}]" if self.transposed(role) else self.name(role)
        return f"{self.name(role)}[{k}, {across}]"

    @property
    def traits(self) -> AtomTraits:
        """Of what multiplies on tensor cores."""
        assert self.request.atom is not None
        return ATOMS[self.request.atom]

    def pad(self, role: str) -> int:
        """Elements of a pad that parts what the lanes of tensor cores read at once."""
        chunk = 16 if self.traits.loads == "rows" else 32
        return chunk // BYTES[self.request.dtype[role]]

    def _accesses(self) -> Iterator[str]:
        for role in "abc":
            if role in self.staged and self.read(role) > 1:
                yield f"vectorize {self.name(role)}.shared width={self.read(role)}"
            if self.load(role) > 1:
                yield f"vectorize {self.name(role)}.global width={self.load(role)}"
        for role in self.staged:
            if self.form.kind == "tensor":
                yield f"pad {self.name(role)} by={self.pad(role)}"
            elif self.transposed(role):
                yield f"pad {self.name(role)} by={widest(self.request.dtype[role])}"

    def _stages(self) -> Iterator[str]:
        staged = " ".join(map(self.name, self.staged))
        if self.form.stages < 2 or not staged:
            return
        yield f"double_buffer {staged} stages={self.form.stages}"
        if self.form.kind in ("block", "tensor"):
            fragments = " ".join(f"{self.name(role)}.register" for role in self.staged)
            yield f"double_buffer {fragments}"
        if self.asynchronous:
            yield f"async_copy {staged} via=cp_async"
        if self.residue:
            yield f"residue {self.request.letters[2]}=first"
