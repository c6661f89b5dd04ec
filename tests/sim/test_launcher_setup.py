"""What a launcher asks of a device it asks once, and of each device; no answer of one is used for
another, or after an error."""

from __future__ import annotations

from functools import cache

import pytest
from emitted_kernels import planted

from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof import launcher
from gemmgen.schedule import examples
from gemmgen.schedule.read import read_source
from gemmgen.sim.run import CompiledKernel

NAMES = ("hopper/cluster", "hopper/persistent", "hopper/tma", "persistent", "mma/stages")
"""Clusters counted, multiprocessors counted, each with more shared memory than is always there; the
latter alone; multiprocessors alone; and no tensor maps."""
PLANTS = {
    "asked at each call": ("hopper/cluster", "ready = device;", "ready = -1;", "2 times, although"),
    "the first device alone": ("hopper/cluster", "device != ready", "ready < 0", "returns cuda"),
    "another device's count": (
        "persistent",
        "device != ready",
        "ready < 0",
        "counted: returns cudaSuccess",
    ),
    "no device asked": (
        "hopper/tma",
        "cudaGetDevice(&device)",
        "cudaSuccess",
        "returns cudaErrorInvalidValue",
    ),
    "always device 0": ("persistent", "cudaGetDevice(&device)", "cudaSuccess", "returns error 101"),
    "set up in spite of an error": (
        "hopper/tma",
        "if (error == cudaSuccess) ready = device;",
        "ready = device;",
        "shared memory was refused: returns cudaErrorInvalidValue",
    ),
    "counted in spite of an error": (
        "persistent",
        "if (error == cudaSuccess) ready = device;",
        "ready = device;",
        "where nothing was counted: launches a grid of ",
    ),
    "a count of another device that failed": (
        "hopper/cluster",
        "        ready = -1;\n",
        "",
        "on one device, after that: launches a grid of ",
    ),
    "a device's error dropped": (
        "hopper/cluster",
        "if (error == cudaSuccess && device",
        "if (device",
        "the device is refused: returns cudaSuccess",
    ),
    "an attribute's error dropped": (
        "hopper/cluster",
        "if (error == cudaSuccess)\n            error = cudaOcc",
        "error = cudaOcc",
        "returns cudaErrorInvalidValue, not error 98",
    ),
}


@cache
def emitted(name: str) -> Emitted:
    return compile_source(read_source(str(examples.path_of(name))))


def complaint(name: str, text: str) -> str | None:
    kernel = CompiledKernel(text, emitted(name).interface, warn=False)
    try:
        return launcher.complaint(emitted(name), text, kernel)
    finally:
        kernel.close()


@pytest.mark.by_default("hopper/cluster")
@pytest.mark.parametrize("name", NAMES)
def test_each_device_is_asked_once(name: str) -> None:
    assert complaint(name, emitted(name).text) is None


@pytest.mark.by_default("the first device alone")
@pytest.mark.parametrize("plant", PLANTS)
def test_finds(plant: str) -> None:
    name, old, new, message = PLANTS[plant]
    found = complaint(name, planted(emitted(name).text, old, new))
    assert found is not None and message in found, found


def test_nothing_is_asked_where_nothing_is_needed() -> None:
    assert "cudaGetDevice" not in emitted("vectorized").text
