"""The launcher of an emitted text, called and compared with the interface: what it launches, with
which arguments, and what it refuses.

Called alone, it launches no kernel, so its arguments may be of any size.  That a launch of these
numbers runs the kernel rightly is shown by each run of the text, which goes through the launcher.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import lcm

from gemmgen.base.errors import UsageError
from gemmgen.base.record import record
from gemmgen.calling.sizes import solve
from gemmgen.ir.interface import (
    INT_MAX,
    Aligned,
    AtLeast,
    AtMost,
    Equal,
    Interface,
    MultipleOf,
    Requirement,
)
from gemmgen.pipeline import Emitted
from gemmgen.schedule.roles import extents
from gemmgen.sim.failures import KernelFailure
from gemmgen.sim.launcher_calls import MAX_DYNAMIC_SHARED, Called, LauncherCall, bits_of
from gemmgen.sim.run import CompiledKernel

SUCCESS, INVALID_VALUE, INVALID_CONFIGURATION, MISALIGNED = 0, 1, 9, 716
NAMES = {
    SUCCESS: "cudaSuccess",
    INVALID_VALUE: "cudaErrorInvalidValue",
    INVALID_CONFIGURATION: "cudaErrorInvalidConfiguration",
    MISALIGNED: "cudaErrorMisalignedAddress",
}
LAUNCH_FAILED, NO_FUNCTION = 719, 98
"""What the runtime is made to answer: cudaErrorLaunchFailure, cudaErrorInvalidDeviceFunction."""
_STREAM = 0x5EA0
_FIRST, _APART = 0x7F0000001000, 0x10000
"""Addresses of tensors: nothing is read there."""
_ALWAYS_THERE = 48 * 1024
Values = dict[str, int | float]


@record
class ExpectedReturn:
    """What a call must do: an error, and whether it launches."""

    error: int
    launches: bool


def complaint(emitted: Emitted, text: str, kernel: CompiledKernel) -> str | None:
    """What is wrong with the launcher of ``text``, which ``kernel`` was compiled from, in words;
    None where nothing is."""
    name = f"launch_{emitted.name}"
    if not kernel.has_launcher:
        return f"the text has no {name}"
    made = tuple(calls(emitted))
    try:
        answers = kernel.call_launcher([call for _, call in made])
    except KernelFailure as failure:
        return f"{name}: {failure}"
    for (told, call), called in zip(made, answers, strict=True):
        wrong = _difference(emitted.interface, call, called)
        if wrong is not None:
            return f"{name}, {told}: {wrong}"
    return None


def calls(emitted: Emitted) -> Iterator[tuple[str, LauncherCall]]:
    """Calls with what they are for: launches beside each multiple of a tile, each requirement at
    its bound and broken alone, no C, too many blocks, errors of the runtime."""
    interface = emitted.interface
    plain = _values(emitted, {})
    launch = LauncherCall(plain, _STREAM)
    yield "called rightly", launch
    yield "on the default stream", replace(launch, stream=0)
    yield "where the launch fails", replace(launch, launch_error=LAUNCH_FAILED)
    for param in interface.params:
        if param.kind == "scalar":
            for value in (0.0, -0.0, 5e-324 if param.dtype == "f64" else 1e-45):
                yield f"{param.name} = {value}", replace(launch, values=plain | {param.name: value})
    if interface.dynamic_shared:
        refused = replace(launch, attribute_error=NO_FUNCTION)
        yield "where shared memory is refused", refused
    for told, values in (
        *_shapes(emitted),
        *_signs(interface, plain),
        *_broken(emitted, plain),
        *_many(emitted),
    ):
        yield told, LauncherCall(values, _STREAM)


def expected(interface: Interface, values: Mapping[str, int | float]) -> ExpectedReturn:
    """By the interface alone."""
    numbers = {name: int(v) for name, v in values.items() if isinstance(v, int)}
    broken = interface.violated(numbers)
    if any(numbers[name] < 0 for name in interface.extent_names()):
        return ExpectedReturn(INVALID_VALUE, False)
    if any(not isinstance(r, Aligned) for r in broken):
        return ExpectedReturn(INVALID_VALUE, False)
    if broken or any(numbers[p.name] % p.align for p in interface.scratch if p.align > 4):
        return ExpectedReturn(MISALIGNED, False)
    blocks = interface.grid(numbers)
    if blocks > INT_MAX:
        return ExpectedReturn(INVALID_CONFIGURATION, False)
    return ExpectedReturn(SUCCESS, blocks > 0)


def _difference(interface: Interface, call: LauncherCall, called: Called) -> str | None:
    want = expected(interface, call.values)
    error = call.attribute_error or call.launch_error or want.error
    launches = want.launches and error == SUCCESS
    if called.error != error:
        return f"returns {_name(called.error)}, not {_name(error)}"
    if called.launches != launches:
        return f"launches {called.launches} times, not {int(launches)}"
    if not called.is_kernel:
        return "names another function than the kernel"
    if want.launches and not call.attribute_error and called.errors_taken != 1:
        return f"asks {called.errors_taken} times for the launch's error, not once"
    return _launch_difference(interface, call, called) if launches else None


def _launch_difference(interface: Interface, call: LauncherCall, called: Called) -> str | None:
    numbers = {name: int(v) for name, v in call.values.items() if isinstance(v, int)}
    dynamic = interface.dynamic_shared
    attribute = (MAX_DYNAMIC_SHARED, dynamic)
    if dynamic > _ALWAYS_THERE and (called.attribute != attribute or called.attribute_late):
        return f"does not ask for {dynamic} bytes of shared memory before it launches"
    wanted = {
        "a grid": ((interface.grid(numbers), 1, 1), called.grid),
        "blocks": ((*interface.block, 1), called.block),
    }
    for what, (want, got) in wanted.items():
        if got != want:
            return f"launches {what} of {_spelled(got)}, not {_spelled(want)}"
    if called.shared != dynamic:
        return f"passes {called.shared} bytes of dynamic shared memory, not {dynamic}"
    if called.stream != call.stream:
        return f"launches on stream {called.stream:#x}, not {call.stream:#x}"
    passed = _passed(interface, call.values)
    for param, got in zip(interface.params, called.arguments, strict=True):
        if got != bits_of(param, passed[param.name]):
            return f"does not pass {param.name} in its place"
    return None


def _passed(interface: Interface, values: Mapping[str, int | float]) -> Mapping[str, int | float]:
    """What reaches the kernel: no terms where their sum is multiplied by 0."""
    scalars = {p.name: float(values[p.name]) for p in interface.params if p.kind == "scalar"}
    if interface.product is None or not interface.skips_product(scalars):
        return values
    return {**values, interface.product[1]: 0}


def _spelled(sizes: tuple[int, ...]) -> str:
    return " x ".join(map(str, sizes))


def _name(error: int) -> str:
    return NAMES.get(error, f"error {error}")


# What it is called with.


def _values(emitted: Emitted, sizes: Mapping[str, int]) -> Values:
    """A call that keeps every requirement near ``sizes``; where they leave an extent out, a little
    more than a tile.  No two values are equal where nothing forbids it."""
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
            step = _step(interface, param.name)
            values[param.name] = ((1 << 40) + 1000 * i) // step * step
    return {param.name: values[param.name] for param in interface.params}


def _shapes(emitted: Emitted) -> Iterator[tuple[str, Values]]:
    """Beside one, two and three tiles along each letter, and none."""
    interface = emitted.interface
    for name, tile in (*interface.tiles, *((name, 1) for _, name in interface.batches)):
        for size in sorted({0, 1, *(max(k * tile + d, 1) for k in (1, 2, 3) for d in (-1, 0, 1))}):
            yield f"{name} = {size}", _values(emitted, {name: size})
    contracted = set(interface.extent_names()) - set(interface.shaping())
    for name in sorted(contracted):
        yield f"{name} = 0", _values(emitted, {name: 0})


def _signs(interface: Interface, plain: Values) -> Iterator[tuple[str, Values]]:
    for name in interface.extent_names():
        yield f"{name} negative", plain | {name: -_step(interface, name)}
    for _, _, name in interface.strides:
        yield f"{name} negative", plain | {name: -int(plain[name])}


def _broken(emitted: Emitted, plain: Values) -> Iterator[tuple[str, Values]]:
    """Each requirement at its bound, and broken by the least that breaks it and no other."""
    for rule in emitted.interface.requirements:
        for values in _bounds(emitted, plain, rule):
            yield f"{rule.text()}, with {rule.name} = {values[rule.name]}", values
    for param in emitted.interface.scratch:
        for off in (param.align, param.align // 2):
            values = plain | {param.name: int(plain[param.name]) + off}
            yield f"{param.name} {off} bytes off", values


def _bounds(emitted: Emitted, plain: Values, rule: Requirement) -> Iterator[Values]:
    value, step = int(plain[rule.name]), _step(emitted.interface, rule.name)
    match rule:
        case AtLeast(name, bound):
            yield _values(emitted, {bound: 3 * step})
            yield plain | {name: (int(plain[bound]) - 1) // step * step}
        case AtMost(name, bound):
            yield from _greatest(emitted, name, bound // step * step)
        case MultipleOf(name, divisor):
            steps = (*(k for k in range(1, divisor) if divisor % k == 0), divisor)
            for off in (*steps, *(-k for k in steps)):
                yield plain | {name: value + off}
        case Equal(name, other):
            for off in (-step, step):
                yield plain | {name: int(plain[other]) + off}
        case Aligned(name, size):
            for off in (1 << i for i in range(size.bit_length())):
                yield plain | {name: value + off}


def _greatest(emitted: Emitted, name: str, bound: int) -> Iterator[Values]:
    """An extent as large as it may be, and just larger, with rows that are as long."""
    interface = emitted.interface
    small = dict.fromkeys(interface.shaping(), 1)
    try:
        values = _values(emitted, small | {name: bound})
    except UsageError:
        return
    yield values
    larger: Values = values | {name: bound + _step(interface, name)}
    for rule in interface.requirements:
        if isinstance(rule, AtLeast) and rule.bound == name:
            step = _step(interface, rule.name)
            larger[rule.name] = -(-int(larger[name]) // step) * step
    if _fits(interface, larger):
        yield larger


def _step(interface: Interface, name: str) -> int:
    """The least number whose multiples keep what is required of a parameter's divisors."""
    rules = (r for r in interface.requirements if isinstance(r, MultipleOf) and r.name == name)
    return lcm(*(rule.divisor for rule in rules))


def _fits(interface: Interface, values: Values) -> bool:
    """Can the ints be passed at all?"""
    ints = (p.name for p in interface.params if p.kind in ("extent", "ld"))
    return all(int(values[name]) <= INT_MAX for name in ints)


def _many(emitted: Emitted) -> Iterator[tuple[str, Values]]:
    """Numbers of blocks about 2^31 and as large as they come."""
    interface = emitted.interface
    sizes = {**dict(interface.tiles), **{name: 1 for _, name in interface.batches}}
    first, *others = interface.shaping()
    for other in others or [first]:
        for a, b in _factors(INT_MAX // interface.parts):
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
    yield 65537, 65537  # of which 32 bits are a grid again
    yield 1, count
    yield 1, count + 1
    yield 7, count // 7
    yield 7, count // 7 + 1


def _large(emitted: Emitted, told: str, sizes: Mapping[str, int]) -> Iterator[tuple[str, Values]]:
    """A call of large extents, cut where the requirements bound them."""
    interface = emitted.interface
    bounds = {r.name: r.bound for r in interface.requirements if isinstance(r, AtMost)}
    cut: dict[str, int] = {}
    for name, size in sizes.items():
        step = _step(interface, name)
        cut[name] = max(min(size, bounds.get(name, INT_MAX)) // step, 1) * step
    try:
        values = _values(emitted, cut)
    except UsageError:
        return
    if _fits(interface, values):
        yield told, values
