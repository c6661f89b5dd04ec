"""Kernels of many matrices: goldens that are run, letters in every position, many and no
matrices."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gemmgen.api.builder import Schedule
from gemmgen.base.errors import CallError
from gemmgen.base.source import Source
from gemmgen.calling.launches import LAYOUTS
from gemmgen.gpu import compiler
from gemmgen.language import fmt_source, parse_schedule
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof import compiled, cpu, meaning, round_trip
from gemmgen.proof.default_shapes import c2_shapes
from gemmgen.proof.outcome import Outcome, Subject
from gemmgen.schedule.formatting import format_schedule
from gemmgen.sim.host_kernel import HostKernel
from gemmgen.sim.run import compile_kernel

from .schedules import GOLDEN, SCHEDULES

FOLDER = Path(__file__).parents[1] / "golden" / "batches"
MANY = 65_537
"""More matrices than a grid has blocks along its other dimensions."""


def emitted(name: str) -> Emitted:
    return compile_source(Source(SCHEDULES[name]))


def proved(outcome: Outcome) -> None:
    assert outcome.status == "passed", outcome.detail or outcome.reason


@pytest.mark.parametrize("name", GOLDEN)
def test_the_golden_is_what_is_emitted(name: str, golden: Callable[[str, str], str]) -> None:
    """It is run by the test below."""
    kernel = emitted(name)
    assert kernel.text == golden(f"batches/{name}.cu", kernel.text)
    assert fmt_source(Source(GOLDEN[name])) == GOLDEN[name] == format_schedule(kernel.schedule)


def test_every_golden_belongs_to_a_schedule() -> None:
    assert {path.stem for path in FOLDER.glob("*.cu")} == set(GOLDEN)


@pytest.mark.by_default("naive, B shared")
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", SCHEDULES)
def test_all_layers_hold(name: str) -> None:
    """One matrix, several and none; consecutive, interleaved, shared."""
    subject = Subject(emitted(name))
    for layer in (round_trip, meaning, cpu):
        proved(layer.check(subject))


def test_shapes_and_layouts_are_all_met() -> None:
    shapes = c2_shapes(emitted("heads times values"))
    assert {shape[3:] for shape in shapes} >= {(1, 1), (3, 2), (2, 2), (0, 2)}
    assert {case.layout for case in cpu.cases(shapes)} == set(LAYOUTS)


@pytest.mark.proof
@pytest.mark.parametrize("name", ("batched", "attention_scores", "four in every order"))
def test_compiles_without_a_warning(name: str) -> None:
    missing = compiler.available()
    if missing is not None:
        pytest.skip(missing)
    proved(compiled.check(Subject(emitted(name))))


@pytest.mark.proof
def test_the_compiler_still_knows_that_inputs_do_not_change() -> None:
    """A moved pointer is restricted as before, so its loads go through the read-only path."""
    missing = compiler.available()
    if missing is not None:
        pytest.skip(missing)
    ptx = compiler.compile_text(emitted("batched").text, "sm_80").ptx
    assert ptx.count("ld.global.nc.v4") >= 4


@pytest.mark.proof
@pytest.mark.parametrize("name", ("naive", "A shared"))
def test_more_matrices_than_a_grid_dimension_has_blocks(name: str) -> None:
    tiny = SCHEDULES[name] + ("" if "tile" in SCHEDULES[name] else "tile m=4 n=8\n")
    kernel = compile_source(Source(tiny))
    rng = np.random.default_rng(7)
    a = rng.integers(-4, 5, (MANY, 1, 1)).astype(np.float32)
    b = rng.integers(-4, 5, (MANY, 1, 1)).astype(np.float32)
    given = {"A": a if name == "naive" else a[0], "B": b}
    c = np.full((MANY, 1, 1), np.nan, np.float32)
    numbers = {"M": 1, "N": 1, "K": 1, "size_b": MANY, "alpha": 1.0, "beta": 0.0}
    steps = {"lda": 1, "ldb": 1, "ldc": 1, "stride_A_b": 1, "stride_B_b": 1, "stride_C_b": 1}
    arguments = {**numbers, **steps, **given, "C": c}
    known = {param.name for param in kernel.interface.params}
    run = compile_kernel(kernel.text, kernel.interface, checked=True)
    run.run({n: v for n, v in arguments.items() if n in known}, unreadable=("C",))
    np.testing.assert_array_equal(c, given["A"] * b)


def test_strides_beyond_an_int() -> None:
    """Two matrices 2^31 elements apart, in memory where only a few pages exist."""
    kernel = emitted("naive")
    apart = 2**31 + 64
    steps = {"stride_A_b": apart, "stride_B_b": 0, "stride_C_b": apart}
    arguments = spanning(apart)
    run = compile_kernel(kernel.text, kernel.interface)
    run.run({"M": 3, "N": 5, "K": 4, "size_b": 2, **steps, **arguments})
    want = np.matmul(arguments["A"], arguments["B"][0])
    np.testing.assert_array_equal(arguments["C"], want)


def spanning(apart: int) -> dict[str, object]:
    import mmap

    from numpy.lib.stride_tricks import as_strided

    found: dict[str, object] = {"lda": 4, "ldb": 5, "ldc": 5, "alpha": 1.0, "beta": 0.0}
    rng = np.random.default_rng(3)
    for name, rows, columns in (("A", 3, 4), ("C", 3, 5)):
        size = (apart + rows * columns) * 4
        memory = np.frombuffer(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | 0x4000), np.float32)
        view = as_strided(memory, (2, rows, columns), (4 * apart, 4 * columns, 4))
        view[...] = rng.integers(-4, 5, view.shape)
        found[name] = view
    b = rng.integers(-4, 5, (1, 4, 5)).astype(np.float32)
    found["B"] = np.broadcast_to(b, (2, 4, 5))
    return found


def arguments(shape: tuple[int, int, int], count: int) -> dict[str, object]:
    m, n, k = shape
    a, b = np.ones((count, m, k), np.float32), np.ones((count, k, n), np.float32)
    c = np.zeros((count, m, n), np.float32)
    steps = {"stride_A_b": m * k, "stride_B_b": k * n, "stride_C_b": m * n}
    sizes = {"M": m, "N": n, "K": k, "size_b": count, "lda": k, "ldb": n, "ldc": n}
    return {**sizes, **steps, "A": a, "B": b, "C": c, "alpha": 1.0, "beta": 0.0}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"stride_A_b": 7}, "A has matrices along b 6 elements apart, but stride_A_b is 7"),
        ({"stride_C_b": 1.5}, "stride_C_b must be an int of 64 bits, not 1.5"),
        ({"stride_C_b": 2**63}, "stride_C_b must be an int of 64 bits"),
        ({"size_b": 2}, r"A must have shape \(2, 3, 2\), not \(3, 3, 2\)"),
        ({"size_b": -1}, "size_b must be an int from 0"),
        ({"lda": 3}, "A has rows 2 elements apart, but lda is 3"),
    ],
)
def test_a_call_is_refused(changed: dict[str, object], said: str) -> None:
    run = compile_kernel(emitted("naive").text, emitted("naive").interface)
    with pytest.raises(CallError, match=said):
        run.run(arguments((3, 4, 2), 3) | changed)


def test_an_output_whose_matrices_overlap_is_refused() -> None:
    from numpy.lib.stride_tricks import as_strided

    run = compile_kernel(emitted("naive").text, emitted("naive").interface)
    right = arguments((3, 4, 2), 3)
    for stride in (0, 4, 8, 11):
        c = as_strided(np.zeros(64, np.float32), (3, 3, 4), (4 * stride, 16, 4))
        with pytest.raises(CallError, match="C is written, and two of its elements are one"):
            run.run(right | {"C": c, "stride_C_b": stride})
    with pytest.raises(CallError, match="C has 2147483648 tiles; a launch has at most"):
        run.run(arguments((2**10 * 8, 0, 0), 2**21) | many(2**10 * 8, 32, 2**21))


def many(m: int, n: int, count: int) -> dict[str, object]:
    """More blocks than a launch has, on one element of memory."""
    from numpy.lib.stride_tricks import as_strided

    one = np.zeros(1, np.float32)
    a, b = (as_strided(one, (count, *s), (0, 0, 4)) for s in ((m, 0), (0, n)))
    c = as_strided(one, (count, m, n), (4 * m * n, 4 * n, 4))
    steps = {"stride_A_b": 0, "stride_B_b": 0, "stride_C_b": m * n}
    return {"N": n, "ldb": n, "ldc": n, **steps, "A": a, "B": b, "C": c}


def test_matrices_backwards_and_shared() -> None:
    """Negative strides of inputs and of the output."""
    kernel, right = emitted("naive"), arguments((3, 4, 2), 3)
    rng = np.random.default_rng(5)
    a = rng.integers(-4, 5, (3, 3, 2)).astype(np.float32)
    b = rng.integers(-4, 5, (1, 2, 4)).astype(np.float32)
    c = np.full((3, 3, 4), np.nan, np.float32)
    changed = {"A": a[::-1], "B": np.broadcast_to(b, (3, 2, 4)), "C": c[::-1]}
    steps = {"stride_A_b": -6, "stride_B_b": 0, "stride_C_b": -12}
    run = compile_kernel(kernel.text, kernel.interface, checked=True)
    run.run(right | changed | steps, unreadable=("C",))
    np.testing.assert_array_equal(c, a @ b)


def test_arrays_are_used_as_stored() -> None:
    """Slices, permutations and one matrix for all, called as a kernel on a GPU is."""
    kernel, rng = HostKernel(
        emitted("naive").text, emitted("naive").interface
    ), np.random.default_rng(7)
    a, b, one = (
        rng.integers(-4, 5, shape).astype(np.float32) for shape in ((6, 10, 7), (7, 3, 9), (7, 9))
    )
    c = np.full((10, 3, 9), np.nan, np.float32)
    assert kernel(A=a[::-2], B=b.transpose(1, 0, 2), C=c.transpose(1, 0, 2)).base is c
    np.testing.assert_array_equal(c.transpose(1, 0, 2), a[::-2] @ b.transpose(1, 0, 2))
    shared = np.broadcast_to(one, (6, 7, 9))
    np.testing.assert_array_equal(kernel(A=a, B=shared), a @ one)
    with pytest.raises(CallError, match="so size_b = 3, but A has shape"):
        kernel(A=a, B=b.transpose(1, 0, 2))


def test_the_builder_says_the_same() -> None:
    built = (
        Schedule("C[b, m, n] = A[b, m, k] * B[k, n]").tile(m=32, n=32, k=8).cache_shared("A[k, m]")
    )
    lines = "tile m=32 n=32 k=8\ncache_shared A[k, m]\n"
    assert built.build() == parse_schedule(
        Source(f"gemm C[b, m, n] = A[b, m, k] * B[k, n]\n{lines}")
    )


def test_parameters_and_launch_are_reported() -> None:
    text = emitted("heads times values").text
    assert "ceil(I / 32) * ceil(D / 32) * size_b * size_h blocks of 8 x 8 threads" in text
    assert "// call (extents, leading dimensions: int; strides: long long;" in text
    assert "stride_V_b % 4 == 0, stride_V_h % 4 == 0" in text
    assert "no two elements of O are one" in text
    assert "if (tiles > 2147483647 / size_b / size_h) return cudaErrorInvalidConfiguration;" in text
