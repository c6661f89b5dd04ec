"""The driver's library that launches without a GPU ask, driver.cpp."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gemmgen.gpu import driver_library


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    made = tmp_path_factory.mktemp("driver") / "libdriver.so"
    source = Path(__file__).parent / "driver.cpp"
    command = ["g++", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", str(source), "-o", str(made)]
    subprocess.run(command, check=True, timeout=60)
    return made


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch, library: Path) -> Iterator[Path]:
    """The library in place of the driver's; nothing has called it."""
    monkeypatch.setattr(driver_library, "LIBRARY", str(library))
    driver_library.driver_function.cache_clear()
    counter(library).value = 0
    yield library
    driver_library.driver_function.cache_clear()


def counter(library: Path, name: str = "calls") -> ctypes.c_int:
    """A variable of the library."""
    return ctypes.c_int.in_dll(ctypes.CDLL(str(library)), name)
