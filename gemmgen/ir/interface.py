"""How a kernel is called: its parameters, its launch, and what it requires of its arguments.

The emitted header, the emitted launcher, the CPU run and the Python launcher all read this one
value, so that none of them can disagree.

Over 300 lines: one value, with what each of them asks it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import lcm, prod
from typing import TypeVar

from gemmgen.base.record import record
from gemmgen.ir.arithmetic import PLAIN, Arithmetic
from gemmgen.ir.blocked_letters import block, blocked, count, plain
from gemmgen.ir.launch_attribute import AttributeName
from gemmgen.ir.param import Param
from gemmgen.ir.planes import pitch_of
from gemmgen.ir.requirement import MultipleOf, Requirement
from gemmgen.ir.tensor_map import LANDS_AT, REPEATS, MapDimension, MapFields, TensorMap

INT_MAX = 2**31 - 1
T = TypeVar("T")
MOST_WALKED = 2**30
"""Tiles of a persistent kernel: a tile's number and the number of blocks add up to an int."""


@record
class PrePass:
    """The launch of another kernel before a kernel, on the same stream: that kernel's interface,
    and for each of its parameters the launcher's variable that is passed."""

    interface: Interface
    arguments: tuple[str, ...]

    def given(self, values: Mapping[str, T]) -> dict[str, T]:
        """The arguments by the names of the parameters; ``values`` are the launcher's variables."""
        names = (param.name for param in self.interface.params)
        return {name: values[own] for name, own in zip(names, self.arguments, strict=True)}

    def blocks(self, values: Mapping[str, int]) -> int:
        """The number of blocks; 0, and there is no launch, where an extent is 0."""
        pairs = zip(self.interface.params, self.arguments, strict=True)
        sizes = {p.name: values[own] for p, own in pairs if p.kind == "extent"}
        return self.interface.grid(sizes) if all(sizes.values()) else 0


@record
class Interface:
    """A kernel as its callers see it.

    ``block`` is (threads along x, threads along y).  The grid is one-dimensional, so that no extent
    is bounded by the 65,535 of the other grid dimensions: the product of ceil(extent / tile) over
    ``tiles`` and of the extents of ``batches``, times the ``parts`` that share a tile, at most
    2^31 - 1.  Parts are added by ``groups``; ``ordered``: in one order in every run.
    ``dynamic_shared`` counts bytes passed at launch (0 when all shared memory is static).
    ``pitch`` gives for each matrix tensor the name of the parameter that is its leading dimension
    (an extent if the schedule assumes it).  ``equal`` pairs an extent that is not a parameter,
    since it is assumed equal to another, with that other.

    ``product`` pairs the scalar that multiplies every use of the accumulators (``alpha``) with the
    extent of the contracted letter. Where that scalar is 0, callers pass 0 as that extent, so that
    the inputs of the product are not read and their NaNs don't spread (as in BLAS). It is None
    where the epilogue uses the accumulators otherwise, or the extent has another use.

    ``batches`` pairs the letters that number the matrices of C, slowest first, with their extents;
    ``strides`` has (tensor, batch letter, parameter) for each that the caller gives.  ``extents``
    pairs the letters of a matrix whose extents are not their capitals with those extents.

    ``maps`` are the tensors that the launcher hands on as tensor maps; callers pass pointers.

    Blocks of a ``cluster`` run together, as many along each of ``tiles`` (empty: they run alone).
    Tiles beyond C complete the last clusters.  A persistent kernel has ``resident`` blocks for each
    multiprocessor, or as many clusters as the GPU runs at a time, or one for each tile if these are
    fewer, and each walks over its share; else ``resident`` is 0.  ``attribute``: of its launch.

    ``before`` are launches before the kernel's; ``arithmetic`` says how accumulators are added up.
    """

    SYNTAX = "{name}"

    name: str
    params: tuple[Param, ...]
    block: tuple[int, int]
    tiles: tuple[tuple[str, int], ...]
    requirements: tuple[Requirement, ...]
    dynamic_shared: int
    static_shared: int
    pitch: tuple[tuple[str, str], ...]
    equal: tuple[tuple[str, str], ...] = ()
    parts: int = 1
    groups: int = 1
    ordered: bool = True
    batches: tuple[tuple[str, str], ...] = ()
    strides: tuple[tuple[str, str, str], ...] = ()
    product: tuple[str, str] | None = None
    extents: tuple[tuple[str, str], ...] = ()
    maps: tuple[TensorMap, ...] = ()
    resident: int = 0
    cluster: tuple[int, ...] = ()
    attribute: AttributeName | None = None
    before: tuple[PrePass, ...] = ()
    arithmetic: Arithmetic = PLAIN

    @property
    def threads(self) -> int:
        """Threads of a block."""
        x, y = self.block
        return x * y

    @property
    def cluster_blocks(self) -> int:
        """Blocks of a cluster; 1 without clusters."""
        return prod(self.cluster)

    @property
    def shared(self) -> int:
        """Bytes of shared memory of a block; dynamic memory after static begins where a box of TMA
        may land."""
        swizzles = (REPEATS * one.swizzle for one in self.maps)
        unit = max(LANDS_AT, *swizzles) if self.maps else LANDS_AT
        between = -self.static_shared % unit if self.dynamic_shared else 0
        return self.static_shared + between + self.dynamic_shared

    def skips_product(self, scalars: Mapping[str, float]) -> bool:
        """Whether a call with these ``scalars`` needs none of the accumulators (``alpha == 0``)."""
        return self.product is not None and scalars[self.product[0]] == 0

    def is_factor(self, param: Param) -> bool:
        """Whether ``param`` is a tensor with the contracted letter of ``product``."""
        contracted = self.product and self.product[1]
        return any(self.extent(plain(letter)) == contracted for letter in param.indices)

    def extent(self, letter: str) -> str:
        """The parameter that counts a letter's values; of a letter that numbers blocks that of the
        elements, over a block's: ``K/128``."""
        own = plain(letter)
        name = dict((*self.batches, *self.extents)).get(own, own.upper())
        return blocked(dict(self.equal).get(name, name), block(letter))

    def size(self, letter: str, values: Mapping[str, int]) -> int:
        """The number of a letter's values in a call with these ``values`` (extents by name)."""
        return count(letter, values[self.extent(plain(letter))])

    def steps(self, param: Param) -> tuple[str | None, ...]:
        """Per letter of a tensor the parameter that is its stride in elements; None for 1.

        That of a matrix's outer letter is its leading dimension.
        """
        batches = dict(self.batches)
        strides = {letter: name for tensor, letter, name in self.strides if tensor == param.name}
        *outer, _ = param.indices
        ld = dict(self.pitch).get(param.name)
        return (*(strides.get(x) if x in batches else ld for x in outer), None)

    @property
    def kernel_params(self) -> tuple[Param, ...]:
        """The kernel's own parameters: maps in place of pointers, or before them, and no leading
        dimension and no stride that maps alone need."""
        if not self.maps:
            return self.params
        maps = {one.tensor: one for one in self.maps}
        accessed = [p for p in self.tensors if p.name not in maps or maps[p.name].beside]
        kept = {step for param in accessed for step in self.steps(param)}
        kept |= {param.name for param in accessed}
        found: list[Param] = []
        for param in self.params:
            if param.name in maps:
                found.append(replace(param, name=maps[param.name].parameter, kind="map"))
            beside = param.name not in maps or maps[param.name].beside
            if param.name in kept or (param.kind not in ("tensor", "ld", "stride") and beside):
                found.append(param)
        return tuple(found)

    @property
    def kernel_maps(self) -> tuple[TensorMap, ...]:
        """The maps in the order of the kernel's parameters."""
        of = {one.parameter: one for one in self.maps}
        return tuple(of[param.name] for param in self.kernel_params if param.kind == "map")

    def mapped(self, tensor_map: TensorMap) -> Param:
        """The tensor, or the planes, of a map."""
        return next(p for p in self.params if p.name == tensor_map.tensor)

    @property
    def split(self) -> tuple[Param, ...]:
        """The workspaces that a pre-pass writes the parts of tensors to."""
        return tuple(p for p in self.params if p.planes is not None)

    @property
    def prepared(self) -> tuple[Param, ...]:
        """The workspaces that a pre-pass writes."""
        return tuple(p for p in self.params if p.is_prepared)

    def plane_values(self, values: Mapping[str, int]) -> dict[str, int]:
        """What the launcher computes, by its names: the pitch and the size of planes, in elements;
        and how many there are, by its digits."""
        found: dict[str, int] = {}
        for param in self.split:
            assert param.planes is not None
            own = param.planes
            found[own.pitch] = pitch_of(values[own.columns], param.dtype)
            found[own.plane] = values[own.rows] * found[own.pitch]
            found[str(own.count)] = own.count
        return found

    def map_dimensions(self, tensor_map: TensorMap) -> tuple[MapDimension, ...]:
        """The dimensions of a tensor's map, innermost first."""
        param = self.mapped(tensor_map)
        if param.planes is not None:
            own = param.planes
            x, y, count = tensor_map.box
            return (
                MapDimension(own.columns, x, None),
                MapDimension(own.rows, y, own.pitch),
                MapDimension(str(own.count), count, own.plane),
            )
        letters = zip(param.indices, self.steps(param), strict=True)
        return tuple(
            MapDimension(self.extent(plain(letter)), side, step, block(letter))
            for (letter, step), side in zip(reversed([*letters]), tensor_map.box, strict=True)
        )

    def map_fields(self, tensor_map: TensorMap, values: Mapping[str, int]) -> MapFields:
        """What the map of a tensor is encoded from in a call with these ``values`` (extents,
        leading dimensions, strides)."""
        param = self.mapped(tensor_map)
        dimensions = self.map_dimensions(tensor_map)
        values = {**values, **self.plane_values(values)}
        strides = [values[one.stride] * param.item for one in dimensions if one.stride is not None]
        sizes = tuple(-(-values[one.size] // one.block) for one in dimensions)
        box, swizzle = tensor_map.box, tensor_map.swizzle
        return MapFields(param.dtype, sizes, tuple(strides), box, swizzle)

    @property
    def _cluster_sides(self) -> tuple[int, ...]:
        return self.cluster or (1,) * len(self.tiles)

    def tile_count(self, extents: Mapping[str, int]) -> int:
        """Tiles of all matrices of C for ``extents`` (those of ``shaping``), with those beyond C
        that complete a cluster; 0 where C is empty."""
        count = self.cluster_blocks
        for (name, size), blocks in zip(self.tiles, self._cluster_sides, strict=True):
            count *= -(-extents[name] // (size * blocks))
        for _, name in self.batches:
            count *= extents[name]
        return count

    def grid(self, extents: Mapping[str, int], held: int = 1) -> int:
        """Blocks for ``extents``, whole clusters, 0 if C is empty; of a persistent kernel on a GPU
        that has ``held`` multiprocessors, or runs ``held`` clusters at a time."""
        count = self.tile_count(extents) * self.parts
        each = self.cluster_blocks if self.cluster else self.resident
        return min(count, held * each) if self.resident else count

    @property
    def most_tiles(self) -> int:
        """The most tiles of C, times ``parts``, that a launch can have."""
        return MOST_WALKED if self.resident else INT_MAX

    def is_too_large(self, extents: Mapping[str, int]) -> bool:
        """Whether C has more."""
        return self.tile_count(extents) * self.parts > self.most_tiles

    @property
    def tensors(self) -> tuple[Param, ...]:
        return tuple(p for p in self.params if p.kind == "tensor")

    @property
    def scalars(self) -> tuple[Param, ...]:
        return tuple(p for p in self.params if p.kind == "scalar")

    def divisor(self, name: str) -> int:
        """The divisor that a leading dimension or a stride must have."""
        rules = self.requirements
        return lcm(*(r.divisor for r in rules if isinstance(r, MultipleOf) and r.name == name))

    @property
    def scratch(self) -> tuple[Param, ...]:
        """The parameters that are memory for the launch alone."""
        return tuple(p for p in self.params if p.is_scratch)

    def scratch_elements(self, param: Param, extents: Mapping[str, int]) -> int:
        """Elements that such a parameter must have for ``extents``."""
        if param.planes is not None:
            pitch = pitch_of(extents[param.planes.columns], param.dtype)
            return param.planes.count * extents[param.planes.rows] * pitch
        if param.scales is not None:
            return extents[param.scales.extent]
        return self.tile_count(extents) * param.per_tile

    def shaping(self) -> tuple[str, ...]:
        """The extents of C: the number of blocks depends on them."""
        return (*(name for name, _ in self.tiles), *(name for _, name in self.batches))

    def sizing(self) -> tuple[str, ...]:
        """The extents that scratch memory depends on."""
        planes = (p.planes for p in self.split if p.planes is not None)
        return (*self.shaping(), *(name for one in planes for name in (one.rows, one.columns)))

    def extent_names(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.params if p.kind == "extent")

    def violated(self, values: Mapping[str, int]) -> tuple[Requirement, ...]:
        """The requirements that ``values`` (extents, leading dimensions, addresses) break."""
        return tuple(r for r in self.requirements if not r.holds(values))
