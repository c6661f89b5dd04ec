"""Several emitted files in one translation unit and in one program."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from golden.test_golden import GOLDEN
from pipeline.running import emitted

from gemmgen.pipeline import compile_schedule

NVCC = shutil.which("nvcc")
FLAGS = (
    "-gencode=arch=compute_90a,code=sm_90a",
    "-Werror",
    "all-warnings",
    "-Xptxas",
    "-O0",
    "-Xcompiler",
    "-fPIC",
)


def named(golden: str, kernel: str) -> str:
    """The text of a golden's schedule as the kernel of another name."""
    return compile_schedule(replace(emitted(GOLDEN[golden].text).schedule, kernel=kernel)).text


def objects(folder: Path, texts: dict[str, str]) -> list[str]:
    """Each file compiled; raises with what nvcc prints."""
    for name, text in texts.items():
        (folder / f"{name}.cu").write_text(text)
        command = [str(NVCC), *FLAGS, "-c", f"{name}.cu", "-o", f"{name}.o"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
    return [f"{name}.o" for name in texts]


@pytest.mark.proof
@pytest.mark.skipif(NVCC is None, reason="nvcc is not installed")
def test_goldens_are_one_translation_unit_and_link_with_another(
    tmp_path: Path, proof: bool
) -> None:
    both = "vectorized", "async_copy"  # functions and constants of equal names
    texts = {
        "all": "\n".join(
            named(golden, f"first_{golden}") for golden in (GOLDEN if proof else both)
        ),
        "others": "\n".join(named(golden, f"{golden}_again") for golden in both),
    }
    made = objects(tmp_path, texts)
    command = [str(NVCC), "-shared", "-o", "program.so", *made]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.by_default(*[*GOLDEN][::3])
@pytest.mark.parametrize("golden", GOLDEN)
def test_nothing_but_the_launcher_is_outside_the_namespace(golden: str) -> None:
    text = emitted(GOLDEN[golden].text).text
    above, _, rest = text.partition("namespace gemm_detail {\n")
    _, _, below = rest.partition("\n}  // namespace gemm_detail\n")
    within = r"namespace gemm_detail \{\n.*?\n\}  // namespace gemm_detail\n"
    below = re.sub(within, "", below, flags=re.DOTALL)  # what the launcher alone needs
    assert all(not line or line.startswith("//") for line in above.split("\n"))
    declared = re.findall(r"^[^\s#/{}].*\(", below, re.MULTILINE)
    assert declared == ["cudaError_t launch_gemm("]
