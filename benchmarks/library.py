"""A library of ``gemmgen library`` on a GPU: right, as fast as its best kernel, cheap to call.

    python benchmarks/library.py SPEC [--product NAME ...] [--count 20] [--seed 1] [--folder FOLDER]
        [--json FILE]

writes the library of SPEC, builds its Python package with nvcc, and takes for each product the
shapes of the spec and ``count`` more, whose extents are drawn log-uniformly between the least and
the greatest of the spec (those other than M in multiples of 8).  Each result is compared with
PyTorch's in f32.  Three columns follow for each shape:

    torch   the time of torch.mm (torch.addmm with a bias[n]) over the library's
    best    the time of the library's fastest kernel there over that of the kernel it launches
    host    microseconds of the host for a call from Python, with ``out`` and without, and from C,
            if the GPU takes at most 100

Times of the GPU are those of ``default_path.py``: CUDA graphs, each side warmed by itself, in an
order drawn anew in each of three rounds; medians.  Exit code 1 if a result is wrong.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import json
import math
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean, median
from typing import Any

from default_path import ROUNDS, graph, microseconds
from vendors import drawn, most_error

from gemmgen.library.chosen_kernels import ProductKernels, kernels_of
from gemmgen.library.library_files import architecture_of, files_of
from gemmgen.library.library_spec import LibrarySpec, ProductSpec, parse_spec
from gemmgen.schedule.roles import roles

MEASURED = """

// for benchmarks/library.py
#include <chrono>
extern "C" int {name}_nearest({integers})
{{
    const bool tried[KERNELS] = {{}};
    return nearest({extents}, tried);
}}
extern "C" size_t {name}_bytes(int kernel, {integers}) {{ return workspace_of(kernel, {extents}); }}
extern "C" int {name}_by(int kernel, {parameters}, void *workspace, cudaStream_t stream)
{{
    return launch(kernel, {names}, static_cast<char *>(workspace), stream);
}}
extern "C" double {name}_host_us(int times, {parameters}, void *workspace, size_t workspace_bytes,
    cudaStream_t stream)
{{
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i)
        {name}({names}, workspace, workspace_bytes, stream);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    return took.count() / times;
}}
"""
"""What is appended to a product's file: its kernels one by one, and a loop of calls."""
CALLS, BATCHES, SHORT = 200, 10, 100.0
"""Calls between two waits for the GPU, how often, and the microseconds of the GPU for a call up to
which the host's time is taken."""


@dataclass(frozen=True)
class Row:
    product: str
    shape: tuple[int, ...]
    of_spec: bool
    kernel: int
    best_kernel: int
    us: float
    torch: float
    best: float
    python_us: float
    new_us: float
    c_us: float
    error: float


@dataclass(frozen=True)
class Product:
    """A product with its functions: the package's, and those of ``MEASURED``."""

    found: ProductKernels
    function: Callable[..., Any]
    loaded: ctypes.CDLL
    prefix: str

    def c(self, name: str, result: Any = ctypes.c_int) -> Any:
        function = self.loaded[f"{self.prefix}_{name}"]
        function.restype = result
        return function


def built(spec: LibrarySpec, products: Sequence[ProductKernels], folder: Path) -> Path:
    """Writes and compiles the library; the path of its packages."""
    files = files_of(spec, products)
    for product in products:
        file = f"{product.spec.name}.cu"
        files[file] += functions_for(files[file], f"{spec.name}_{product.spec.name}")
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    arch = architecture_of(products)
    options = ["-std=c++17", "-O3", f"-gencode=arch=compute_{arch},code=sm_{arch}", "-I."]
    options += ["-Xcompiler=-fPIC", "-cudart=static"]
    sources = [x for x in files if x.endswith((".cu", ".cpp")) and x != "selftest.cu"]

    def compiled(source: str) -> str:
        target = source.replace("/", "_") + ".o"
        subprocess.run(["nvcc", *options, "-c", source, "-o", target], cwd=folder, check=True)
        return target

    with ThreadPoolExecutor() as pool:
        objects = list(pool.map(compiled, sources))
    shared = f"python/{spec.name}/lib{spec.name}_python.so"
    command = ["nvcc", *options, "-shared", *objects, "-o", shared]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "python"


def functions_for(text: str, name: str) -> str:
    """``MEASURED`` for a product's file, whose text begins with ``text``."""
    head = re.search(rf'extern "C" cudaError_t {name}\((.*?), void \*workspace,', text, re.DOTALL)
    assert head is not None
    parameters = " ".join(head[1].split())
    names = re.findall(r"(\w+)(?:,|$)", parameters)
    sized = re.search(rf'extern "C" size_t {name}_workspace\((.*?)\)', text, re.DOTALL)
    assert sized is not None
    integers = " ".join(sized[1].split())
    extents = ", ".join(re.findall(r"(\w+)(?:,|$)", integers))
    return MEASURED.format(
        name=name,
        integers=integers,
        extents=extents,
        parameters=parameters,
        names=", ".join(names),
    )


def shapes_of(product: ProductSpec, count: int, draw: random.Random) -> list[tuple[int, ...]]:
    """The spec's shapes and the ends of its ranges, then others between them."""
    ends = [shape for span in product.ranges for shape in (span.low, span.high)]
    known = [*product.shapes, *ends]
    ranges = [(min(sizes), max(sizes)) for sizes in zip(*known, strict=True)]
    found = list(known)
    for _ in range(count if any(low < high for low, high in ranges) else 0):
        shape: list[int] = []
        for at, (low, high) in enumerate(ranges):
            size = round(math.exp(draw.uniform(math.log(low), math.log(high))))
            shape.append(max(low, size // 8 * 8) if at and low < high else size)
        found.append(tuple(shape))
    return list(dict.fromkeys(found))


class Call:
    """A product's arrays at a shape, its call, PyTorch's, and that of one kernel."""

    def __init__(self, product: Product, shape: tuple[int, ...]) -> None:
        import torch

        spec, emitted = product.found.spec, product.found.plain.emitted
        interface, gemm = emitted.interface, emitted.schedule.gemm
        m, n, k = roles(gemm)
        self.sizes = dict(zip((m, n, k), shape, strict=True))
        output = next(p for p in interface.params if p.written)
        inputs = [p for p in interface.params if p.kind == "tensor" and p is not output]
        self.arrays = {
            p.name: drawn(tuple(self.sizes[x] for x in p.indices), p.dtype) for p in inputs
        }
        self.scalars = {p.name: 0.75 for p in interface.scalars if p.name not in ("alpha", "beta")}
        self.product = product
        kinds = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
        self.out = torch.empty(
            [self.sizes[x] for x in output.indices], dtype=kinds[output.dtype], device="cuda"
        )
        self.left, self.right = (
            self._as(p, (m, k) if at == 0 else (k, n))
            for at, p in enumerate(self._factors(inputs, k))
        )
        self.letters, self.interface, self.dtype = (m, n, k), interface, spec.dtype
        self.epilogue = spec.epilogue
        self.bias = re.fullmatch(rf"acc \+ (\w+)\[{n}\]", spec.epilogue or "")

    def _factors(self, inputs: Sequence[Any], k: str) -> list[Any]:
        return [p for p in inputs if k in p.indices][:2]

    def _as(self, param: Any, letters: tuple[str, str]) -> Any:
        found = self.arrays[param.name]
        return found if tuple(param.indices) == letters else found.t()

    def ours(self) -> Any:
        return self.product.function(**self.arrays, **self.scalars, out=self.out)

    def ours_new(self) -> Any:
        return self.product.function(**self.arrays, **self.scalars)

    def vendor(self) -> Callable[[], Any]:
        import torch

        if self.bias:
            bias = self.arrays[self.bias[1]]
            return lambda: torch.addmm(bias, self.left, self.right)
        return lambda: torch.mm(self.left, self.right)

    def wanted(self) -> Any:
        """The result in f32, by the epilogue's own text."""
        import torch

        torch.backends.cuda.matmul.allow_tf32 = False
        acc = self.left.float() @ self.right.float()
        if self.epilogue is None:
            return acc
        m, n, _ = self.letters
        text = re.sub(rf"(\w+)\[{m}\]", r"\1[:, None]", self.epilogue)
        text = re.sub(rf"(\w+)\[{n}\]|(\w+)\[{m}, {n}\]", r"\1\2", text)
        functions = torch.nn.functional
        known: dict[str, Any] = {"relu": torch.relu, "silu": functions.silu, "tanh": torch.tanh}
        known["gelu"] = lambda x: functions.gelu(x, approximate="tanh")
        known |= {name: array.float() for name, array in self.arrays.items()} | self.scalars
        return eval(text, {"__builtins__": {}}, {"acc": acc, **known})

    def arguments(self) -> list[Any]:
        """The arguments in C, from the extents to the last one before the workspace."""
        tensors = {
            **self.arrays,
            next(p.name for p in self.interface.params if p.written): self.out,
        }
        names = {self.interface.extent(x): size for x, size in self.sizes.items()}
        steps: dict[str, int] = {}
        for param in self.interface.params:
            if param.kind == "tensor":
                for step, stride in zip(
                    self.interface.steps(param), tensors[param.name].stride(), strict=True
                ):
                    steps |= {step: stride} if step is not None else {}
        found: list[Any] = []
        for param in self.interface.params:
            if param.kind == "tensor":
                found.append(ctypes.c_void_p(tensors[param.name].data_ptr()))
            elif param.kind == "scalar":
                value = {"alpha": 1.0, "beta": 0.0, **self.scalars}[param.name]
                found.append((ctypes.c_double if param.dtype == "f64" else ctypes.c_float)(value))
            elif not param.is_scratch:
                found.append(ctypes.c_int({**steps, **names}[param.name]))
        return found

    def extents(self) -> list[int]:
        names = {self.interface.extent(x): size for x, size in self.sizes.items()}
        return [names[p.name] for p in self.interface.params if p.kind == "extent"]


def measured(product: Product, shape: tuple[int, ...], of_spec: bool, draw: random.Random) -> Row:
    import torch

    call = Call(product, shape)
    own = product.c("nearest")(*call.extents())
    kernels = len(product.found.kernels) - 1  # the plain one is no candidate
    arguments, guess = call.arguments(), 2 * math.prod(shape) / 6e8 + 2
    largest = max(
        product.c("bytes", ctypes.c_size_t)(kernel, *call.extents()) for kernel in range(kernels)
    )
    space = torch.zeros(largest + 1, dtype=torch.uint8, device="cuda")
    at = ctypes.c_void_p(space.data_ptr())

    def by(kernel: int) -> Callable[[], int]:
        def run() -> int:
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            return product.c("by")(kernel, *arguments, at, stream)

        return run

    takes = [kernel for kernel in range(kernels) if by(kernel)() == 0]
    sides = {"torch": graph(call.vendor(), guess), "ours": graph(call.ours, guess)}
    sides |= {f"kernel {kernel}": graph(by(kernel), guess) for kernel in takes}
    times: dict[str, list[float]] = {name: [] for name in sides}
    ratios: list[float] = []
    for _ in range(ROUNDS):
        us = {side: microseconds(*sides[side]) for side in draw.sample(list(sides), len(sides))}
        ratios.append(us["torch"] / us["ours"])
        for side, took in us.items():
            times[side].append(took)
    # after the timing: what the timed graph leaves
    wanted = call.wanted()
    call.out.fill_(float("nan"))
    sides["ours"][0].replay()
    error = float((call.out.float() - wanted).norm() / wanted.norm())
    error = error if math.isfinite(error) else math.inf
    of_kernels = {kernel: median(times[f"kernel {kernel}"]) for kernel in takes}
    best = min(of_kernels, key=lambda kernel: of_kernels[kernel], default=own)
    launched = of_kernels.get(own, median(times["ours"]))  # another one if its own refuses
    share = of_kernels[best] / launched if of_kernels else math.nan
    host = (math.nan, math.nan, math.nan)
    if median(times["ours"]) <= SHORT:
        host = (host_us(call.ours), host_us(call.ours_new), c_us(product, arguments, at, largest))
    return Row(
        product.found.spec.name, shape, of_spec, own, best, median(times["ours"]), median(ratios),
        share, *host, error,
    )  # fmt: skip


def host_us(call: Callable[[], Any]) -> float:
    """Microseconds of the host for a call; the GPU's queue is drained before each batch, and a
    batch ends before a full queue waits, if kernels are short."""
    import torch

    found: list[float] = []
    for _ in range(BATCHES):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(CALLS):
            call()
        found.append((time.perf_counter() - begin) / CALLS * 1e6)
    torch.cuda.synchronize()
    return median(found)


def c_us(product: Product, arguments: list[Any], space: Any, size: int) -> float:
    import torch

    found: list[float] = []
    for _ in range(BATCHES):
        torch.cuda.synchronize()
        loop = product.c("host_us", ctypes.c_double)
        found.append(loop(CALLS, *arguments, space, ctypes.c_size_t(size), None))
    torch.cuda.synchronize()
    return median(found)


def said(row: Row, wrong: bool) -> str:
    other = f" (kernel {row.best_kernel})" if row.best_kernel != row.kernel else ""
    shape = "x".join(map(str, row.shape)) + ("*" if row.of_spec else " ")
    return (
        f"{row.product:>10} {shape:>17} kernel {row.kernel} {row.us:8.2f} us, {row.torch:.3f} of "
        f"torch, {row.best:.3f} of the best{other}, host {row.python_us:.2f} us from Python, "
        f"{row.new_us:.2f} without out, {row.c_us:.2f} from C"
        + (f"  WRONG: {row.error:.1e}" if wrong else "")
    )


def summary(rows: Sequence[Row]) -> str:
    mean = math.exp(fmean(math.log(row.torch) for row in rows))
    best = sorted(row.best for row in rows if not math.isnan(row.best))
    near = sum(share >= 0.98 for share in best)
    least = min(rows, key=lambda row: row.us)
    worst = f", least {best[0]:.3f}" if best else ""
    return (
        f"{len(rows)} shapes: {mean:.3f} of torch; within 2% of the best kernel: {near} of "
        f"{len(best)}{worst}; host at the shortest kernel {least.python_us:.2f} us "
        f"from Python, {least.new_us:.2f} without out, {least.c_us:.2f} from C"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", type=Path)
    parser.add_argument("--product", action="append", help="take this one alone; may be repeated")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    spec = parse_spec(asked.spec.read_text(encoding="utf-8"), str(asked.spec))
    if asked.product:
        own = tuple(x for x in spec.products if x.name in asked.product)
        spec = replace(spec, products=own)
    began, products = time.monotonic(), list(kernels_of(spec))
    folder = asked.folder or Path(tempfile.mkdtemp())
    there = built(spec, products, folder)
    print(f"written and built in {time.monotonic() - began:.0f} s: {folder}", flush=True)
    sys.path.insert(0, str(there))
    package = importlib.import_module(spec.name)
    loaded = ctypes.CDLL(str(there / spec.name / f"lib{spec.name}_python.so"))
    rows, wrong, draw = list[Row](), 0, random.Random(asked.seed)
    for found in products:
        name = found.spec.name
        each = Product(found, getattr(package, name), loaded, f"{spec.name}_{name}")
        for shape in shapes_of(found.spec, asked.count, draw):
            row = measured(each, shape, shape in found.spec.shapes, draw)
            bad = row.error >= most_error(found.spec.dtype)
            wrong += bad
            rows.append(row)
            print(said(row, bad), flush=True)
        print(f"{name}: {summary([row for row in rows if row.product == name])}", flush=True)
    print(f"all: {summary(rows)}\nwrong: {wrong}; {time.monotonic() - began:.0f} s")
    if asked.json:
        listed = [asdict(row) for row in rows]
        asked.json.write_text(json.dumps({"spec": spec.name, "rows": listed}, indent=1) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
