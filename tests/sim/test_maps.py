"""Kernels on the CPU get the tensor maps that their launchers encode, or the runner's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from emit.mapped import BATCHED, PLAIN, emitted_with

from gemmgen.base.errors import CallError
from gemmgen.pipeline import Emitted
from gemmgen.sim.failures import KernelFault
from gemmgen.sim.run import CompiledKernel

# The model of a map begins with its address, sizes and strides.
READS = """\
    if (threadIdx.x == 0 && threadIdx.y == 0 && blockIdx.x == 0) {
        C[0] = reinterpret_cast<const float *>(A.words[0])[1];
        C[1] = reinterpret_cast<const float *>(B.words[0])[2];
        C[2] = static_cast<float>(A.words[1]);
        C[3] = static_cast<float>(A.words[2]);
        C[4] = static_cast<float>(A.words[6]);
    }
}

// ---- end of kernel ----"""
END = "}\n\n// ---- end of kernel ----"
Floats = npt.NDArray[np.float32]


def reading(schedule: str) -> Emitted:
    """A kernel that writes what it finds in its maps."""
    emitted = emitted_with(schedule)
    assert emitted.text.count(END) == 1
    return replace(emitted, text=emitted.text.replace(END, READS))


def without_launcher(text: str) -> str:
    return text[: text.index("#ifndef __CUDACC_RTC__")]


def run(
    emitted: Emitted, text: str, *, alpha: float = 1.0, k: int = 9, checked: bool = False
) -> Floats:
    """The kernel's results for A of 9 x 12 (of 5 x 9 in a batch)."""
    a, b, c = (np.arange(240, dtype=np.float32) + start for start in (0, 1000, 0))
    numbers = {"M": 5, "N": 7, "K": k, "alpha": alpha, "beta": 0.0, "lda": 12, "ldb": 8, "ldc": 8}
    tensors = {"A": a.reshape(-1, 12)[:k, :5], "B": b.reshape(-1, 8)[:k, :7]}
    kernel = CompiledKernel(text, emitted.interface, checked=checked)
    kernel.run({**numbers, **tensors, "C": c.reshape(-1, 8)[:5, :7]})
    return c[:5]


@pytest.mark.by_default("str-True", "without_launcher-False")
@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("text_of", [str, without_launcher])
def test_a_kernel_gets_its_maps(text_of: type[str], checked: bool) -> None:
    emitted = reading(PLAIN)
    got = run(emitted, text_of(emitted.text), checked=checked)
    assert got.tolist() == [1, 1002, 5, 9, 48]


def test_a_run_that_the_launcher_would_not_make_has_maps_of_all_of_k() -> None:
    emitted = reading(PLAIN)
    assert run(emitted, emitted.text, alpha=0.0).tolist() == [1, 1002, 5, 9, 48]


def test_a_matrix_without_elements_has_a_map() -> None:
    text = reading(PLAIN).text.replace("(A.words[0])[1]", "(A.words[0]) == nullptr")
    text = text.replace("reinterpret_cast<const float *>(B.words[0])[2]", "0")
    for taken in (text, without_launcher(text)):
        assert run(reading(PLAIN), taken, k=0).tolist() == [0, 0, 5, 1, 48]


def test_a_wrong_map_ends_the_run_with_the_rule_it_breaks() -> None:
    emitted = reading(PLAIN)
    text = emitted.text.replace("{4LL * lda}", "{4LL * lda + 4}")
    with pytest.raises(KernelFault, match="error 1: cuTensorMapEncodeTiled: stride 1 is 52 bytes"):
        run(emitted, text)


def test_strides_that_no_map_holds_are_refused() -> None:
    interface = emitted_with(BATCHED).interface
    kernel = CompiledKernel(emitted_with(BATCHED).text, interface)
    memory = np.zeros(4096, np.float32)
    a = memory.reshape(4, 32, 32)[::-1, :5, :8]
    numbers = {"M": 5, "N": 7, "K": 8, "size_b": 4, "alpha": 1.0, "beta": 0.0}
    steps = {"lda": 32, "ldb": 8, "ldc": 8, "stride_A_b": -1024, "stride_C_b": 64}
    c = np.zeros((4, 8, 8), np.float32)[:, :5, :7]
    with pytest.raises(CallError, match="requires 0 <= stride_A_b <= 274877906940"):
        kernel.run({**numbers, **steps, "A": a, "B": np.zeros((8, 8), np.float32)[:, :7], "C": c})
