"""The integers and scalars that a kernel is called with at a shape."""

from __future__ import annotations

from collections.abc import Mapping

from gemmgen.base.errors import UsageError
from gemmgen.ir.interface import Interface
from gemmgen.ir.launch_shape import Shape
from gemmgen.ir.param import Param
from gemmgen.ir.problem import Problem


def arguments_of(
    interface: Interface,
    problem: Problem,
    shape: Shape,
    *,
    beta: float = 0.0,
    dense: bool = False,
) -> dict[str, int | float]:
    """Dense tensors: each row begins where the one before ends, or at the next allowed
    address, and so does each matrix; with ``dense`` only where the one before ends.

    ``alpha`` and further scalars are 1.  Raises ``UsageError`` for a shape that the kernel does not
    take.
    """
    if min(shape) < 1:
        raise UsageError("a shape to count at has extents of at least 1")
    values: dict[str, int | float] = {}
    for letter, size in zip(problem.letters, shape, strict=True):
        name = interface.extent(letter)
        if values.setdefault(name, size) != size:
            raise _unfit(shape, f"{problem.extent(letter)} == {name}")
    for param in interface.params:
        if param.kind == "tensor":
            values |= _steps(interface, param, values, dense)
    addresses = {p.name: 0 for p in interface.tensors}
    broken = interface.violated({n: int(v) for n, v in values.items()} | addresses)
    if broken:
        raise _unfit(shape, ", ".join(requirement.text() for requirement in broken))
    scalars = (p.name for p in interface.scalars)
    return values | {name: beta if name == "beta" else 1.0 for name in scalars}


def _unfit(shape: Shape, required: str) -> UsageError:
    size = "x".join(map(str, shape[:3]))
    return UsageError(f"the kernel does not take the shape {size}: it requires {required}")


def _steps(
    interface: Interface, param: Param, values: Mapping[str, int | float], dense: bool
) -> dict[str, int]:
    """A tensor's leading dimension and strides, the innermost letter's first; one that is an extent
    is given, and the padding between its rows comes after the matrix."""
    extents = {name: int(value) for name, value in values.items()}
    sizes = [interface.size(letter, extents) for letter in param.indices]
    *outer, _ = zip(interface.steps(param), sizes, strict=True)
    outer.sort(key=lambda step: step[0] in interface.extent_names())
    found: dict[str, int] = {}
    span = sizes[-1]
    for name, size in reversed(outer):
        assert name is not None
        by = 1 if dense else interface.divisor(name)
        step: int = int(values.get(name, -(-span // by) * by))
        found[name] = step
        span = step * size
    return found
