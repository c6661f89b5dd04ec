"""Arguments for tests of a launcher: valid ones, and each requirement at its bound and violated
alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from gemmgen.base.errors import UsageError
from gemmgen.calling.dimensions import solve
from gemmgen.ir.dtypes import DTYPES
from gemmgen.ir.interface import INT_MAX, Interface
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
from gemmgen.pipeline import Emitted
from gemmgen.proof.launcher_map_calls import calls_of_maps, calls_without_function
from gemmgen.schedule.roles import extents
from gemmgen.sim.launcher_calls import LauncherCall

LAUNCH_FAILED, NO_FUNCTION, NO_DEVICE = 719, 98, 100
"""Errors that the runtime stub returns: cudaErrorLaunchFailure, cudaErrorInvalidDeviceFunction,
cudaErrorNoDevice."""
_STREAM = 0x5EA0
_ONE, _OTHER, _COUNTED = 1, 3, 5
"""Devices of several calls."""
_FIRST, _APART = 0x7F0000001000, 0x10000
"""Addresses of tensors, which are not read."""
Values = dict[str, int | float]


def calls(emitted: Emitted) -> Iterator[tuple[str, LauncherCall]]:
    """Calls with their purposes: launches around each multiple of a tile, each requirement at its
    bound and violated alone, no C, too many blocks, errors of the runtime."""
    interface = emitted.interface
    plain = _values(emitted, {})
    launch = LauncherCall(plain, _STREAM)
    yield from calls_without_function(interface, launch)
    yield "called rightly", replace(launch, device=_ONE)
    yield "called again", replace(launch, device=_ONE, is_set_up=True)
    yield "on the default stream", replace(launch, stream=0)
    yield "where the launch fails", replace(launch, launch_error=LAUNCH_FAILED)
    for param in interface.params:
        if param.kind == "scalar":
            for value in (0.0, -0.0, DTYPES[param.dtype].tiny):
                yield f"{param.name} = {value}", replace(launch, values=plain | {param.name: value})
    if interface.dynamic_shared:
        refused = replace(launch, attribute_error=NO_FUNCTION, device=_OTHER)
        yield "where shared memory is refused", refused
        yield "where shared memory was refused", replace(launch, device=_OTHER)
    yield from calls_of_maps(interface, launch)
    if interface.resident or interface.dynamic_shared:
        yield "where the device is refused", replace(launch, device_error=NO_DEVICE)
    if interface.resident:
        yield from _counted(replace(launch, values=_walked(emitted)))
        for count in (1, 2, 3, 132):
            of_more = replace(launch, values=_walked(emitted), multiprocessors=count)
            yield f"on {count} multiprocessors", of_more
    for purpose, values in (
        *_shapes(emitted),
        *_signs(interface, plain),
        *_broken(emitted, plain),
        *_many(emitted),
    ):
        yield purpose, LauncherCall(values, _STREAM)


def _counted(launch: LauncherCall) -> Iterator[tuple[str, LauncherCall]]:
    """Calls between which a device can't be counted, of several tiles for each block."""
    refused = replace(launch, device=_COUNTED, count_error=NO_DEVICE)
    yield "on one device", replace(launch, device=_ONE)
    yield "where nothing is counted", refused
    yield "on one device, after that", replace(launch, device=_ONE)
    yield "where nothing is counted", refused
    yield "where nothing was counted", replace(launch, device=_COUNTED)


def _values(emitted: Emitted, sizes: Mapping[str, int]) -> Values:
    """A call near ``sizes`` that satisfies every requirement; an extent that is left out is a
    little more than a tile. Values differ from each other unless a requirement forbids it."""
    interface = emitted.interface
    tiles = dict(interface.tiles)
    names = tuple(extents(emitted.schedule.gemm).values())
    asked = {name: tiles.get(name, 2) + 3 + 2 * i for i, name in enumerate(names)} | dict(sizes)
    values: Values = dict(solve(interface, asked, 3 if not sizes else 0))
    for i, param in enumerate(interface.params):
        if param.kind == "tensor" or param.is_scratch:
            values[param.name] = _FIRST + (i + 1) * _APART
        elif param.kind == "scalar":
            values[param.name] = 0.25 + i
        elif param.kind == "stride":
            step = interface.divisor(param.name)
            far = min((1 << 40) + 1000 * i, _longest(interface, param.name) - 1000 * i)
            values[param.name] = far // step * step
    return {param.name: values[param.name] for param in interface.params}


def _longest(interface: Interface, stride: str) -> int:
    """The greatest stride that a requirement allows."""
    bounds = (r.most for r in interface.requirements if isinstance(r, Within) and r.name == stride)
    return min(bounds, default=1 << 62)


def _walked(emitted: Emitted) -> Values:
    """A call with several tiles for each of a few blocks."""
    interface = emitted.interface
    sizes = {name: 3 * size * interface.resident for name, size in interface.tiles}
    return _values(emitted, sizes)


def _shapes(emitted: Emitted) -> Iterator[tuple[str, Values]]:
    """Extents around one, two and three tiles along each letter, and 0."""
    interface = emitted.interface
    for name, tile in (*interface.tiles, *((name, 1) for _, name in interface.batches)):
        for size in sorted({0, 1, *(max(k * tile + d, 1) for k in (1, 2, 3) for d in (-1, 0, 1))}):
            yield f"{name} = {size}", _values(emitted, {name: size})
    contracted = set(interface.extent_names()) - set(interface.shaping())
    for name in sorted(contracted):
        empty = _values(emitted, {name: 0})
        yield f"{name} = 0", empty
        nowhere = [p.name for p in interface.tensors if name in map(interface.extent, p.indices)]
        yield f"{name} = 0, {' and '.join(nowhere)} null", empty | dict.fromkeys(nowhere, 0)


def _signs(interface: Interface, plain: Values) -> Iterator[tuple[str, Values]]:
    for name in interface.extent_names():
        yield f"{name} negative", plain | {name: -interface.divisor(name)}
    for _, _, name in interface.strides:
        yield f"{name} negative", plain | {name: -int(plain[name])}


def _broken(emitted: Emitted, plain: Values) -> Iterator[tuple[str, Values]]:
    """Each requirement at its bound, and violated by the least amount, without violating others."""
    for rule in emitted.interface.requirements:
        for values in _bounds(emitted, plain, rule):
            yield f"{rule.text()}, with {rule.name} = {values[rule.name]}", values
    for param in emitted.interface.scratch:
        for off in (param.align, param.align // 2):
            values = plain | {param.name: int(plain[param.name]) + off}
            yield f"{param.name} {off} bytes off", values


def _bounds(emitted: Emitted, plain: Values, rule: Requirement) -> Iterator[Values]:
    value, step = int(plain[rule.name]), emitted.interface.divisor(rule.name)
    match rule:
        case AtLeast(name, bound):
            yield _values(emitted, {bound: 3 * step})
            yield plain | {name: (int(plain[bound]) - 1) // step * step}
        case AtLeastBlocks(name, bound, elements):
            yield _values(emitted, {bound: 3 * elements})
            yield plain | {name: (-(-int(plain[bound]) // elements) - 1) // step * step}
        case AtMost(name, bound):
            yield from _greatest(emitted, name, bound // step * step)
        case MultipleOf(name, factor):
            steps = (*(k for k in range(1, factor) if factor % k == 0), factor)
            for off in (*steps, *(-k for k in steps)):
                yield plain | {name: value + off}
        case Equal(name, other):
            for off in (-step, step):
                yield plain | {name: int(plain[other]) + off}
        case Within(name, least, most):
            for bound in (least, least - step, most // step * step, most // step * step + step):
                yield plain | {name: bound}
        case Aligned(name, size):
            for off in (1 << i for i in range(size.bit_length())):
                yield plain | {name: value + off}


def _greatest(emitted: Emitted, name: str, bound: int) -> Iterator[Values]:
    """An extent at its maximum, and just above, with rows of that length."""
    interface = emitted.interface
    small = dict.fromkeys(interface.shaping(), 1)
    try:
        values = _values(emitted, small | {name: bound})
    except UsageError:
        return
    yield values
    larger: Values = values | {name: bound + interface.divisor(name)}
    for rule in interface.requirements:
        if isinstance(rule, AtLeast) and rule.bound == name:
            step = interface.divisor(rule.name)
            larger[rule.name] = -(-int(larger[name]) // step) * step
    if _fits(interface, larger):
        yield larger


def _fits(interface: Interface, values: Values) -> bool:
    """Whether the values fit the parameters' types."""
    ints = (p.name for p in interface.params if p.kind in ("extent", "ld"))
    return all(int(values[name]) <= INT_MAX for name in ints)


def _many(emitted: Emitted) -> Iterator[tuple[str, Values]]:
    """Numbers of blocks around 2^31 and the largest possible."""
    interface = emitted.interface
    sizes = {**dict(interface.tiles), **{name: 1 for _, name in interface.batches}}
    first, *others = interface.shaping()
    for other in others or [first]:
        for a, b in _factors(interface.most_tiles // interface.parts):
            wanted = {name: 1 for name in interface.shaping()}
            wanted |= {first: min(a * sizes[first], INT_MAX), other: min(b * sizes[other], INT_MAX)}
            yield from _large(emitted, f"{a} x {b} tiles", wanted)
    for name in interface.shaping():
        most = dict.fromkeys(interface.shaping(), 1) | {name: INT_MAX}
        yield from _large(emitted, f"{name} = {INT_MAX}", most)
    yield from _large(emitted, "the largest C", dict.fromkeys(interface.shaping(), INT_MAX))


def _factors(count: int) -> Iterator[tuple[int, int]]:
    """Pairs whose products are just below, at and just above ``count``."""
    root = int(count**0.5)
    yield root, count // root
    yield root, count // root + 1
    yield root + 1, root + 1
    yield 65537, 65537  # truncated to 32 bits it is a valid grid
    yield 1, count
    yield 1, count + 1
    yield 7, count // 7
    yield 7, count // 7 + 1


def _large(
    emitted: Emitted, purpose: str, sizes: Mapping[str, int]
) -> Iterator[tuple[str, Values]]:
    """A call with large extents, limited by the requirements."""
    interface = emitted.interface
    bounds = {r.name: r.bound for r in interface.requirements if isinstance(r, AtMost)}
    cut: dict[str, int] = {}
    for name, size in sizes.items():
        step = interface.divisor(name)
        cut[name] = max(min(size, bounds.get(name, INT_MAX)) // step, 1) * step
    try:
        values = _values(emitted, cut)
    except UsageError:
        return
    if _fits(interface, values):
        yield purpose, values
