"""The runner of a search on a GPU of this process."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from gemmgen.analyze.launch_arguments import Shape
from gemmgen.base.errors import CallError, CannotCheck
from gemmgen.base.source import Source
from gemmgen.calling.launches import Case
from gemmgen.explore.tune.measuring import Candidate, DeviceInfo, Reading, Rejection, Screen
from gemmgen.gpu import device
from gemmgen.gpu.bench import arrays_of, inputs, timed_case
from gemmgen.gpu.compare import Expected, Reference, wanted
from gemmgen.gpu.cublas_calls import in_few_bits, is_plain, run_cublas
from gemmgen.gpu.device import DeviceArray, cupy
from gemmgen.gpu.elements import nan
from gemmgen.gpu.launch import Kernel
from gemmgen.gpu.rivals import best_of_lt
from gemmgen.gpu.setup import setup
from gemmgen.gpu.timing import rough_time, time_interleaved
from gemmgen.gpu.verify_cases import verify
from gemmgen.ir.arithmetic import Arithmetic
from gemmgen.ir.gemm_roles import Contraction, contraction
from gemmgen.ir.interface import Interface
from gemmgen.ir.launch_shape import spelled
from gemmgen.pipeline import compile_source
from gemmgen.proof.gpu import cases_of, reference_of
from gemmgen.proof.outcome import Subject
from gemmgen.proof.rounded_epilogue import is_exact
from gemmgen.proof.shapes import fit

RIVAL = "rival"
RAGGED = (127, 131, 257)
WARM = 0.5
"""Seconds of the rival before timing: an idle GPU has a low clock."""
SCREENED, LED = 2.0, 6.0
"""Milliseconds of a sample in a first timing, and of the same kernel before it: at its power limit
a GPU runs a kernel at the clock that the one before it left."""
NONE: Mapping[str, tuple[int, ...]] = {}


class GpuRunner:
    """The current GPU, for kernels of one problem at ``shapes``; ``text`` is one such schedule.

    Inputs are random normal numbers, alpha is 1 and beta 0.  ``strides``: of tensors that are not
    dense, in elements, by name; then there is one shape.  Raises ``CannotCheck`` if there is no
    GPU, or none that runs the schedule's target.
    """

    def __init__(
        self, text: str, shapes: Sequence[Shape], strides: Mapping[str, tuple[int, ...]] = NONE
    ):
        emitted = compile_source(Source(text))
        number = cupy().cuda.runtime.getDevice()
        versions = setup(number)
        self.device_info = DeviceInfo(
            device.name(number),
            device.arch_for(emitted.target, *device.capability(number)),
            device.figures(number),
            versions.driver,
            versions.cuda,
        )
        self._shapes = tuple(shapes)
        reference = reference_of(emitted)
        self._problems = [
            _Problem(emitted.interface, timed_case(shape), reference, strides) for shape in shapes
        ]
        self._loaded: dict[int, Kernel] = {}
        self._warm = False

    def check(self, candidates: Sequence[Candidate]) -> tuple[Rejection | None, ...]:
        self._loaded.clear()
        return tuple(self._checked(candidate) for candidate in candidates)

    def time(
        self, candidates: Sequence[Candidate], rounds: int, screen: Screen | None = None
    ) -> tuple[Reading, ...]:
        found = [self._timed(problem, candidates, rounds, screen) for problem in self._problems]
        rivals = [rival for _, rival in found]
        return tuple(
            Reading(
                candidate.number,
                tuple(times[candidate.number] for times, _ in found),
                None if None in rivals else cast(tuple[float, ...], tuple(rivals)),
                self._checked(candidate),
            )
            for candidate in candidates
        )

    def prove(self, candidate: Candidate, text: str) -> Rejection | None:
        emitted = compile_source(Source(text))
        shapes = tuple(dict.fromkeys((*self._shapes, fit(emitted, RAGGED))))
        outcomes = verify(
            self._kernel(candidate),
            cases_of(Subject(emitted, shapes)),
            reference=reference_of(emitted),
            exact=is_exact(emitted.program.problem),
        )
        for outcome in outcomes:
            if outcome.status != "passed":
                return Rejection("wrong", f"{outcome.case.text()}: {outcome.detail}")
        return None

    def _kernel(self, candidate: Candidate) -> Kernel:
        if candidate.number not in self._loaded:
            files, interface = candidate.files, candidate.interface
            kernel = Kernel("", interface, candidate.target, files=files)
            self._loaded[candidate.number] = kernel
        return self._loaded[candidate.number]

    def _checked(self, candidate: Candidate) -> Rejection | None:
        try:
            kernel = self._kernel(candidate)
            for problem in self._problems:
                complaint = problem.complaint(kernel)
                if complaint is not None:
                    return Rejection("wrong", f"{problem.name}: {complaint}")
        except (CallError, CannotCheck) as refusal:
            return Rejection("refused", str(refusal))
        return None

    def _timed(
        self,
        problem: _Problem,
        candidates: Sequence[Candidate],
        rounds: int,
        screen: Screen | None,
    ) -> tuple[dict[int, float], float | None]:
        """Milliseconds by point, and those of the rival."""
        rival_of = problem.rival(candidates[0].interface)
        if not self._warm:
            run = rival_of or problem.launch(self._kernel(candidates[0]))
            time_interleaved({RIVAL: run}, warmup=WARM, rounds=1, quick=SCREENED)
            self._warm = True
        launches = {c.number: problem.launch(self._kernel(c)) for c in candidates}
        most = math.inf
        if screen is not None and rival_of is not None:
            most = screen.slowest * rough_time(rival_of)
        times = {number: rough_time(launch) for number, launch in launches.items()}
        runs = {str(n): launch for n, launch in launches.items() if times[n] <= most}
        if rival_of is not None:
            runs[RIVAL] = rival_of
        if not runs:
            return times, None
        quick = None if screen is None else SCREENED
        timings = time_interleaved(runs, warmup=0.0, rounds=rounds, quick=quick, lead=LED)
        rival = timings.pop(RIVAL, None)
        times |= {int(name): timing.median for name, timing in timings.items()}
        return times, None if rival is None else rival.median


@dataclass
class _Problem:
    """One shape: its inputs, the expected result, and cuBLAS's call if it has one."""

    interface: Interface
    case: Case
    reference: Reference | None
    strides: Mapping[str, tuple[int, ...]]

    @property
    def name(self) -> str:
        return spelled(self.case.shape)

    @cached_property
    def product(self) -> Contraction:
        return contraction(self.interface)

    @cached_property
    def values(self) -> dict[str, DeviceArray]:
        """The inputs as numbers."""
        return inputs(self.interface, self.case)

    @cached_property
    def arrays(self) -> dict[str, DeviceArray]:
        """The arguments of kernels; all candidates write the same C."""
        found = arrays_of(self.interface, self.values)
        return {
            name: strided(array, self.strides[name], cupy()) if name in self.strides else array
            for name, array in found.items()
        }

    @property
    def output(self) -> DeviceArray:
        return self.arrays[self.product.c.name]

    @cached_property
    def numbers(self) -> dict[str, float]:
        return self.case.scalars(self.interface)

    @cached_property
    def _expected(self) -> dict[Arithmetic, Expected]:
        return {}

    def expected(self, interface: Interface) -> Expected:
        """The result of a kernel with this interface: how it adds up decides what error it may
        have, and kernels of one problem may differ in that."""
        arithmetic = interface.arithmetic
        if arithmetic not in self._expected:
            self._expected[arithmetic] = wanted(interface, self.values, self.case, self.reference)
        return self._expected[arithmetic]

    def rival(self, interface: Interface) -> Callable[[], None] | None:
        """cuBLAS's call for the same matrices, with its own output, or else cublasLt's, which adds
        up as a kernel with this ``interface`` does; None if neither has one."""
        few = in_few_bits(interface)
        if few not in self._rivals:
            self._rivals[few] = self._rival(interface)
        return self._rivals[few]

    @cached_property
    def _rivals(self) -> dict[bool, Callable[[], None] | None]:
        return {}

    def _rival(self, interface: Interface) -> Callable[[], None] | None:
        arrays = {**self.arrays, self.product.c.name: self.output.copy()}
        if is_plain(self.interface):
            return run_cublas(self.interface, arrays)
        alone = bool(self.strides) or bool(self.product.scales)
        return None if alone else best_of_lt(interface, arrays)

    def launch(self, kernel: Kernel) -> Callable[[], None]:
        return kernel.prepare(**self.arrays, **self.numbers)

    def complaint(self, kernel: Kernel) -> str | None:
        """What is wrong with the result of one launch on a poisoned output, or None."""
        launch, param = self.launch(kernel), self.product.c
        if not param.read or self.numbers.get("beta") == 0:
            self.output.fill(nan(param.dtype))
        else:
            self.output[...] = arrays_of(self.interface, self.values)[param.name]
        launch()
        return self.expected(kernel.interface).difference(self.output, param.dtype)


def strided(array: Any, strides: Sequence[int], library: Any) -> Any:
    """A copy of ``array`` whose ``strides`` are these, in elements; ``library`` is CuPy or NumPy.

    What lies between its rows has all bits set: NaN in floating point.
    """
    count = 1 + sum((n - 1) * step for n, step in zip(array.shape, strides, strict=True))
    item = array.dtype.itemsize
    memory = library.full(count * item, 255, dtype="uint8").view(array.dtype)
    steps = tuple(step * item for step in strides)
    found = library.lib.stride_tricks.as_strided(memory, array.shape, steps)
    found[...] = array
    return found
