"""A kernel against cuBLAS and against exact integers, over shapes, padding, alpha and beta.

``Kernel`` results are compared with a float64 product of the same numbers; for alpha * acc +
beta * C also with cuBLAS.  Everything around the tensors is poisoned and must stay as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from typing import Literal, Protocol, cast

from gemmgen.base.errors import CallError
from gemmgen.base.record import record
from gemmgen.calling.dimensions import laid_out, values_of
from gemmgen.calling.inputs import as_stored, drawn
from gemmgen.calling.launches import LAYOUTS, Case
from gemmgen.calling.strides import bounds
from gemmgen.gpu.compare import Expected, Reference, wanted
from gemmgen.gpu.cublas_calls import is_plain, run_cublas
from gemmgen.gpu.device import DeviceArray, cupy
from gemmgen.gpu.elements import LIBRARY, bits, elements, nan, storage
from gemmgen.ir.dtypes import ROUNDED
from gemmgen.ir.gemm_roles import contraction
from gemmgen.ir.interface import Interface
from gemmgen.ir.launch_shape import Shape
from gemmgen.ir.param import Param
from gemmgen.numerics.formats import Real, near_tf32

GUARD = 128
"""Poisoned elements before and after each tensor: 256 bytes, so alignment stays."""


class Callee(Protocol):
    """What is verified: a ``Kernel``, or anything that is called like one."""

    @property
    def interface(self) -> Interface: ...

    def __call__(self, **arguments: object) -> object: ...


@record
class CaseOutcome:
    """What became of a case; ``detail`` says where it failed, or why it was refused."""

    case: Case
    status: Literal["passed", "failed", "refused"]
    detail: str = ""


def cases(shape: Shape) -> tuple[Case, ...]:
    """The cases of one shape: each kind of numbers, with and without beta and padding, and with
    each layout of matrices where there are several."""
    layouts = cycle(LAYOUTS if len(shape) > 3 else LAYOUTS[:1])
    plain = (
        Case(shape),
        Case(shape, alpha=2.0, beta=-3.0, pad=5),
        Case(shape, "normal", alpha=1.25, beta=0.5, pad=4),
        Case(shape, "positive", alpha=1.5),
        Case(shape, "permutation", alpha=-2.0, pad=1),
        Case(shape, "NaN in A"),
    )
    return tuple(replace(case, layout=next(layouts)) for case in plain)


def verify(
    kernel: Callee,
    chosen: Sequence[Case],
    *,
    reference: Reference | None = None,
    exact: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[CaseOutcome, ...]:
    """Runs ``chosen`` one after another.

    Without ``reference`` C is alpha * acc + beta * C.  ``exact``: on integers the reference is met
    bit by bit, which an epilogue with exp or division can't promise.
    """
    outcomes: list[CaseOutcome] = []
    for done, case in enumerate(chosen, 1):
        outcomes.append(_outcome(kernel, case, reference, exact))
        if progress is not None:
            progress(done, len(chosen))
    return tuple(outcomes)


def _outcome(kernel: Callee, case: Case, reference: Reference | None, exact: bool) -> CaseOutcome:
    interface = kernel.interface
    values = cast(dict[str, DeviceArray], drawn(interface, case, LIBRARY))
    want = wanted(interface, values, case, reference, exact=exact)
    sizes = values_of(interface, case)
    # What the kernel does not take it must refuse itself.
    letters = zip(contraction(interface).letters, case.shape, strict=True)
    sizes |= {interface.extent(letter): size for letter, size in letters}
    placed = {
        param.name: Placed.of(interface, param, sizes, values[param.name])
        for param in interface.tensors
    }
    try:
        complaint = _run(kernel, placed, case, want)
    except CallError as refusal:
        return CaseOutcome(case, "refused", str(refusal))
    if complaint is None and reference is None:
        complaint = _against_cublas(interface, placed, case, want)
    return CaseOutcome(case, "failed" if complaint else "passed", complaint or "")


@record
class Placed:
    """A tensor within a poisoned buffer, a guard before and after it; ``values`` in storage order
    are its numbers.  ``cuts`` as that of ``Arithmetic``."""

    array: DeviceArray
    buffer: DeviceArray
    values: DeviceArray
    param: Param
    cuts: bool

    @staticmethod
    def of(
        interface: Interface, param: Param, sizes: Mapping[str, int], values: DeviceArray
    ) -> Placed:
        """``values``, in their roles, in their own memory."""
        shape, strides = laid_out(interface, param, sizes)
        _, end = bounds(shape, strides)
        buffer = cupy().full((GUARD + end + GUARD,), nan(param.dtype), storage(param.dtype))
        steps = tuple(step * buffer.dtype.itemsize for step in strides)
        array = cupy().lib.stride_tricks.as_strided(buffer[GUARD:], shape, steps)
        stored = cast(DeviceArray, as_stored(interface, param, cast(Real, values)))
        placed = Placed(array, buffer, stored, param, interface.arithmetic.cuts)
        placed.put()
        return placed

    def put(self, *, hidden: bool = False) -> None:
        """Writes the numbers into the tensor; poison, if they are ``hidden`` from the kernel."""
        dtype = self.param.dtype
        self.array[...] = nan(dtype) if hidden else elements(self.values, dtype)
        if dtype in ROUNDED and not hidden:
            self.array[...] = near_tf32(self.array, cupy(), cut=self.cuts)


def _run(
    kernel: Callee,
    placed: Mapping[str, Placed],
    case: Case,
    want: Expected,
) -> str | None:
    """Launches twice; says what is wrong with results, padding, inputs or repeatability, if any."""
    cp, numbers = cupy(), case.scalars(kernel.interface)
    output = contraction(kernel.interface).c
    array, dtype = placed[output.name].array, output.dtype
    before = {name: bits(item.buffer).copy() for name, item in placed.items()}
    arguments: dict[str, object] = {name: item.array for name, item in placed.items()}
    results: list[DeviceArray] = []
    for _ in range(2):
        placed[output.name].put(hidden=not output.read or numbers.get("beta") == 0)
        kernel(**arguments, **numbers)
        results.append(array.copy())
    complaint = want.difference(results[0], dtype)
    if complaint is not None:
        return complaint
    if 0 not in array.shape:
        placed[output.name].put()
    for name, item in placed.items():
        changed = ~cp.equal(bits(item.buffer), before[name])
        if int(cp.count_nonzero(changed)):
            what = "the padding of C" if name == output.name else f"{name} or its padding"
            return f"{what} was written to, at element {int(cp.argmax(changed))} of its buffer"
    if not kernel.interface.ordered:
        return want.difference(results[1])
    first, second = (bits(result.ravel()) for result in results)
    if int(cp.count_nonzero(~cp.equal(first, second))):
        return "a second launch with the same inputs gave other bits"
    return None


def _against_cublas(
    interface: Interface,
    placed: Mapping[str, Placed],
    case: Case,
    want: Expected,
) -> str | None:
    """cuBLAS on the same memory, held to the same bound: it says whether the bound is fair."""
    product = contraction(interface)
    if not is_plain(interface):
        return None
    output = placed[product.c.name]
    output.put(hidden=case.beta == 0)
    arrays = {name: item.array for name, item in placed.items()}
    run_cublas(interface, arrays, case.alpha, case.beta, reduced=False)()
    complaint = want.difference(output.array, product.c.dtype)
    return None if complaint is None else f"cuBLAS itself fails here: {complaint}"
