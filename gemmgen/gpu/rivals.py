"""What kernels are timed beside: cuBLAS's call, and the best algorithm of cublasLt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gemmgen.base.errors import CannotCheck
from gemmgen.gpu.cublas_calls import in_few_bits, is_plain, lt_calls, run_cublas
from gemmgen.gpu.device import DeviceArray, cupy
from gemmgen.gpu.timing import time_interleaved
from gemmgen.ir.gemm_roles import Contraction, contraction
from gemmgen.ir.interface import Interface

CUBLAS, CUBLASLT = "cuBLAS", "cublasLt"
RIVALS = (CUBLAS, CUBLASLT)
_ROUNDS = 3
_QUICK = 2.0
"""Milliseconds of a sample of each algorithm; the fastest one is timed with the kernels."""


def names_of(interface: Interface) -> tuple[str, ...]:
    """The rivals' names, which have the storage orders and types: cuBLAS's first; none where
    operands have scales of blocks."""
    product = contraction(interface)
    if product.scales:
        return ()
    said = _orders(product) + (" fast" if in_few_bits(interface) else "")
    return tuple(f"{library} {said}" for library in RIVALS)


def is_rival(name: str) -> bool:
    """Whether a row is that of a rival."""
    return name.startswith(tuple(f"{library} " for library in RIVALS))


def rival(
    name: str, interface: Interface, arrays: Mapping[str, DeviceArray]
) -> Callable[[], None] | None:
    """The call of the rival of that name, or None if the library has none."""
    if name.startswith(f"{CUBLAS} "):
        return run_cublas(interface, arrays) if is_plain(interface) else None
    return best_of_lt(interface, arrays)


def best_of_lt(
    interface: Interface, arrays: Mapping[str, DeviceArray]
) -> Callable[[], None] | None:
    """The fastest call of cublasLt for a kernel's matrices; None if it has none."""
    try:
        return fastest(lt_calls(interface, arrays))
    except CannotCheck:  # cublasLt is not installed
        return None


def fastest(calls: Sequence[Callable[[], None]]) -> Callable[[], None] | None:
    """The one of shortest time of those that run, each timed shortly."""
    running = {str(at): call for at, call in enumerate(calls) if _runs(call)}
    if len(running) < 2:
        return next(iter(running.values()), None)
    timings = time_interleaved(running, warmup=0.0, rounds=_ROUNDS, quick=_QUICK)
    return running[min(timings, key=lambda name: timings[name].median)]


def _runs(call: Callable[[], None]) -> bool:
    """An algorithm may be refused only when it is called."""
    try:
        call()
        cupy().cuda.runtime.deviceSynchronize()
    except RuntimeError:
        return False
    return True


def _orders(product: Contraction) -> str:
    matrices = (product.a, product.b, product.c)
    spelled = [f"{p.name}[{','.join(p.indices)}]" for p in matrices]
    types = [p.dtype for p in matrices]
    if set(types) != {"f32"}:
        spelled.append("/".join(dict.fromkeys(types)))
    return " ".join(spelled)
