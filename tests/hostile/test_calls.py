"""Calls of emitted kernels: right, or one clear sentence before anything is launched.

The CPU run takes NumPy arrays with extents and leading dimensions, the GPU's launcher takes views
of memory.  ``tests/sim`` and ``tests/nvrtc`` have the same questions for handwritten kernels.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from gemmgen.base.errors import CallError
from gemmgen.base.source import Source
from gemmgen.calling.arguments import View, contiguous_strides, geometry
from gemmgen.calling.overlaps import check_addresses
from gemmgen.ir.interface import INT_MAX
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.sim.run import Argument, compile_kernel

SCHEDULES = {
    "rows": "tile m=1 n=32\n",
    "wide": "tile m=16 n=32 k=4\ncache_shared A[k, m] B\nregister_block m=4 n=4\n"
    "vectorize A B C width=4\nfuse_epilogue alpha * acc + beta * C[m, n] + bias[n] + R[m, n]\n",
    "packed": "tile m=8 n=32\nassume lda == K\nassume N % 4 == 0\n",
}
M, N, K = 5, 12, 8


@functools.cache
def emitted(name: str) -> Emitted:
    return compile_source(Source(SCHEDULES[name]))


def arrays(name: str, m: int = M, n: int = N, k: int = K) -> dict[str, Argument]:
    """A right call of small whole numbers; scalars are alpha = 1, beta = 2."""
    shapes = {"A": (m, k), "B": (k, n), "C": (m, n), "R": (m, n), "bias": (n,)}
    rng = np.random.default_rng(m + n + k)
    found: dict[str, Argument] = {"M": m, "N": n, "K": k, "alpha": 1.0, "beta": 2.0}
    found |= {t: aligned(rng.integers(1, 9, s).astype(np.float32)) for t, s in shapes.items()}
    found |= {"lda": k, "ldb": n, "ldc": n, "ldr": n}
    return {p.name: found[p.name] for p in emitted(name).interface.params}


def aligned(values: np.ndarray, offset: int = 0) -> np.ndarray:
    """A copy that begins ``offset`` bytes past a multiple of 256."""
    raw = np.zeros(values.nbytes + 512, np.uint8)
    start = -raw.ctypes.data % 256 + offset
    placed = raw[start : start + values.nbytes].view(np.float32).reshape(values.shape)
    placed[...] = values
    return placed


def run(name: str, arguments: dict[str, Argument]) -> None:
    kernel = emitted(name)
    compile_kernel(kernel.text, kernel.interface).run(arguments)


def wanted(arguments: dict[str, Argument]) -> np.ndarray:
    product = np.asarray(arguments["A"]) @ np.asarray(arguments["B"])
    value = product + 2 * np.asarray(arguments["C"])
    for name in ("bias", "R"):
        value = value + np.asarray(arguments.get(name, 0))
    return value.astype(np.float32)


def refusal(name: str, **changed: object) -> str:
    """What is said of a right call with ``changed`` arguments; the output is untouched."""
    arguments = arrays(name) | changed
    before = np.array(arguments["C"])
    with pytest.raises(CallError) as caught:
        run(name, arguments)
    assert np.array_equal(np.asarray(arguments["C"]), before)
    said = str(caught.value)
    assert "\n" not in said and len(said) < 300
    return said


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("k", (K, 0))
def test_a_right_call_is_right(name: str, k: int) -> None:
    arguments = arrays(name, k=k)
    want = wanted(arguments)
    run(name, arguments)
    assert np.array_equal(np.asarray(arguments["C"]), want)


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize(("m", "n"), ((0, N), (M, 0), (0, 0)))
def test_an_empty_output_launches_nothing(name: str, m: int, n: int) -> None:
    arguments = arrays(name, m=m, n=n)
    run(name, arguments)
    assert emitted(name).interface.grid({"M": m, "N": n, "K": K}) == 0


def test_more_than_65535_block_rows_are_right() -> None:
    arguments = arrays("rows", m=70_001, n=1, k=3)
    assert emitted("rows").interface.grid({"M": 70_001, "N": 1, "K": 3}) > 65_535
    want = wanted(arguments)
    run("rows", arguments)
    assert np.array_equal(np.asarray(arguments["C"]), want)


ONES = np.ones((M, K), np.float32)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"A": ONES.astype(np.float64)}, "A must be a float32 array, not float64"),
        ({"A": ONES.astype(np.float16)}, "A must be a float32 array, not float16"),
        ({"A": ONES.astype(np.int32)}, "A must be a float32 array, not int32"),
        ({"A": ONES.astype(np.complex64)}, "A must be a float32 array, not complex64"),
        ({"A": ONES.astype(">f4")}, "A must be a float32 array, not >f4"),
        ({"A": ONES.astype(object)}, "A must be a float32 array, not object"),
        ({"A": ONES.tolist()}, "A must be a float32 array, not [["),
        ({"A": None}, "A must be a float32 array, not None"),
        ({"A": ONES[None]}, "A must have shape (5, 8), not (1, 5, 8)"),
        ({"A": ONES.ravel()}, "A must have shape (5, 8), not (40,)"),
        ({"A": ONES[:4]}, "A must have shape (5, 8), not (4, 8)"),
        ({"A": ONES[:, ::-1]}, "A must be contiguous along k"),
        ({"A": np.ones((K, M), np.float32).T}, "A must be contiguous along k"),
        ({"A": ONES[::-1]}, "A has rows -8 elements apart, but lda is 8"),
        ({"A": np.broadcast_to(ONES[:1], (M, K))}, "A has rows 0 elements apart"),
        ({"A": np.broadcast_to(ONES[:, :1], (M, K))}, "A must be contiguous along k"),
        ({"A": np.ndarray((M, K), np.float32, ONES, 0, (28, 4)), "lda": 7}, "requires lda >= K"),
        ({"A": as_strided(ONES, (M, K), (18, 4))}, "A has rows 4 elements apart, but lda is 8"),
        ({"lda": 2**31}, "lda must be an int from 0 to 2147483647, not 2147483648"),
        ({"lda": -8}, "lda must be an int from 0 to 2147483647, not -8"),
        ({"lda": 8.0}, "lda must be an int from 0 to 2147483647, not 8.0"),
        ({"M": 2**63}, "M must be an int from 0"),
        ({"extra": 1}, "has no parameter extra"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_cpu_run_refuses(changed: dict[str, object], said: str) -> None:
    assert said in refusal("rows", **changed)


def test_the_cpu_run_refuses_what_wide_accesses_cannot_use() -> None:
    a = np.ones((M, K), np.float32)
    assert "requires A is 16-byte aligned" in refusal("wide", A=aligned(a, 4))
    padded = aligned(np.ones((M, K + 1), np.float32))[:, :K]
    assert "requires lda % 4 == 0" in refusal("wide", A=padded, lda=K + 1)


def test_the_cpu_run_refuses_what_an_assumption_excludes() -> None:
    arguments = arrays("packed", n=10)
    with pytest.raises(CallError, match="requires N % 4 == 0"):
        run("packed", arguments)
    padded = np.ones((M, K + 4), np.float32)[:, :K]
    assert "A has rows 12 elements apart, but K is 8" in refusal("packed", A=padded)


def test_the_cpu_run_refuses_more_blocks_than_a_launch_has() -> None:
    large = 2**30
    c = as_strided(np.zeros(1, np.float32), (large, large), (large * 4, 4))
    arguments = arrays("rows") | {"M": large, "N": large, "K": 0, "C": c, "ldc": large}
    arguments |= {"A": np.zeros((large, 0), np.float32), "lda": 8}
    arguments |= {"B": np.zeros((0, large), np.float32), "ldb": large}
    with pytest.raises(CallError, match="a launch has at most 2147483647 blocks"):
        run("rows", arguments)


@pytest.mark.parametrize("start", (0, 4, 30))
def test_the_cpu_run_refuses_an_output_that_overlaps_an_input(start: int) -> None:
    memory = np.ones(M * N + M * K, np.float32)
    a = memory[: M * K].reshape(M, K)
    c = memory[start : start + M * N].reshape(M, N)
    with pytest.raises(CallError, match="overlaps"):
        run("rows", arrays("rows") | {"A": a, "C": c})


def test_the_cpu_run_refuses_a_scalar_past_f32() -> None:
    assert "alpha" in refusal("rows", alpha=1e39)


def views(name: str, m: int = M, n: int = N, k: int = K) -> dict[str, View]:
    """A right call in device memory: each tensor 4 GiB apart from the next."""
    shapes = {"A": (m, k), "B": (k, n), "C": (m, n), "R": (m, n), "bias": (n,)}
    names = [p.name for p in emitted(name).interface.params if p.kind == "tensor"]
    return {
        name: View((at + 1) << 48, shapes[name], contiguous_strides(shapes[name]))
        for at, name in enumerate(names)
    }


def checked(name: str, found: dict[str, View]) -> int:
    """The number of blocks of a call, all of whose checks are made."""
    interface = emitted(name).interface
    geometric = geometry(interface, found)
    check_addresses(geometric, interface, {n: view.pointer for n, view in found.items()})
    return geometric.grid


def test_a_right_call_has_a_grid() -> None:
    assert checked("rows", views("rows")) == M
    assert checked("wide", views("wide")) == 1
    assert checked("packed", views("packed")) == 1
    for m, n in ((0, N), (M, 0), (0, 0)):
        assert checked("wide", views("wide", m=m, n=n)) == 0
    assert checked("wide", views("wide", k=0)) == 1
    assert checked("rows", views("rows", m=70_000)) == 70_000


@pytest.mark.parametrize("side", (46_341, 65_536, 1 << 20))
def test_more_than_two_to_the_31_elements_have_a_grid(side: int) -> None:
    assert side * side >= 2**31
    assert checked("wide", views("wide", m=side, n=32, k=side // 4 * 4)) == math.ceil(side / 16)


def _changed(view: View, **changed: object) -> View:
    values = {"pointer": view.pointer, "shape": view.shape, "strides": view.strides}
    return View(**(values | {"dtype": view.dtype} | changed))  # pyright: ignore


@pytest.mark.parametrize(
    ("name", "tensor", "changed", "said"),
    [
        ("wide", "bias", {"shape": (N, 1), "strides": (1, 1)}, "bias has shape (12, 1)"),
        ("wide", "bias", {"shape": (N + 1,)}, "bias has shape (13,), so N = 13"),
        ("wide", "bias", {"strides": (0,)}, "bias is not contiguous along n"),
        ("wide", "bias", {"strides": (2,)}, "bias is not contiguous along n"),
        ("wide", "bias", {"dtype": "bfloat16"}, "bias is bfloat16"),
        ("wide", "R", {"strides": (0, 1)}, "R has rows of 12 elements that begin 0 elements"),
        ("wide", "R", {"shape": (N, M)}, "R has shape (12, 5), so M = 12"),
        ("wide", "C", {"strides": (0, 1)}, "C has rows of 12 elements that begin 0 elements"),
        ("wide", "C", {"strides": (13, 1)}, "ldc = 13, and the kernel needs ldc % 4 == 0"),
        ("rows", "A", {"shape": (), "strides": ()}, "A has shape ()"),
        ("rows", "A", {"strides": (-8, 1)}, "begin -8 elements apart"),
        ("packed", "A", {"strides": (9, 1)}, "A has a leading dimension of 9"),
    ],
)
def test_the_launcher_refuses(
    name: str, tensor: str, changed: dict[str, object], said: str
) -> None:
    found = views(name)
    found[tensor] = _changed(found[tensor], **changed)
    with pytest.raises(CallError) as caught:
        checked(name, found)
    assert said in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("other", ("A", "B", "R", "bias"))
@pytest.mark.parametrize("shift", (-1, 0, 1))
def test_the_launcher_refuses_an_output_over_an_input(other: str, shift: int) -> None:
    found = views("wide")
    # 16 bytes into the one, or 16 bytes of the one over the end of the other.
    start = found[other].pointer + 16 * shift
    if shift < 0:
        start = found[other].pointer - 4 * M * N + 16
    found["C"] = _changed(found["C"], pointer=start)
    with pytest.raises(CallError, match=f"C overlaps {other} in memory"):
        checked("wide", found)


def test_neighbours_in_memory_do_not_overlap() -> None:
    found = views("wide")
    for other in ("A", "B", "R", "bias"):
        start = found[other].pointer + 4 * math.prod(found[other].shape)
        found["C"] = _changed(found["C"], pointer=-(-start // 16) * 16)
        assert checked("wide", found) == 1


@pytest.mark.parametrize("tensor", ("A", "B", "C"))
@pytest.mark.parametrize("offset", (4, 8, 12))
def test_the_launcher_refuses_an_unaligned_view(tensor: str, offset: int) -> None:
    found = views("wide")
    found[tensor] = _changed(found[tensor], pointer=found[tensor].pointer + offset)
    with pytest.raises(CallError, match=f"{tensor} begins {offset} bytes past a multiple of 16"):
        checked("wide", found)


def test_the_launcher_refuses_an_address_within_a_float() -> None:
    found = views("rows")
    found["A"] = _changed(found["A"], pointer=found["A"].pointer + 1)
    with pytest.raises(CallError, match="A begins 1 bytes past a multiple of 4"):
        checked("rows", found)


def test_the_launcher_refuses_what_an_int_does_not_hold() -> None:
    for found in (views("rows", m=INT_MAX), views("rows", n=2**31), views("rows", k=2**31 - 1)):
        with pytest.raises(CallError, match="is more than"):
            checked("rows", found)
    with pytest.raises(CallError, match="at most 2147483647 blocks"):
        checked("rows", views("rows", m=2**30, n=2**30))
