"""Kernels on TMA, tensor cores, with warp roles, clusters, split K and persistent blocks, at their
edges on a GPU."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from gemmgen.base.source import Source
from gemmgen.calling.launches import Case, Data
from gemmgen.gpu import device
from gemmgen.gpu.bench import arrays_of, inputs
from gemmgen.gpu.compare import Reference, wanted
from gemmgen.gpu.device import DeviceArray
from gemmgen.gpu.elements import nan
from gemmgen.gpu.launch import Kernel
from gemmgen.ir.gemm_roles import contraction
from gemmgen.ir.launch_shape import Shape
from gemmgen.ir.param import Param
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof import gpu as layer
from gemmgen.proof.outcome import Subject
from gemmgen.proof.shapes import fit

cp = pytest.importorskip("cupy")

EXAMPLES = Path(__file__).parents[2] / "examples"
HOPPER, MMA, STEPS = (
    [f"{folder}/{path.stem}" for path in sorted((EXAMPLES / folder).glob("*.sched"))]
    for folder in ("hopper", "mma", "steps")
)
OTHERS = ["async_copy", "hilbert", "l2_hints", "persistent", "split_k", "tensor_core"]
BEST = [f"best/{path.stem}" for path in sorted((EXAMPLES / "best").glob("bf16_*.sched"))]
NAMES = [*HOPPER, *STEPS, *BEST, *MMA, *OTHERS]
"""A kernel of each mechanism beyond the f32 ladder."""
LAUNCHES = 1000
MOST_US = 8.0
"""Of Python's time, for a prepared launch: 7.4 on an H200's host for a kernel without maps."""


@pytest.fixture(autouse=True)
def tma() -> None:
    if device.capability(cp.cuda.runtime.getDevice()) < (9, 0):
        pytest.skip("TMA came with sm_90")


def emitted(name: str) -> Emitted:
    return compile_source(Source((EXAMPLES / f"{name}.sched").read_text(), name))


@dataclass(frozen=True)
class Call:
    """A kernel, what it is called with, and numbers for that."""

    kernel: Kernel
    case: Case
    values: dict[str, DeviceArray]
    arrays: dict[str, DeviceArray]
    reference: Reference | None

    @staticmethod
    def of(name: str, shape: Shape, data: Data) -> Call:
        known = emitted(name)
        kernel, case = Kernel.of(known), Case(fit(known, shape), data)
        values = inputs(kernel.interface, case)
        arrays = arrays_of(kernel.interface, values)
        return Call(kernel, case, values, arrays, layer.reference_of(known))

    @property
    def output(self) -> Param:
        return contraction(self.kernel.interface).c

    def prepared(self, **others: object):
        scalars = self.case.scalars(self.kernel.interface)
        return self.kernel.prepare(**{**self.arrays, **others, **scalars})

    def complaint(self, found: DeviceArray) -> str | None:
        expected = wanted(self.kernel.interface, self.values, self.case, self.reference)
        return expected.difference(found, self.output.dtype)


def far_apart(array: DeviceArray, pitch: int) -> DeviceArray:
    """The same rows, ``pitch`` elements apart."""
    made = cp.empty((array.shape[0], pitch), array.dtype)[:, : array.shape[1]]
    made[...] = array
    return made


@pytest.mark.parametrize("name", NAMES)
def test_one_tile_more_than_blocks(name: str) -> None:
    """The GPU's blocks at once, one more, and twice as many and one more; a single tile; and sums
    of nothing."""
    known = emitted(name)
    tile_m, tile_n = dict(known.interface.tiles).values()
    held = device.multiprocessors(cp.cuda.runtime.getDevice())
    shapes = [(tiles * tile_m, tile_n - 8, 72) for tiles in (1, held - 1, held + 1, 2 * held + 1)]
    shapes += [(tile_m - 5, tiles * tile_n, 72) for tiles in (held, held + 1)]
    shapes += [(tile_m, tile_n, 64), (tile_m, tile_n, 0), (tile_m + 3, held * tile_n, 0)]
    outcome = layer.check(Subject(known, tuple(fit(known, shape) for shape in shapes)))
    assert outcome.status == "passed", outcome.detail or outcome.reason


@pytest.mark.parametrize("name", NAMES)
def test_offsets_do_not_wrap_beyond_2_to_the_31_elements(name: str) -> None:
    """Of each operand, and of C."""
    call, pitch = Call.of(name, (1104, 1104, 1104), "integers"), 2**31 // 1000 // 16 * 16 + 128
    product = contraction(call.kernel.interface)
    for far in (product.a, product.b, product.c):
        moved = far_apart(call.arrays[far.name], pitch)
        output = moved if far == product.c else call.arrays[product.c.name]
        output.fill(nan(product.c.dtype))
        call.prepared(**{far.name: moved, product.c.name: output})()
        assert call.complaint(output) is None, far.name
        del moved, output
        cp.get_default_memory_pool().free_all_blocks()  # other processes need it, too


@pytest.mark.parametrize("name", NAMES)
def test_gives_the_same_bits_beside_another_kernel(name: str) -> None:
    """1,000 launches on a stream, while another keeps the multiprocessors busy in pieces."""
    call = Call.of(name, (1104, 1408, 624), "normal")
    rng, output = cp.random.default_rng(7), call.output
    call.prepared()()
    first = call.arrays[output.name]
    outputs = [cp.empty_like(first) for _ in range(8)]
    for made in outputs:
        made.fill(nan(output.dtype))
    launches = [call.prepared(**{output.name: made}) for made in outputs]
    other, own = (cp.cuda.Stream(non_blocking=True) for _ in range(2))
    x = rng.standard_normal((512, 512), dtype="float32")
    bits = f"uint{8 * first.dtype.itemsize}"
    cp.cuda.Device().synchronize()
    wrong = cp.zeros((), "int64")
    for turn in range(LAUNCHES):
        with other:
            x = x @ x / 32
        with own:
            launches[turn % 8]()
            if turn % 8 == 7:
                for made in outputs:
                    wrong += (made.view(bits) != first.view(bits)).sum()
                    made.fill(nan(call.output.dtype))
    cp.cuda.Device().synchronize()
    assert int(wrong) == 0


VIEWED = {"bf16": "bfloat16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}
"""PyTorch's types for what CuPy holds as raw bits."""


def in_pytorch(call: Call) -> dict[str, object]:
    """The call's tensors as PyTorch's, of the same memory."""
    torch, found = pytest.importorskip("torch"), dict[str, object]()
    for param in call.kernel.interface.params:
        if param.name in call.arrays:
            tensor = torch.from_dlpack(call.arrays[param.name])
            kind = VIEWED.get(param.dtype)
            found[param.name] = tensor.view(getattr(torch, kind)) if kind else tensor
    return found


@pytest.mark.timing
@pytest.mark.parametrize("library", ("CuPy", "PyTorch"))
@pytest.mark.parametrize("name", NAMES)
def test_a_prepared_launch_costs_no_more_with_maps(name: str, library: str) -> None:
    call = Call.of(name, (128, 128, 16), "normal")
    given = in_pytorch(call) if library == "PyTorch" else {}
    launch, kernels = call.prepared(**given), 1 + len(call.kernel.interface.split)
    each = []
    for _ in range(20):
        cp.cuda.Device().synchronize()
        start = time.perf_counter()
        for _ in range(200):
            launch()
        each.append((time.perf_counter() - start) / 200 * 1e6)
    print(f"\n{name}, {library}: a prepared launch takes {sorted(each)[10]:.1f} us")
    assert min(each) < MOST_US * kernels
