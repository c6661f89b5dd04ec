"""Kernels on the CPU, called from several threads at a time and from forks."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import gemmgen
from gemmgen.api.kernels import compile_any
from gemmgen.sim.host_kernel import HostKernel

CALLS = 60


def _calls(kernel: HostKernel, seed: int) -> int:
    """How many of some calls give a wrong product."""
    rng = np.random.default_rng(seed)
    wrong = 0
    for _ in range(CALLS):
        m, n, k = rng.integers(1, 40, 3)
        a, b = rng.integers(-4, 5, (m, k)), rng.integers(-4, 5, (k, n))
        wrong += not np.array_equal(kernel(A=a.astype("f4"), B=b.astype("f4")), a @ b)
    return wrong


def test_threads_with_kernels_of_one_text() -> None:
    emitted = compile_any("gemm C[m, n] = A[m, k] * B[k, n]\n")
    kernels = [HostKernel(emitted.text, emitted.interface) for _ in range(3)]
    with ThreadPoolExecutor(len(kernels)) as pool:
        assert sum(pool.map(_calls, kernels, range(len(kernels)))) == 0


def _forked(kernel: HostKernel) -> int:
    """The pid of a fork that calls the kernel, and exits with the number of wrong results."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os._exit(_calls(kernel, 7))
    finally:
        os._exit(99)


@pytest.mark.proof
def test_forks_and_their_parent() -> None:
    kernel = gemmgen.compile("gemm C[m, n] = A[m, k] * B[k, n]\n", device="cpu")
    assert _calls(kernel, 1) == 0
    forks = [_forked(kernel) for _ in range(2)]
    assert _calls(kernel, 2) == 0
    assert [os.waitpid(pid, 0)[1] for pid in forks] == [0, 0]
    assert _calls(kernel, 3) == 0


def test_fork_while_another_thread_calls() -> None:
    """A lock that the other thread holds exists in the fork, its owner doesn't."""
    kernel = gemmgen.compile("gemm C[m, n] = A[m, k] * B[k, n]\n", device="cpu")
    found: list[int] = []
    other = threading.Thread(target=lambda: found.append(_calls(kernel, 4)))
    other.start()
    forks = [_forked(kernel) for _ in range(4)]
    assert [os.waitpid(pid, 0)[1] for pid in forks] == [0] * 4
    other.join()
    assert found == [0]


def test_program_outlives_the_thread_that_started_it() -> None:
    kernel = gemmgen.compile("gemm C[m, n] = A[m, k] * B[k, n]\nbind x=m y=n\n", device="cpu")
    starter = threading.Thread(target=_calls, args=(kernel, 5))
    starter.start()
    starter.join()
    assert _calls(kernel, 6) == 0
