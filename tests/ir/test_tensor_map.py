"""What follows from a tensor map: its dimensions, the kernel's parameters, and what is required."""

from __future__ import annotations

from dataclasses import replace

import pytest
from emit.mapped import interface_with

from gemmgen.base.source import Source
from gemmgen.calling.requirement_messages import explain
from gemmgen.ir.lowered import LoweredKernel
from gemmgen.ir.param import Param
from gemmgen.ir.requirement import Aligned, MultipleOf, Within
from gemmgen.ir.tensor_map import MapDimension, MapFields, TensorMap
from gemmgen.ir.text import parse_ir, print_ir
from gemmgen.language import parse_schedule
from gemmgen.pipeline import compile_source, make_concrete, rewrite

TILED = "gemm C[m, n] = A[k, m] * B[k, n]\ntile m=64 n=32 k=16\ncache_shared A B\n"
BATCHED = "gemm C[b, m, n] = A[b, m, k] * B[k, n]\ntile m=64 n=32 k=16\ncache_shared A B\n"
A, B = TensorMap("A", (64, 16)), TensorMap("B", (32, 16))


def names(params: tuple[Param, ...]) -> list[str]:
    return [f"{param.kind} {param.name}" if param.kind == "map" else param.name for param in params]


def test_dimensions_are_the_letters_innermost_first() -> None:
    interface = interface_with(TILED, A, B)
    assert interface.map_dimensions(A) == (
        MapDimension("M", 64),
        MapDimension("K", 16, "lda"),
    )
    values = {"M": 5, "N": 7, "K": 9, "lda": 8, "ldb": 12, "ldc": 7}
    assert interface.map_fields(A, values) == MapFields("f32", (5, 9), (32,), (64, 16))
    assert interface.map_fields(B, values) == MapFields("f32", (7, 9), (48,), (32, 16))
    assert interface.map_fields(B, values | {"K": 0}).is_empty


def test_a_batch_is_a_dimension_with_a_stride_of_its_own() -> None:
    one = TensorMap("A", (16, 64, 1))
    interface = interface_with(BATCHED, one)
    dimensions = interface.map_dimensions(one)
    assert [part.size for part in dimensions] == ["K", "M", "size_b"]
    assert [part.stride for part in dimensions] == [None, "lda", "stride_A_b"]
    values = {"M": 5, "K": 9, "size_b": 3, "lda": 12, "stride_A_b": 60}
    assert interface.map_fields(one, values) == MapFields("f32", (9, 5, 3), (48, 240), (16, 64, 1))


def test_a_map_takes_the_place_of_a_pointer_and_of_what_it_alone_needs() -> None:
    interface = interface_with(TILED, A, B)
    plain = ["M", "N", "K", "alpha", "A", "lda", "B", "ldb", "beta", "C", "ldc"]
    assert names(interface.params) == plain
    wanted = ["M", "N", "K", "alpha", "map A", "map B", "beta", "C", "ldc"]
    assert names(interface.kernel_params) == wanted
    assert interface_with(TILED).kernel_params == interface_with(TILED).params


def test_a_leading_dimension_that_is_an_extent_remains() -> None:
    interface = interface_with(TILED + "assume lda == M\n", A)
    assert interface.map_dimensions(A)[1] == MapDimension("K", 16, "M")
    wanted = ["M", "N", "K", "alpha", "map A", "B", "ldb", "beta", "C", "ldc"]
    assert names(interface.kernel_params) == wanted


@pytest.mark.parametrize(("item", "dtype"), [(4, "f32"), (2, "bf16"), (8, "f64")])
def test_addresses_and_strides_are_multiples_of_16_bytes(item: int, dtype: str) -> None:
    sums = " acc=f64" if dtype == "f64" else ""
    text = f"{BATCHED}dtype A={dtype} B={dtype} C={dtype}{sums}\n"
    requirements = interface_with(text, TensorMap("A", (16, 64, 1))).requirements
    assert Aligned("A", 16) in requirements
    assert MultipleOf("lda", 16 // item) in requirements
    assert MultipleOf("stride_A_b", 16 // item) in requirements
    (within,) = (rule for rule in requirements if isinstance(rule, Within))
    assert within.name == "stride_A_b"
    assert within.least == 0
    assert within.most * item == 2**40 - 16
    assert set(interface_with(text).requirements) < set(requirements)


def test_a_wider_access_asks_for_more_than_a_map() -> None:
    text = f"{TILED}vectorize A.global width=4\n"
    assert interface_with(text, A).requirements == interface_with(text).requirements


def test_a_broken_requirement_of_a_map_is_explained() -> None:
    interface = interface_with(BATCHED, TensorMap("A", (16, 64, 1)))
    values = {"A": 8, "K": 4, "lda": 6, "stride_A_b": -4}
    rules = [rule for rule in interface.requirements if rule.name in values]
    reported = [explain(rule, interface, values) for rule in rules if not rule.holds(values)]
    assert sorted(reported) == [
        "A begins 8 bytes past a multiple of 16, and the kernel's tensor map needs 16-byte "
        "alignment: pass an aligned copy, or use the kernel without async_copy via=tma",
        "lda = 6, and the kernel needs lda % 4 == 0: pad the rows of A, or use the kernel without "
        "async_copy via=tma (6 % 4 = 2)",
        "stride_A_b = -4, and the tensor map of A holds strides from 0 to 274877906940: pass a "
        "contiguous copy of A",
    ]


def test_a_kernel_with_maps_has_a_text_form() -> None:
    program = rewrite(parse_schedule(Source(TILED, "test.sched")))[-1].program
    (kernel,) = make_concrete(program).kernels
    mapped = replace(kernel, interface=replace(kernel.interface, maps=(A, B)))
    assert parse_ir(print_ir(mapped), LoweredKernel) == mapped


STAGED = (
    TILED.replace("A B", "A B C").replace("n=32", "n=64")
    + "register_block m=4 n=4\nasync_copy C via=tma\n"
)


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        ("", {MultipleOf("N", 4)}),
        ("dtype C=f16\n", {MultipleOf("N", 8)}),
        ("dtype A=f64 B=f64 C=f64 acc=f64\n", {MultipleOf("N", 2)}),
        ("assume N % 12 == 0\n", {MultipleOf("N", 12)}),
        ("assume N % 2 == 0\n", {MultipleOf("N", 2), MultipleOf("N", 4)}),
        ("assume N == K\n", {MultipleOf("K", 4)}),
        ("assume ldc == N\n", {MultipleOf("N", 4)}),
    ],
)
def test_rows_of_a_stored_tensor_end_with_16_bytes(lines: str, wanted: set[MultipleOf]) -> None:
    """TMA leaves out what is after a row in whole units of them alone."""
    known = compile_source(Source(f"target sm_90\n{STAGED}{lines}")).interface
    rules = [r for r in known.requirements if isinstance(r, MultipleOf) and r.name in ("N", "K")]
    assert set(rules) == wanted and len(rules) == len(wanted)


def test_a_row_that_ends_within_16_bytes_is_explained() -> None:
    known = compile_source(Source(f"target sm_90\n{STAGED}")).interface
    (rule,) = (r for r in known.requirements if r == MultipleOf("N", 4))
    assert explain(rule, known, {"N": 5}) == (
        "N = 5, and the kernel needs N % 4 == 0: TMA stores rows of C in units of 16 "
        "bytes, and would write zeros after them: use the kernel without async_copy C (5 % 4 = 1)"
    )


def test_columns_are_rows_where_C_lies_so() -> None:
    text = STAGED.replace("C[m, n]", "C[n, m]").replace("A B C", "A B C[n, m]")
    rules = compile_source(Source(f"target sm_90\n{text}")).interface.requirements
    assert MultipleOf("M", 4) in rules and MultipleOf("N", 4) not in rules
