"""Calls with elements of each type: what the CPU run and the launcher take, and refuse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gemmgen.base.errors import CallError
from gemmgen.base.source import Source
from gemmgen.calling.arguments import View, geometry
from gemmgen.calling.overlaps import check_addresses
from gemmgen.ir.requirement import Aligned
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.sim.packing import Argument
from gemmgen.sim.run import compile_kernel

from .schedules import TYPES, text

M, N, K = 5, 16, 8
SIZES = {"M": M, "N": N, "K": K, "lda": K, "ldb": N, "ldc": N}


def emitted(types: str) -> Emitted:
    return compile_source(Source(text("wide", types)))


def call(types: str, **changed: object) -> None:
    kernel = emitted(types)
    numpy = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": np.uint16}
    numpy |= {"i8": np.int8, "i32": np.int32, "e4m3": np.uint8, "e5m2": np.uint8}
    shapes = {"A": (M, K), "B": (K, N), "C": (M, N)}
    given: dict[str, object] = {**SIZES, "alpha": 1.0, "beta": 0.0}
    for param in kernel.interface.params:
        if param.kind == "tensor":
            given[param.name] = np.zeros(shapes[param.name], numpy[param.dtype])
    arguments: dict[str, Argument] = given | changed  # type: ignore[assignment]
    compile_kernel(kernel.text, kernel.interface).run(arguments)


@pytest.mark.by_default("bf16")
@pytest.mark.parametrize("types", TYPES)
def test_the_cpu_run_takes_arrays_of_the_stated_types(types: str) -> None:
    call(types)


@pytest.mark.by_default("f16-*", "bf16-*")
@pytest.mark.parametrize(
    ("types", "tensor", "dtype", "said"),
    [
        ("f64", "A", "float32", "A must be a float64 array, not float32"),
        ("f16", "B", "float32", "B must be a float16 array, not float32"),
        ("f16", "B", "uint16", "B must be a float16 array, not uint16"),
        ("f16", "B", ">f2", "B must be a float16 array, not >f2"),
        ("bf16", "C", "float16", "C must be an array of bfloat16 (or of its bits, uint16), not"),
        (
            "e4m3",
            "A",
            "int8",
            "A must be an array of float8_e4m3fn (or of its bits, uint8), not int8",
        ),
        ("i8", "C", "float32", "C must be a int32 array, not float32"),
        ("bf16 to f32", "C", "uint16", "C must be a float32 array, not uint16"),
    ],
)
def test_the_cpu_run_refuses_other_types(types: str, tensor: str, dtype: str, said: str) -> None:
    shape = {"A": (M, K), "B": (K, N), "C": (M, N)}[tensor]
    with pytest.raises(CallError) as caught:
        call(types, **{tensor: np.zeros(shape, dtype)})
    assert said in str(caught.value)


def test_scalars_of_integers_are_integers() -> None:
    call("i8", alpha=-3)
    with pytest.raises(
        CallError, match=r"alpha = 0[.]5 is not an integer, and the kernel takes an integer"
    ):
        call("i8", alpha=0.5)
    with pytest.raises(CallError, match=r"beta = 4294967296 is more than an int32 holds"):
        call("i8", beta=2**32)


def test_scalars_have_the_range_of_the_sums() -> None:
    with pytest.raises(CallError, match=r"alpha = 1e[+]39 is more than a float32 holds"):
        call("f16", alpha=1e39)
    call("f64", alpha=1e39)


def test_a_bfloat16_of_another_library_is_its_bits() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    call("bf16", A=np.zeros((M, K), ml_dtypes.bfloat16))
    call("e4m3", A=np.zeros((M, K), ml_dtypes.float8_e4m3fn))


NAMES = {"f32": "float32", "f64": "float64", "f16": "float16", "bf16": "bfloat16"}
NAMES |= {"i8": "int8", "i32": "int32", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}


def views(types: str) -> dict[str, View]:
    """A right call in device memory: each tensor 4 GiB apart from the next."""
    shapes = {"A": (M, K), "B": (K, N), "C": (M, N)}
    return {
        p.name: View((at + 1) << 32, shapes[p.name], (shapes[p.name][1], 1), NAMES[p.dtype])
        for at, p in enumerate(emitted(types).interface.params)
        if p.kind == "tensor"
    }


def launch(types: str, found: dict[str, View]) -> int:
    interface = emitted(types).interface
    checked = geometry(interface, found)
    check_addresses(checked, interface, {name: view.pointer for name, view in found.items()})
    return checked.grid


@pytest.mark.parametrize("types", TYPES)
def test_the_launcher_takes_views_of_the_stated_types(types: str) -> None:
    assert launch(types, views(types)) == 1


@pytest.mark.parametrize("types", ("f64", "f16", "bf16"))
def test_the_launcher_refuses_other_types(types: str) -> None:
    found = views(types)
    found["A"] = replace(found["A"], dtype="float32")
    wanted = found["B"].dtype
    with pytest.raises(CallError, match=f"A is float32; the kernel takes {wanted}"):
        launch(types, found)


def test_bits_of_bf16_may_come_as_integers() -> None:
    found = views("bf16")
    found["A"] = replace(found["A"], dtype="uint16")
    assert launch("bf16", found) == 1


@pytest.mark.parametrize(("types", "size"), [("f64", 8), ("f16", 2), ("f32 to bf16", 2)])
def test_the_launcher_refuses_addresses_within_an_element(types: str, size: int) -> None:
    plain = compile_source(Source(text("naive", types))).interface
    found = views(types)
    found["C"] = replace(found["C"], pointer=found["C"].pointer + 1)
    checked = geometry(plain, found)
    with pytest.raises(CallError, match=f"C begins 1 bytes past a multiple of {size}"):
        check_addresses(checked, plain, {n: view.pointer for n, view in found.items()})


@pytest.mark.parametrize(("types", "element"), [("f64", 8), ("f16", 2)])
def test_overlaps_are_reported_in_bytes(types: str, element: int) -> None:
    """C right after A is accepted, and 16 bytes earlier it is not."""
    found = views(types)
    after = found["A"].pointer + M * K * element
    for back, fine in ((0, True), (16, False)):
        found["C"] = replace(found["C"], pointer=-(-after // 16) * 16 - back)
        if fine:
            assert launch(types, found) == 1
        else:
            with pytest.raises(CallError, match="C overlaps A in memory"):
                launch(types, found)


@pytest.mark.parametrize(("types", "width", "size"), [("f64", 2, 16), ("f16", 8, 16)])
def test_wide_accesses_ask_for_bytes_and_elements(types: str, width: int, size: int) -> None:
    requirements = emitted(types).interface.requirements
    assert {r.bytes for r in requirements if isinstance(r, Aligned)} == {size}
    found = views(types)
    found["A"] = replace(found["A"], strides=(K + 1, 1))
    with pytest.raises(CallError, match=f"lda = 9, and the kernel needs lda % {width} == 0"):
        launch(types, found)
