"""A library is built without Python: by make, and by CMake, whose package another project finds."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from gemmgen.cli import main

from .specs import SMALL

USER = """\
cmake_minimum_required(VERSION 3.24)
project(user LANGUAGES CXX)
find_package(mini REQUIRED)
add_executable(user user.cpp)
target_link_libraries(user PRIVATE mini::mini)
"""
CALL = """\
#include <mini.h>
int main() { return mini_single_workspace(512, 512, 512) == 0 ? 0 : 1; }
"""


def write(folder: Path, *options: str) -> int:
    (folder / "mini.toml").write_text(SMALL, encoding="utf-8")
    command = ["library", str(folder / "mini.toml"), "-o", str(folder / "mini"), *options]
    return CliRunner().invoke(main, command).exit_code


@pytest.mark.proof
def test_check_finds_an_edited_and_a_missing_file(tmp_path: Path) -> None:
    assert write(tmp_path, "--check") == 1
    assert write(tmp_path) == 0 and write(tmp_path, "--check") == 0
    header = tmp_path / "mini" / "mini.h"
    header.write_text(header.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert write(tmp_path, "--check") == 1
    assert write(tmp_path) == 0
    (tmp_path / "mini" / "kernels" / "mini_single_plain.cu").unlink()
    assert write(tmp_path, "--check") == 1


def test_a_mistake_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "mini.toml").write_text(SMALL.replace("512x512x512", "512x"), encoding="utf-8")
    command = ["library", str(tmp_path / "mini.toml"), "-o", str(tmp_path / "mini")]
    found = CliRunner().invoke(main, command)
    assert found.exit_code == 2 and "product.single.shapes[0]" in found.output
    assert not (tmp_path / "mini").exists()
    (tmp_path / "mini").write_text("", encoding="utf-8")
    assert write(tmp_path) == 2


@pytest.mark.proof
@pytest.mark.skipif(not shutil.which("nvcc"), reason="there is no nvcc")
def test_make_builds_it_without_a_warning(tmp_path: Path) -> None:
    assert write(tmp_path) == 0
    done = subprocess.run(
        ["make", "-j2", "all", "selftest"], cwd=tmp_path / "mini", capture_output=True, text=True
    )
    assert done.returncode == 0 and "warning" not in done.stderr, done.stderr
    assert (tmp_path / "mini" / "libmini.a").exists()


@pytest.mark.proof
@pytest.mark.skipif(
    not (shutil.which("nvcc") and shutil.which("cmake")), reason="there is no nvcc, or no CMake"
)
def test_another_project_finds_the_package(tmp_path: Path) -> None:
    assert write(tmp_path) == 0
    user = tmp_path / "user"
    user.mkdir()
    (user / "CMakeLists.txt").write_text(USER, encoding="utf-8")
    (user / "user.cpp").write_text(CALL, encoding="utf-8")

    def run(*command: str) -> None:
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    run("cmake", "-S", "mini", "-B", "build", f"-DCMAKE_INSTALL_PREFIX={tmp_path}/prefix")
    run("cmake", "--build", "build", "-j2")
    run("cmake", "--install", "build")
    run("cmake", "-S", "user", "-B", "built", f"-DCMAKE_PREFIX_PATH={tmp_path}/prefix")
    run("cmake", "--build", "built")
    run(str(tmp_path / "built" / "user"))


@pytest.mark.proof
@pytest.mark.skipif(
    not (shutil.which("nvcc") and shutil.which("cmake")), reason="there is no nvcc, or no CMake"
)
def test_pip_builds_a_wheel_that_needs_the_driver_alone(tmp_path: Path) -> None:
    pytest.importorskip("scikit_build_core", reason="scikit-build-core is not installed")
    assert write(tmp_path) == 0
    options = ["--no-deps", "--no-build-isolation", "--no-index", "-w", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *options, str(tmp_path / "mini")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = tmp_path.glob("mini-0.1.0-py3-none-*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path / "there")
    names = {path.name for path in (tmp_path / "there" / "mini").iterdir()}
    assert names == {"__init__.py", "_arrays.py", "py.typed", "libmini_python.so"}
    shared = str(tmp_path / "there" / "mini" / "libmini_python.so")
    needed = subprocess.run(["ldd", shared], capture_output=True, text=True, check=True).stdout
    assert "libcudart" not in needed and "not found" not in needed
    code = "import mini, sys; print(mini._library.device_of_pointer(None))"
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path / "there", capture_output=True, text=True
    )
    assert found.stdout == "-1\n", found.stderr
