"""One call of a kernel on the CPU, in poisoned memory, with a check of all results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gemmgen.calling.dimensions import laid_out, values_of
from gemmgen.calling.inputs import drawn
from gemmgen.calling.launches import (
    BOX_LANDINGS,
    LANDINGS,
    ORDERS,
    STRICT_ORDERS,
    Case,
    Landing,
    Order,
)
from gemmgen.calling.strides import bounds
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.edit import copies
from gemmgen.numerics import reference
from gemmgen.numerics.axes import axes_of, in_roles
from gemmgen.numerics.formats import Real, computing
from gemmgen.numerics.scales import factors_of
from gemmgen.pipeline import Emitted
from gemmgen.proof.rounded_epilogue import Wanted, hides_c, wanted
from gemmgen.proof.sums import Summation
from gemmgen.sim.allocation import allocated, arguments_of, overwritten
from gemmgen.sim.ptx import needs_clocks
from gemmgen.sim.run import RUN_SECONDS, CompiledKernel


def landings_of(emitted: Emitted) -> tuple[Landing, ...]:
    """The completion times of asynchronous copies to test: one for a kernel without any."""
    modes = {copy.mode for copy in copies(emitted.program.main)}
    if "tma" in modes:
        return BOX_LANDINGS
    return LANDINGS if "cp_async" in modes else LANDINGS[:1]


def orders_of(emitted: Emitted) -> tuple[Order, ...]:
    """The orders of threads to test: strict ones too where warps wait for some others alone."""
    return (*ORDERS, *STRICT_ORDERS) if needs_clocks(emitted.text) else ORDERS


class Caller:
    """Calls one kernel; caches the products of inputs."""

    def __init__(self, emitted: Emitted):
        self.emitted = emitted
        self.problem = emitted.program.problem.written
        self._summation = Summation.of(emitted.program)
        self._sums: dict[object, tuple[dict[str, Real], Real]] = {}

    def complaint(
        self, case: Case, kernel: CompiledKernel, seconds: float = RUN_SECONDS
    ) -> str | None:
        """A sentence about what is wrong with the kernel's result for ``case``, or None.

        Raises ``KernelFailure`` if the run is stopped, as after ``seconds``.
        """
        problem, interface = self.problem, self.emitted.interface
        params = interface.params
        tensors, acc = self._drawn(case)
        scalars = case.scalars(interface)
        unread = {problem.c.name} if hides_c(problem) and scalars["beta"] == 0.0 else set[str]()
        # A pre-pass is launched by the launcher alone, which leaves the product out.
        skips_product = case.skips_product or bool(interface.before)
        skips_product = skips_product and interface.skips_product(scalars)
        if skips_product:
            acc = np.zeros_like(acc)
            unread |= {p.name for p in params if interface.is_factor(p)}
        placed = allocated(interface, case, tensors, unread)
        before = {name: matrix.view.copy() for name, matrix in placed.items()}
        kernel.run(
            arguments_of(interface, case, placed),
            order=case.order,
            landing=case.landing,
            seed=sum(case.shape),
            seconds=seconds,
            unreadable=tuple(sorted(unread)),
            skips_product=skips_product,
            multiprocessors=case.multiprocessors,
            finite=case.finite,
        )
        c = problem.c
        result = in_roles(placed[c.name].view, c.letters, axes_of(problem, c.name))
        empty = np.zeros(result.shape, computing(problem.numbers))
        want = wanted(problem, acc, tensors, scalars) if result.size else Wanted(empty, None)
        harm = overwritten(placed, before, c.name)
        if harm is not None:
            return harm
        compared = reference.compare(result, want.value, want.bound, c.dtype)
        return None if compared.equal else f"{c.name}: {compared.text()}"

    def span(self, case: Case) -> int:
        """Bytes from the first element to the last of all tensors, gaps included."""
        interface = self.emitted.interface
        values, found = values_of(interface, case), 0
        for param in interface.params:
            if param.kind == "tensor":
                low, high = bounds(*laid_out(interface, param, values))
                found += (high - low) * BYTES[param.dtype]
        return found

    def _drawn(self, case: Case) -> tuple[dict[str, Real], Real]:
        """Every tensor in its roles, and the product of A and B, of C's shape."""
        follows = self._summation.follows_blocks
        order = case.order if follows else "ascending"
        if order == "shuffled" and case.data == "normal":
            case = replace(case, data="integers")  # their sums are exact in any order
        key = case.shape, case.data, order, case.layout == "shared"
        if key not in self._sums:
            problem = self.problem
            tensors = drawn(self.emitted.interface, case)
            a, b, c = (tensors[t.name] for t in (problem.a, problem.b, problem.c))
            factors = (
                factors_of(problem, problem.a, tensors, a.shape),
                factors_of(problem, problem.b, tensors, b.shape),
            )
            acc = self._summation.sums(a, b, factors, backwards=order == "descending")
            self._sums[key] = tensors, np.broadcast_to(acc, c.shape)
        return self._sums[key]
