"""The comment at the top of a file: how the kernel is called, and what it requires."""

from __future__ import annotations

from gemmgen.emit.ctypes import STORED
from gemmgen.emit.launcher_types import ElementTypes, element_type
from gemmgen.emit.line_breaks import SOFT, filled
from gemmgen.ir.decompositions import DECOMPOSITIONS
from gemmgen.ir.dtypes import RAW, ROUNDED, DType
from gemmgen.ir.interface import Interface
from gemmgen.ir.launch_attribute import ATTRIBUTES
from gemmgen.ir.param import Param
from gemmgen.ir.planes import unit
from gemmgen.ir.requirement import (
    Aligned,
    AtLeast,
    AtLeastBlocks,
    AtMost,
    Equal,
    MultipleOf,
    Requirement,
    Within,
)
from gemmgen.ir.tensor_map import ALIGNMENT

EXACT_DEPTH = (2**31 - 1) // 128**2
"""Products of i8 whose sum fits i32, whatever they are."""


def types_text(interface: Interface, types: ElementTypes) -> str:
    """What the parameters are, by kind; tensors by their elements."""
    scalars: list[DType] = [p.dtype for p in interface.scalars] or ["f32"]
    stored: dict[str, list[str]] = {}
    for param in interface.params:
        if param.kind == "tensor":
            stored_as = element_type(param, types)
            is_bits = param.dtype in RAW and stored_as == STORED[param.dtype]
            bits = f" ({param.dtype} bits)" if is_bits else ""
            if param.dtype in ROUNDED:
                bits = (
                    f" ({'cut off' if interface.arithmetic.cuts else 'rounded'} to {param.dtype})"
                )
            stored.setdefault(stored_as + bits, []).append(param.name)
    listed = [f"{text} for {', '.join(names)}" for text, names in stored.items()]
    pointers = ", ".join(listed if len(listed) > 1 else stored)
    strides = "strides: long long; " if interface.strides else ""
    return (
        f"extents, leading dimensions: int; {strides}scalars: {STORED[scalars[0]]}; "
        f"tensors: device pointers to {pointers}"
    )


def _listed(lines: list[str]) -> list[str]:
    """A list's lines, each but the last with the comma that parts it from the next."""
    return [line + "," for line in lines[:-1]] + lines[-1:]


def launch_lines(interface: Interface) -> list[str]:
    """How many blocks of how many threads, and the shared memory of a block."""
    blocks = _tiles(interface)
    if interface.parts > 1:
        blocks += f" * {interface.parts}"
    x, y = interface.block
    threads = f"{x} x {y} threads" if y > 1 else f"{x} threads"
    if interface.cluster:
        blocks += f" * {interface.cluster_blocks}"
    lines = [f"{blocks} blocks of {threads}; {SOFT}none if C is empty"]
    if interface.resident:
        each = interface.cluster_blocks if interface.cluster else interface.resident
        held = f"{each} x {'clusters' if interface.cluster else 'multiprocessors'}"
        lines = [
            f"min({blocks}, {SOFT}{held.removeprefix('1 x ')}) blocks of {threads}",
            "each walks over its share of the tiles; none if C is empty",
        ]
    if interface.cluster:
        sides = " x ".join(map(str, interface.cluster))
        asked = ", as many as the GPU runs at a time" if interface.resident else ""
        lines.append(f"in clusters of {sides} blocks{asked}")
    if interface.attribute:
        lines.append(ATTRIBUTES[interface.attribute].sentence)
    if interface.dynamic_shared:
        lines.append(f"{interface.dynamic_shared} bytes of dynamic shared memory a block")
    if interface.product:
        scale, terms = interface.product
        inputs = [p.name for p in interface.params if interface.is_factor(p)]
        lines.append(
            f"{terms} = 0 if {scale} == 0: as in BLAS, {' and '.join(inputs)} are not read"
        )
    a, b, *_ = (param for param in interface.tensors if not param.written)
    if a.dtype == b.dtype == "i8":
        depth = next(interface.extent(letter) for letter in a.indices if letter in b.indices)
        lines.append(
            f"accumulators wrap to 32 bits; {SOFT}none does while {depth} <= {EXACT_DEPTH}"
        )
    if interface.arithmetic.cuts:
        names = " and ".join(p.name for p in interface.tensors if p.dtype in ROUNDED)
        lines.append(f"of elements of {names} 13 bits are dropped, {SOFT}less than 2^-10 of each")
    if interface.arithmetic.products > 1:
        lines += _parts_lines(interface)
    return lines


def _parts_lines(interface: Interface) -> list[str]:
    """What ``decompose`` computes, and the bound of its error (``Arithmetic.split_share``).

    The last bit of a number of at least 2^-110 is not smaller than bf16's least number, 2^-133.
    Products that underflow f32 are below 2^-126 each.  Scaled f16 terms lose 2^-39 of the largest
    element of a row, or column, at most.
    """
    a, b, *_ = (param for param in interface.tensors if not param.written)
    depth = next(interface.extent(letter) for letter in a.indices if letter in b.indices)
    arithmetic = interface.arithmetic
    terms, lost, into = arithmetic.terms, arithmetic.split_factor, arithmetic.into
    share = f"({lost} * {terms} + {depth} / {terms} + {1 + arithmetic.lost}) * 2^-24"
    lines = [
        f"f32 from {arithmetic.products} {into} products ({into}x3), promoted every {terms} terms:",
        f"the error is at most {share} of the",
    ]
    if into is None or not DECOMPOSITIONS[into].scaled:
        return [
            *lines,
            f"sum of |{a.name} * {b.name}|, and {depth} * 2^-126, {SOFT}"
            "if no element but 0 is below 2^-110",
        ]
    row, column = (
        next(letter for letter in tensor.indices if letter in output.indices)
        for tensor, output in ((a, _output(interface)), (b, _output(interface)))
    )
    return [
        *lines,
        f"sum of |{a.name} * {b.name}|, {depth} * 2^-38 of the largest |{a.name}| of its {row}",
        f"times the largest |{b.name}| of its {column}, and {depth} * 2^-126",
    ]


def _output(interface: Interface) -> Param:
    return next(param for param in interface.params if param.written)


def units_text(interface: Interface) -> str:
    """What the requirements' numbers count."""
    return f"leading dimensions {'and strides ' if interface.strides else ''}count elements"


def _tiles(interface: Interface) -> str:
    """The number of tiles of C, or of clusters, as a formula."""
    sides = interface.cluster or (1,) * len(interface.tiles)
    covered = zip(interface.tiles, sides, strict=True)
    tiles = (f"ceil({name} / {size * side})" for (name, size), side in covered)
    return " * ".join((*tiles, *(name for _, name in interface.batches)))


def scratch_lines(interface: Interface) -> list[str]:
    """What must be true of the memory that a launch uses in addition to its tensors."""
    lines: list[str] = []
    for param in interface.scratch:
        bytes_of_cluster = interface.cluster_blocks * param.item * param.per_tile
        size = f"{_tiles(interface)} * {bytes_of_cluster} bytes"
        if param.planes is not None:
            own, row = param.planes, unit(param.dtype)
            size = f"{own.count} * {own.rows} * ceil({own.columns} / {row}) * {ALIGNMENT} bytes"
        elif param.scales is not None:
            size = f"{param.item} * {param.scales.extent} bytes"
        line = f"{param.name}: {size}"
        if param.align > 4:
            line += f", {SOFT}aligned to {param.align} bytes"
        if param.zeroed:
            line += f", zeros; {SOFT}each launch leaves zeros"
        lines.append(line)
    if lines:
        *first, last = (p.name for p in interface.scratch)
        names = f"{f', {SOFT}'.join(first)} {SOFT}and {last}" if first else last
        lines.append(f"concurrent launches need separate {names}")
    return lines


def call_text(interface: Interface) -> str:
    """The launcher's call: its parameters in their order."""
    names = ", ".join(p.name for p in interface.params)
    return f"launch_{interface.name}({names}, stream)"


def requirement_lines(interface: Interface, width: int) -> list[str]:
    """The requirements in words, wrapped at ``width`` columns."""
    groups = [
        _listed([", ".join(row) for row in filled(group, ", ", width)])
        for group in _grouped(interface)
        if group
    ]
    return [*(line for group in groups for line in group), *scratch_lines(interface)]


def _grouped(interface: Interface) -> list[list[str]]:
    kinds: tuple[type[Requirement], ...] = (
        *(AtLeast, AtLeastBlocks, AtMost, Within, MultipleOf, Equal),
    )
    groups = [[r.text() for r in interface.requirements if isinstance(r, kind)] for kind in kinds]
    aligned: dict[int, list[str]] = {}
    for requirement in interface.requirements:
        if isinstance(requirement, Aligned):
            aligned.setdefault(requirement.bytes, []).append(requirement.name)
    for size, names in aligned.items():
        groups.append([f"{', '.join(names)} aligned to {size} bytes"])
    written = next(p.name for p in interface.params if p.written)
    others = [p.name for p in interface.tensors if not p.written]
    groups.append([f"{written} overlaps none of {', '.join(others)}"])
    if interface.batches:
        groups.append([f"no two elements of {written} are one"])
    return groups
