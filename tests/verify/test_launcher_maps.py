"""Launchers that encode tensor maps: what is wrong with one is found by its values."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from emit.mapped import BATCHED, MAPPED, PLAIN, emitted_with

from gemmgen.gpu import compiler
from gemmgen.gpu.attributed_launches import DriverAttribute
from gemmgen.gpu.driver import MAP_ALIGNMENT, MAP_BYTES
from gemmgen.gpu.driver_library import LaunchConfig
from gemmgen.ir.dtypes import DTYPES
from gemmgen.ir.launch_attribute import ATTRIBUTES
from gemmgen.ir.tensor_map import L2_PROMOTION
from gemmgen.pipeline import Emitted
from gemmgen.proof import launcher
from gemmgen.sim.run import CompiledKernel

NOT_SUPPORTED = 801

ENCODED = "gg_encode_map(B_map, gg_FLOAT32, {B, {N, K}, {4LL * ldb}}, {BN, BK})"
PLANTED = {
    "a smaller box": ("{BN, BK}", "{BN, BK / 2}", "B with a box of 32 x 8, not 32 x 16"),
    "a transposed box": ("{BN, BK}", "{BK, BN}", "B with a box of 16 x 32, not 32 x 16"),
    "swapped sizes": ("{K, M, size_b}", "{M, K, size_b}", "A with sizes of "),
    "swapped strides": (
        "{4LL * lda, 4LL * stride_A_b}",
        "{4LL * stride_A_b, 4LL * lda}",
        "strides",
    ),
    "a stride in elements": ("{4LL * ldb}", "{1LL * ldb}", "B with strides of 48, not 192"),
    "the stride of another tensor": ("{4LL * ldb}", "{4LL * lda}", "B with strides of "),
    "a batch too many": ("{K, M, size_b}", "{K, M, size_b + 1}", "A with sizes of "),
    "the map of another tensor": ("B_map, gg_FLOAT32, {B,", "B_map, gg_FLOAT32, {A,", "0x"),
    "maps in each other's place": (
        "A_map.map, B_map.map, beta",
        "B_map.map, A_map.map, beta",
        "A with address 0x",
    ),
    "another element type": ("B_map, gg_FLOAT32,", "B_map, 9,", "an element type of 9, not 7"),
    "a type of equal size": ("gg_FLOAT32 = 7;", "gg_FLOAT32 = 2;", "an element type of 2, not 7"),
    "a swizzle": ("box, steps, 0, 0, 2", "box, steps, 0, 3, 2", "fill of 0 x 3 x 2 x 0"),
    "elements apart": ("steps[] = {1, 1,", "steps[] = {1, 2,", "element strides of 1 x 2"),
    "no map": (ENCODED, "cudaSuccess", "B that was not encoded"),
    "an error dropped": (
        "if (error == cudaSuccess)\n        error = gg_encode_map(B_map",
        "error = gg_encode_map(B_map",
        "returns cudaSuccess, not error 80",
    ),
    "a missing driver": ("if (error != cudaSuccess) return error;", "", "reads address (nil)"),
    "a missing function": (
        "if (result != cudaDriverEntryPointSuccess) return cudaErrorNotSupported;",
        "",
        "reads address (nil)",
    ),
    "the second error dropped": (
        "        error = gg_encode_map(B_map",
        "        gg_encode_map(B_map",
        "map of B is refused",
    ),
    "an address that is null": ("given.address = &map, size = 1", "size = 1", "A and B null: "),
    "an extent of 0": (
        "given.address = &map, size = 1",
        "given.address = &map",
        "size 0 is 0, not 1 to 2^32",
    ),
}


def complaint(emitted: Emitted, text: str) -> str | None:
    return launcher.complaint(emitted, text, CompiledKernel(text, emitted.interface, warn=False))


@pytest.mark.by_default("maps of a batch")
@pytest.mark.parametrize("schedule", MAPPED)
def test_a_right_launcher_passes(schedule: str) -> None:
    emitted = emitted_with(MAPPED[schedule])
    assert complaint(emitted, emitted.text) is None


@pytest.mark.by_default("a smaller box", "the map of another tensor")
@pytest.mark.parametrize("planted", PLANTED)
def test_a_wrong_map_is_found(planted: str) -> None:
    emitted = emitted_with(BATCHED)
    old, new, said = PLANTED[planted]
    assert old in emitted.text
    found = complaint(emitted, emitted.text.replace(old, new))
    assert found is not None and said in found


def test_an_interface_that_says_another_box_is_found() -> None:
    emitted = emitted_with(PLAIN)
    first, second = emitted.interface.maps
    other = replace(emitted.interface, maps=(replace(first, box=(64, 8)), second))
    found = complaint(replace(emitted, interface=other), emitted.text)
    assert found is not None and "A with a box of 64 x 16, not 64 x 8" in found


def test_a_function_of_a_later_driver_is_not_asked_for() -> None:
    emitted = emitted_with(PLAIN)
    found = complaint(emitted, emitted.text.replace("&found, 12000,", "&found, 12010,"))
    assert found is not None and "returns cudaErrorNotSupported, not cudaSuccess" in found


def test_what_the_driver_lacks_is_seen_whatever_ran_before() -> None:
    """The text keeps the driver's function: a process that has it would not ask again."""
    emitted = emitted_with(PLAIN)
    kernel = CompiledKernel(emitted.text, emitted.interface)
    for _ in range(2):
        assert launcher.complaint(emitted, emitted.text, kernel) is None


needs_nvcc = pytest.mark.skipif(
    shutil.which("nvcc") is None or compiler.available() is not None, reason="nvcc is not installed"
)


def compiles(text: str, folder: Path) -> None:
    (folder / "gemm.cu").write_text(text)
    command = ["nvcc", "-arch=sm_90", "-Werror", "all-warnings", "-c", "gemm.cu"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.proof
@needs_nvcc
@pytest.mark.proof
@pytest.mark.parametrize("schedule", MAPPED)
def test_nvcc_compiles_the_launchers(schedule: str, tmp_path: Path) -> None:
    compiles(emitted_with(MAPPED[schedule]).text, tmp_path)


@pytest.mark.proof
@needs_nvcc
def test_the_numbers_are_those_of_cuda(tmp_path: Path) -> None:
    """The text, the model and the Python launch spell the enums' numbers."""
    prefix = "CU_TENSOR_MAP"
    types = (traits.tensor_map for traits in DTYPES.values())
    known = {f"{prefix}_DATA_TYPE_{name}": number for number, name in types}
    known |= {f"{prefix}_L2_PROMOTION_L2_128B": L2_PROMOTION, "sizeof(CUtensorMap)": MAP_BYTES}
    known |= {
        f"{prefix}_INTERLEAVE_NONE": 0,
        f"{prefix}_SWIZZLE_NONE": 0,
        f"{prefix}_SWIZZLE_128B": 3,
    }
    known |= {f"{prefix}_FLOAT_OOB_FILL_NONE": 0, "alignof(CUtensorMap)": MAP_ALIGNMENT}
    known |= {"cudaErrorNotSupported": NOT_SUPPORTED, "cudaDriverEntryPointSuccess": 0}
    known |= {"cudaEnableDefault": 0}
    overlap = "CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION"
    known |= {overlap: ATTRIBUTES["dependent_launch"].number}
    known |= {"offsetof(CUlaunchAttribute, value)": DriverAttribute.value.offset}
    known |= {"sizeof(CUlaunchAttribute)": ctypes.sizeof(DriverAttribute)}
    known |= {"sizeof(CUlaunchConfig)": ctypes.sizeof(LaunchConfig)}
    lines = [f'static_assert({name} == {number}, "");' for name, number in known.items()]
    compiles("\n".join(["#include <cstddef>", "#include <cuda.h>", *lines, ""]), tmp_path)
