"""The emitted launcher, compiled by nvcc and called: right results, and the errors that C2 has."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from mutants.subjects import SCHEDULES, emitted

from gemmgen.calling.dimensions import solve
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param
from gemmgen.numerics.formats import Stored, bits, stored
from gemmgen.proof import launcher, launcher_arguments
from gemmgen.sim.allocation import scratch_of
from gemmgen.sim.launcher_calls import LauncherCall
from gemmgen.sim.run import compile_kernel

cp = pytest.importorskip("cupy")
pytestmark = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")

ENTRY = """
extern "C" { auto *entry = launch_gemm; }
static_assert(cudaErrorInvalidValue == 1 && cudaErrorInvalidConfiguration == 9, "as in runtime.h");
static_assert(cudaErrorMisalignedAddress == 716 && cudaSuccess == 0, "as in runtime.h");
static_assert(cudaFuncAttributeMaxDynamicSharedMemorySize == 8, "as in runtime.h");
static_assert(cudaErrorNotSupported == 801 && cudaEnableDefault == 0, "as in runtime.h");
static_assert(cudaDriverEntryPointSuccess == 0, "as in runtime.h");
"""
NUMBERS = {"extent": ctypes.c_int, "ld": ctypes.c_int, "stride": ctypes.c_longlong}


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """The address of each launcher."""
    folder = tmp_path_factory.mktemp("launchers")
    arch = f"-arch=sm_{cp.cuda.Device().compute_capability}"

    def build(name: str) -> Path:
        source = folder / f"{name.replace(' ', '_')}.cu"
        source.write_text(emitted(name).text + ENTRY, encoding="utf-8")
        made = source.with_suffix(".so")
        flags = ["-std=c++17", arch, "-Werror", "all-warnings"]
        command = ["nvcc", *flags, "-shared", "-Xcompiler", "-fPIC", str(source), "-o", str(made)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return made

    with ThreadPoolExecutor(8) as pool:
        made = dict(zip(SCHEDULES, pool.map(build, SCHEDULES), strict=True))
    loaded = {name: ctypes.CDLL(str(path)) for name, path in made.items()}
    return {
        name: ctypes.c_void_p.in_dll(library, "entry").value or 0
        for name, library in loaded.items()
    }


def call(entry: int, interface: Interface, values: Mapping[str, int | float]) -> int:
    """The error of a call on the default stream; tensors are addresses."""
    types = [_type(param) for param in interface.params]
    function = ctypes.CFUNCTYPE(ctypes.c_int, *types, ctypes.c_void_p)(entry)
    return function(*(values[param.name] for param in interface.params), None)


def _type(param: Param) -> type[ctypes._SimpleCData]:  # type: ignore
    if param.kind == "scalar":
        return ctypes.c_double if param.dtype == "f64" else ctypes.c_float
    return NUMBERS.get(param.kind, ctypes.c_void_p)


@pytest.mark.parametrize("name", SCHEDULES)
def test_it_refuses_what_is_expected(name: str, entries: dict[str, int]) -> None:
    subject = emitted(name)
    refused = 0
    for message, made in launcher_arguments.calls(subject):
        want = launcher.expected(subject.interface, made.values)
        if want.launches or made != LauncherCall(made.values, made.stream):
            continue
        assert call(entries[name], subject.interface, made.values) == want.error, message
        refused += 1
    assert refused > 5


@pytest.mark.parametrize("size", (1, 37, 130))
@pytest.mark.parametrize("name", SCHEDULES)
def test_it_launches_what_runs_rightly(name: str, size: int, entries: dict[str, int]) -> None:
    subject = emitted(name)
    interface = subject.interface
    sizes = {n: size + 3 * i for i, n in enumerate(("M", "N", "K"))} | {"size_b": 3}
    asked = {n: s for n, s in sizes.items() if n != "size_b" or interface.batches}
    rng = np.random.default_rng(size)
    numbers: dict[str, int | float] = dict(solve(subject.interface, asked, 0))
    arrays: dict[str, Stored] = {}
    for param in interface.params:
        if param.kind == "tensor":
            shape = tuple(int(numbers[interface.extent(letter)]) for letter in param.indices)
            pitch = dict(interface.pitch).get(param.name)
            whole = (*shape[:-1], int(numbers[pitch])) if pitch else shape
            drawn = stored(rng.integers(-3, 4, whole).astype(np.float64), param.dtype)
            arrays[param.name] = drawn[..., : shape[-1]]
            for tensor, letter, stride in interface.strides:
                if tensor == param.name:
                    at = param.indices.index(letter)
                    numbers[stride] = drawn.strides[at] // drawn.itemsize
        elif param.kind == "scalar":
            numbers[param.name] = 2.0 if param.name == "alpha" else -1.0
    scratch = scratch_of(interface, {n: int(v) for n, v in numbers.items() if n in asked})
    there = {n: cp.asarray(_root(a)) for n, a in {**arrays, **scratch}.items()}
    pointers = {n: int(a.data.ptr) for n, a in there.items()}
    assert call(entries[name], interface, numbers | pointers) == 0
    cp.cuda.Device().synchronize()
    given = {p.name: (numbers | arrays)[p.name] for p in interface.params if not p.is_scratch}
    compile_kernel(subject.text, interface).run(given)  # type: ignore
    for array, other in arrays.items():
        assert (bits(there[array].get()) == bits(_root(other))).all()


def _root(array: Stored) -> Stored:
    return array if array.base is None else array.base
