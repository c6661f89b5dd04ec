"""What is kept between calls: chosen once, bounded, right in threads and after a fork."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gemmgen
from gemmgen.base.memo import Memo
from gemmgen.functions import call_epilogue, direct, problems

from .samples import drawn

ROOT = Path(__file__).parents[2]


def counted(monkeypatch: pytest.MonkeyPatch, module: object, name: str) -> list[object]:
    """The calls of a function."""
    calls: list[object] = []
    original: Callable[..., object] = getattr(module, name)

    def recorded(*given: object) -> object:
        calls.append(given)
        return original(*given)

    monkeypatch.setattr(module, name, recorded)
    return calls


@pytest.mark.proof
def test_a_kernel_is_chosen_once_for_calls_that_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "_selected", Memo(64))
    chosen = counted(monkeypatch, direct, "choose")
    a, b = drawn((3, 4)), drawn((4, 5))
    for seed in range(5):
        assert (gemmgen.matmul(drawn((3, 4), seed=seed), b) == drawn((3, 4), seed=seed) @ b).all()
    assert len(chosen) == 1
    # All that differs in more than addresses is another kind of call.
    square = drawn((4, 4))
    for call in (
        lambda: gemmgen.matmul(drawn((4, 3)).T, b),
        lambda: gemmgen.matmul(a, b, bias=drawn((5,))),
        lambda: gemmgen.matmul(a, b, epilogue="relu(acc)"),
        lambda: gemmgen.matmul(a, b, fast=True),
        lambda: gemmgen.matmul(a, b, out=np.empty((3, 5), np.float32)),
        lambda: gemmgen.matmul(a.astype(np.float16), b.astype(np.float16)),
        lambda: gemmgen.matmul(square, square),
        lambda: gemmgen.linear(square, square),
    ):
        before = len(chosen)
        assert (call() == call()).all()
        assert len(chosen) == before + 1


def test_what_is_kept_is_bounded() -> None:
    memo: Memo[int, int] = Memo(10)
    for at in range(100):
        memo.put(at, at)
    assert len(memo) == 10 and memo.get(99) == 99 and memo.get(0) is None
    memo.put(99, 1)
    assert len(memo) == 10 and memo.get(99) == 1
    for kept in (call_epilogue.reads, problems.problem_of):
        assert kept.cache_info().maxsize == 512


def test_threads_may_fill_a_memo_at_once() -> None:
    memo: Memo[int, int] = Memo(5)
    failed: list[BaseException] = []

    def fill(start: int) -> None:
        try:
            for at in range(3000):
                memo.put(start + at, at)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=fill, args=(n * 10_000,)) for n in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failed and len(memo) <= 5 + len(threads)


@pytest.mark.proof
def test_many_shapes_share_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """From this many kernels of a problem on, the nearest of them runs."""
    monkeypatch.setattr(direct, "_selected", Memo(64))
    monkeypatch.setattr(direct, "_kernels", Memo(64))
    monkeypatch.setattr(direct, "_KERNELS", 0)
    a, b = drawn((3, 4)), drawn((4, 5))
    assert (gemmgen.matmul(a, b) == a @ b).all()


def test_threads_that_ask_for_one_kernel_choose_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    whole: Any = direct.planned

    def planned(*given: Any) -> Any:
        asked.append(given)
        time.sleep(0.1)
        return whole(*given)

    monkeypatch.setattr(direct, "_selected", Memo(64))
    monkeypatch.setattr(direct, "planned", planned)
    a, b, right = drawn((3, 4)), drawn((4, 5)), list[bool]()
    threads = [
        threading.Thread(target=lambda: right.append(bool((gemmgen.matmul(a, b) == a @ b).all())))
        for _ in range(6)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert right == 6 * [True] and len(asked) == 1


def test_threads_multiply_at_once() -> None:
    found: dict[int, bool] = {}

    def work(seed: int) -> None:
        right = True
        for m in range(1, 6):
            a, b = drawn((m, 4), seed=seed), drawn((4, 5), seed=seed)
            right &= bool((gemmgen.matmul(a, b, epilogue="acc + n") == a @ b + np.arange(5)).all())
        found[seed] = right

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == dict.fromkeys(range(6), True)


@pytest.mark.proof
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_multiplies() -> None:
    code = (
        "import os, numpy as np, gemmgen\n"
        "a, b = np.ones((3, 4), np.float32), np.ones((4, 5), np.float32)\n"
        "assert (gemmgen.matmul(a, b) == 4).all()\n"
        "child = os.fork()\n"
        "assert (gemmgen.matmul(a, b) == 4).all()\n"
        "assert (gemmgen.matmul(a, b, epilogue='acc * 2') == 8).all()\n"
        "if not child:\n"
        "    os._exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.proof
def test_the_package_and_its_functions_import_no_library_of_arrays() -> None:
    code = (
        "import sys, gemmgen\n"
        "assert {'matmul', 'linear', 'explain_matmul'} <= set(dir(gemmgen))\n"
        "assert 'numpy' not in sys.modules\n"
        "gemmgen.matmul, gemmgen.linear, gemmgen.explain_matmul\n"
        "assert not {'torch', 'cupy', 'ml_dtypes'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
