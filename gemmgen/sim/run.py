"""Compile a kernel's text for this machine, and run it on NumPy arrays."""

from __future__ import annotations

import hashlib
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from gemmgen.base.errors import CallError
from gemmgen.base.once import made_once
from gemmgen.calling.launches import BOX_LANDINGS, ORDERS, STRICT_ORDERS
from gemmgen.ir.interface import INT_MAX, Interface
from gemmgen.sim import process, programs
from gemmgen.sim.allocation import not_left_zero, scratch_of
from gemmgen.sim.diagnosis import CheckedRun, TensorShape, read_findings
from gemmgen.sim.failures import KernelFault
from gemmgen.sim.findings import summary
from gemmgen.sim.launch_request import LaunchRequest
from gemmgen.sim.launcher_calls import CALLED, Called, LauncherCall, packed_calls, read_called
from gemmgen.sim.packing import Argument, pack_launch
from gemmgen.sim.ptx import needs_clocks
from gemmgen.sim.shared_symbols import shared_arrays
from gemmgen.sim.unit import has_launcher

CACHED_KERNELS = 64
RUN_SECONDS = 60


class CompiledKernel:
    """A kernel compiled for this machine.  ``interface`` describes its arguments; ``shared`` are
    the arrays in shared memory of a checked one."""

    def __init__(
        self,
        text: str,
        interface: Interface,
        *,
        checked: bool = False,
        ucontext: bool = False,
        warn: bool = True,
    ):
        """As ``compile_kernel``; without ``warn`` the text may cause warnings."""
        self.interface = interface
        self.checked = checked
        self.has_launcher = has_launcher(text, interface)
        self._text = text
        built = programs.program(text, interface, checked=checked, ucontext=ucontext, warn=warn)
        self.program = built.path
        self.shared = shared_arrays(text, built.symbols) if checked else ()
        self._process = process.Process(built.path)
        self._finalize = weakref.finalize(self, _release, self._process, built)

    def run(
        self,
        arguments: Mapping[str, Argument],
        *,
        order: str = "ascending",
        landing: str = "late",
        seed: int = 0,
        seconds: float = RUN_SECONDS,
        unreadable: Collection[str] = (),
        skips_product: bool = False,
        multiprocessors: int = 1,
        finite: bool = False,
    ) -> None:
        """Launches the kernel on ``arguments``, one for each parameter; the arrays change in place.
        Scratch memory (``interface.scratch``) may be left out.

        A tensor is an array of its parameter's type (of bf16: the bits, in uint16) with the shape
        of its indices.  The whole memory that it is a view of is sent with it, so that writes
        outside the tensor can be detected.
        ``order`` is that of the blocks, and of a block's threads between two barriers:
        ``ascending``, ``descending`` or ``shuffled`` (by ``seed``, threads again in each interval);
        ``by priority`` (random, by ``seed``) and ``issuers last`` run one warp as far as it can go.
        ``landing`` is when asynchronous copies complete: ``late``, when they are waited for, or
        ``early``, when they are issued; TMA's may also be ``random``.  The launch goes
        through the text's launcher, if it has one, unless that would leave out the product (alpha
        = 0): then the kernel runs with all of K, or with ``skips_product`` through its launcher
        nevertheless.  A checked kernel may not read elements of the tensors in ``unreadable``
        before it writes them: C, if beta is 0.
        Persistent blocks are as many as a GPU has of this many ``multiprocessors``, or of as many
        clusters at a time.  Of ``finite`` numbers no sum may be anything else.

        Raises CallError for arguments that the kernel does not take, KernelFault if the run is
        stopped or a checked run finds something (its ``findings`` say what; the arrays are
        unchanged), KernelTimeout after ``seconds``.
        """
        if order not in (orders := (*ORDERS, *STRICT_ORDERS)):
            raise CallError(f"order is one of {', '.join(orders)}, not {order!r}")
        if landing not in BOX_LANDINGS:
            raise CallError(f"landing is one of {', '.join(BOX_LANDINGS)}, not {landing!r}")
        given = {**self._scratch(arguments), **arguments}
        launch = pack_launch(
            self.interface, given, order, seed, frozenset(unreadable), multiprocessors
        )
        if not launch.grid:
            return
        by_launcher = skips_product or not self._leaves_out_product(given)
        by_launcher |= bool(self.interface.before)
        launch = replace(launch, landing=landing, by_launcher=by_launcher, finite=finite)
        records = self._process.launch(self._watched(launch), seconds)
        if records:
            findings = read_findings(records, self._context(launch))
            raise KernelFault(summary(findings), findings)
        left = not_left_zero(self.interface, given)
        if left is not None:
            raise KernelFault(left)
        self._check_shared()

    def _watched(self, launch: LaunchRequest) -> LaunchRequest:
        """``launch`` with what a checked run watches."""
        if not self.checked:
            return replace(launch, tensors=())
        arrays = tuple((array.offset, array.bytes) for array in self.shared)
        return replace(launch, arrays=arrays, keeps_clocks=needs_clocks(self._text))

    def _leaves_out_product(self, given: Mapping[str, Argument]) -> bool:
        """Whether the launcher would pass another K than the call's."""
        product = self.interface.product
        if product is None:
            return False
        scale, contracted = product
        return given[scale] == 0 and given[contracted] != 0

    def call_launcher(self, calls: Sequence[LauncherCall]) -> tuple[Called, ...]:
        """What the text's launcher does in each of these calls; the kernel does not run, and the
        launcher has not been called before.

        Raises KernelFault if it is stopped, KernelTimeout.
        """
        if self.interface.maps:  # the text keeps the driver's function
            self._process.close()
        status, answer = self._process.exchange(packed_calls(self.interface, calls), RUN_SECONDS)
        if status == CALLED:
            return read_called(self.interface, answer)
        self._process.close()
        if status == 1:
            raise KernelFault(answer.decode("utf-8", "replace"))
        findings = read_findings(answer, self._context_of(()))
        raise KernelFault(summary(findings), findings)

    def _scratch(self, arguments: Mapping[str, Argument]) -> Mapping[str, Argument]:
        """Scratch memory; for extents that will be refused, as for an empty C."""
        given = {name: arguments.get(name) for name in self.interface.sizing()}
        extents = {n: v for n, v in given.items() if isinstance(v, int) and 0 <= v <= INT_MAX}
        if len(extents) < len(given) or self.interface.is_too_large(extents):
            extents = dict.fromkeys(given, 0)
        return scratch_of(self.interface, extents)

    def _pre_passes(self) -> list[Interface]:
        return [pre_pass.interface for pre_pass in self.interface.before]

    def _check_shared(self) -> None:
        declared, used = self.interface.static_shared, sum(a.bytes for a in self.shared)
        declared += sum({x.name: x.static_shared for x in self._pre_passes()}.values())
        if self.checked and declared and not self.interface.dynamic_shared and used != declared:
            raise KernelFault(
                f"the text declares {used} bytes of shared memory, its interface {declared}"
            )

    def _context(self, launch: LaunchRequest) -> CheckedRun:
        return self._context_of(TensorShape(t.name, t.shape, t.strides) for t in launch.tensors)

    def _context_of(self, shapes: Iterable[TensorShape]) -> CheckedRun:
        file, x = f"{self.interface.name}.cu", self.interface.block[0]
        return CheckedRun(self._text, file, self.program, x, tuple(shapes), self.shared)

    def close(self) -> None:
        """Ends the kernel's process."""
        self._finalize()


_cache: OrderedDict[str, CompiledKernel] = OrderedDict()
_cache_lock = threading.Lock()


def compile_kernel(
    text: str, interface: Interface, *, checked: bool = False, ucontext: bool = False
) -> CompiledKernel:
    """Compiles the kernel between the fixed comment lines of ``text``, unless it has been before.

    ``checked`` instruments each access, and the kernel runs several times as slowly.  It finds: a
    race of two threads between two barriers, an element of a tensor that two threads write, an
    access that is not wholly on a tensor's elements (the padding between rows is outside) or within
    a shared array, a read of shared memory that the block has not written, a misaligned wide
    access, an index outside its array's type, and integer overflow.  ``run`` then raises
    KernelFault with the ``findings``, each with its lines and their directives.

    ``ucontext`` selects the portable fibers in place of those for this processor.  Raises
    CompileFailure if g++ refuses the text or warns, CannotCheck if there is no g++.
    """
    key = hashlib.sha256(repr((text, interface, checked, ucontext)).encode()).hexdigest()
    with made_once(("host", key)):
        found = _known(key)
        if found is not None:
            return found
        made = CompiledKernel(text, interface, checked=checked, ucontext=ucontext)
        with _cache_lock:
            _cache[key] = made
            if len(_cache) > CACHED_KERNELS:
                _cache.popitem(last=False)
        return made


def _known(key: str) -> CompiledKernel | None:
    with _cache_lock:
        found = _cache.get(key)
        if found is not None:
            _cache.move_to_end(key)
        return found


def _renew_lock() -> None:
    """In a fork, where the thread that held the lock does not exist."""
    global _cache_lock
    _cache_lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


def _release(running: process.Process, built: programs.HostProgram) -> None:
    running.close()
    built.close()
