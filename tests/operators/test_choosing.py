"""Which kernel an operator runs, and what its gradients are made of: neither needs PyTorch."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

import gemmgen.torch
from gemmgen.base.errors import CallError, CannotCheck
from gemmgen.base.source import Source
from gemmgen.calling.arguments import View, contiguous_strides
from gemmgen.gpu.gpus import GPUS
from gemmgen.language import parse_schedule
from gemmgen.numerics.formats import NAMES
from gemmgen.schedule.formatting import format_directive, format_schedule
from gemmgen.schedule.model import Schedule
from gemmgen.torch import derivative
from gemmgen.torch.choosing import ChosenKernel, OperatorCall, choose
from gemmgen.torch.derivative import NoDerivative
from gemmgen.torch.gradient import Pointwise, Recomputed, Scaled, Zero, partials, product
from gemmgen.torch.schema import Signature
from gemmgen.torch.siblings import narrowed
from gemmgen.torch.storage import storage_order
from gemmgen.torch.suggested import nearest

OWN = (
    "tile m=64 n=64 k=8\ncache_shared A[k, m] B[k, n]\nregister_block m=4 n=4\n"
    "vectorize A B C width=4\npad A by=4\ndouble_buffer A B\nfuse_epilogue acc + bias[n]\n"
)


def parsed(text: str) -> Schedule:
    return parse_schedule(Source(text))


def chosen(
    schedule: Schedule, own: bool, strides: dict[str, tuple[int, ...]] | None = None, **extents: int
) -> ChosenKernel:
    """Dense tensors, but for those whose ``strides`` are given."""
    signature = Signature.of(schedule)
    views: dict[str, View] = {}
    for x in signature.tensors:
        shape = tuple(extents[letter] for letter in x.letters)
        given = (strides or {}).get(x.name, contiguous_strides(shape))
        views[x.name] = View(0, shape, given, NAMES[x.dtype])
    letters = {x.name: x.letters for x in signature.tensors}
    return choose(schedule, own, OperatorCall(views, letters, extents, GPUS["H200"]))


def line(choice: ChosenKernel, word: str) -> str:
    text = format_schedule(choice.emitted.schedule)
    return next((x for x in text.splitlines() if x.startswith(word)), "")


def test_the_own_kernel_runs_unless_a_requirement_fails() -> None:
    schedule = parsed(OWN)
    assert chosen(schedule, True, m=100, n=64, k=64).emitted.schedule == schedule
    odd = chosen(schedule, True, m=100, n=63, k=64)
    assert line(odd, "vectorize") == "vectorize       A B.shared width=4"
    rows = chosen(schedule, True, {"A": (65, 1)}, m=100, n=64, k=64)
    assert line(rows, "vectorize") == "vectorize       A.shared B C width=4"
    assert not odd.orders and not rows.orders


def test_an_assumption_that_fails_is_dropped() -> None:
    schedule = parsed("assume N % 64 == 0\n" + OWN)
    found = chosen(schedule, True, m=100, n=68, k=64).emitted.schedule
    assert schedule.assumes and not found.assumes


def test_a_transposed_input_has_a_gemm_line_of_its_order() -> None:
    found = chosen(parsed(OWN), True, {"B": (1, 40)}, m=100, n=64, k=40)
    assert line(found, "gemm").endswith("C[m, n] = A[m, k] * B[n, k]")
    assert found.orders == (("B", (1, 0)),)


def test_a_tensor_that_no_order_suits_is_copied() -> None:
    found = chosen(parsed(OWN), True, {"A": (80, 2), "bias": (0,)}, m=100, n=64, k=40)
    assert found.orders == (("A", None), ("bias", None))
    assert found.emitted.schedule == parsed(OWN)


@pytest.mark.proof
def test_large_products_without_a_schedule_have_suggested_ones() -> None:
    schedule = parsed("gemm Y[r, o] = X[r, i] * W[o, i]\nfuse_epilogue relu(acc + bias[o])\n")
    small = chosen(schedule, False, r=40, o=40, i=40)
    large = chosen(schedule, False, r=1024, o=768, i=768)
    odd = chosen(schedule, False, {"X": (771, 1)}, r=1024, o=767, i=768)
    assert line(small, "double_buffer") == "double_buffer   X W"
    assert "warp_tile" in format_schedule(large.emitted.schedule)
    assert "Y" in line(large, "vectorize") and "Y" not in line(odd, "vectorize")


def test_a_suggested_kernel_runs_at_extents_that_its_tile_does_not_divide() -> None:
    schedule = parsed("gemm C[m, n] = A[m, k] * B[k, n]\n")
    found = chosen(schedule, False, m=1024, n=1024, k=1024).emitted
    assert found.schedule.directives and not found.schedule.assumes


@pytest.mark.proof
def test_many_extents_make_no_more_kernels() -> None:
    schedule = parsed("gemm Y[r, o] = X[r, i] * W[o, i]\n")
    sizes = [{"r": r, "o": 768, "i": 768} for r in (256, 1024)]
    known = tuple((chosen(schedule, False, **size).emitted, size) for size in sizes)
    gemm = schedule.gemm
    first, second = (emitted for emitted, _ in known)
    assert nearest(known, gemm, {"r": 800, "o": 768, "i": 768}) == (second, first)
    assert nearest(known, gemm, {"r": 40, "o": 768, "i": 768}) == (first, second)
    assert nearest(known, parsed(OWN).gemm, {"m": 4, "n": 4, "k": 4}) == ()


def test_shapes_that_no_kernel_takes_are_refused() -> None:
    with pytest.raises(CallError, match="more than an int holds"):
        chosen(parsed(OWN), True, {"A": (0, 1)}, m=2**31, n=1, k=1)


@pytest.mark.parametrize(
    ("shape", "strides", "order"),
    [
        ((4, 5), (5, 1), (0, 1)),
        ((4, 5), (1, 4), (1, 0)),
        ((4, 5), (9, 1), (0, 1)),
        ((4, 5), (0, 1), None),
        ((4, 5), (2, 1), None),
        ((4, 5), (10, 2), None),
        ((1, 5), (0, 1), (0, 1)),
        ((4, 1), (1, 7), (0, 1)),
        ((0, 5), (3, 3), (0, 1)),
    ],
)
def test_storage_orders(
    shape: tuple[int, ...], strides: tuple[int, ...], order: tuple[int, ...] | None
) -> None:
    assert storage_order(("m", "k"), frozenset("mnk"), shape, strides) == order
    batched = None if order is None else (0, *(i + 1 for i in order))
    got = storage_order(("b", "m", "k"), frozenset("mnk"), (3, *shape), (0, *strides))
    assert got == batched


def test_gradients_of_inputs_are_gemm_lines_on_the_storage_as_it_is() -> None:
    schedule = parsed("gemm S[b, h, i, j] = Q[b, h, i, d] * K[b, h, j, d]\n")
    problem = Signature.of(schedule).problem
    for role, wanted in {
        "a": "grad_Q[b, h, i, d] = grad_S[b, h, i, j] * K[b, h, j, d]",
        "b": "grad_K[b, h, j, d] = Q[b, h, i, d] * grad_S[b, h, i, j]",
    }.items():
        found = product(schedule, problem, role)
        assert format_schedule(found.schedule).splitlines()[0].endswith(wanted)
        assert found.left.as_it_is and found.right.as_it_is


def test_a_shared_inputs_gradient_sums_over_batches_and_rows_at_once() -> None:
    schedule = parsed("gemm C[s, m, n] = A[s, m, k] * B[k, n]\n")
    found = product(schedule, Signature.of(schedule).problem, "b")
    assert "grad_B[k, n] = A[m, k] * grad_C[m, n]" in format_schedule(found.schedule)
    assert found.left.order == (0, 1, 2) and found.left.groups == ((0, 2), (2, 3))


def test_derivatives_that_are_numbers_or_without_acc_compute_nothing_again() -> None:
    kinds = {
        "alpha * acc + beta * C[m, n] + 2 * bias[n]": (Scaled, Scaled),
        "where(m <= n, acc, 0) + bias[n]": (Pointwise, Scaled),
        "acc * bias[n]": (Pointwise, Recomputed),
        "relu(acc + bias[n])": (Recomputed, Recomputed),
        "round(acc) + 0 * bias[n]": (Zero, Zero),
    }
    for text, wanted in kinds.items():
        schedule = parsed(f"fuse_epilogue {text}\n")
        found = partials(schedule, Signature.of(schedule).problem, True)
        assert (type(found["acc"]), type(found["bias"])) == wanted, text


def test_a_kernel_that_computes_acc_again_keeps_the_users_directives() -> None:
    schedule = parsed(OWN.replace("acc + bias[n]", "silu(beta * C[m, n] + acc) + bias[n]"))
    found = partials(schedule, Signature.of(schedule).problem, True)["acc"]
    assert isinstance(found, Recomputed)
    assert found.schedule.directives == schedule.directives
    names = [x.name for x in Signature.of(found.schedule).tensors]
    assert names == ["A", "B", "grad_C", "old_C"]
    alone = partials(schedule, Signature.of(schedule).problem, False)["acc"]
    assert isinstance(alone, Recomputed) and "old_C" not in format_schedule(alone.schedule)


def test_functions_without_a_rule_have_no_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(derivative.RULES, "tanh")
    schedule = parsed("fuse_epilogue tanh(acc)\n")
    with pytest.raises(NoDerivative):
        partials(schedule, Signature.of(schedule).problem, True)


def test_without_pytorch_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(CannotCheck, match=r"pip install '\.\[torch\]' in a clone of gemmgen"):
        gemmgen.torch.op(OWN, name="without::torch")


def test_pytorch_is_imported_with_the_first_operator_and_not_before() -> None:
    code = "import gemmgen, sys; gemmgen.torch.op; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_tensor_that_no_map_holds_is_copied_without_tma() -> None:
    schedule = parsed(
        "tile m=64 n=64 k=8\ncache_shared A B\ndouble_buffer A B\nasync_copy A B via=cp_async\n"
    )
    (way,) = (one for one in schedule.directives if one.name == "async_copy")
    by_tma = replace(way, arguments=(replace(way.arguments[0], value="tma"),))
    engine = replace(
        schedule, directives=tuple(by_tma if one is way else one for one in schedule.directives)
    )
    assert narrowed(engine, frozenset({"A"})) == narrowed(schedule, frozenset({"A"}))
    assert by_tma in narrowed(engine, frozenset({"C"})).directives


def test_threads_store_an_output_that_no_map_holds() -> None:
    schedule = parsed(
        "target sm_90\ntile m=64 n=64 k=8\ncache_shared A B C\ndouble_buffer A B\n"
        "async_copy A B C via=tma\n"
    )
    for tensors, wanted in (
        ("C", "A B via=tma"),
        ("AC", "A B via=cp_async"),
        ("", "A B C via=tma"),
    ):
        kept = narrowed(schedule, frozenset(tensors)).directives
        (way,) = (format_directive(one) for one in kept if one.name == "async_copy")
        assert way == f"async_copy {wanted}"


def test_the_target_of_a_choice_has_the_gpus_own_instruction() -> None:
    """f64 on sm_90 has larger ones than sm_80, the default of schedules; without an element there
    is nothing to multiply, and the plain schedule is enough."""
    schedule = parsed("gemm C[m, n] = A[m, k] * B[k, n]\ndtype A=f64 B=f64 C=f64 acc=f64\n")
    found = chosen(schedule, False, m=1024, n=1024, k=1024).emitted
    assert found.schedule.target == "sm_90" and "m16n8k" in found.text
    halves = parsed("gemm C[m, n] = A[m, k] * B[k, n]\ndtype A=f16 B=f16 C=f16\n")
    empty = chosen(halves, False, m=1024, n=1024, k=0).emitted
    assert "via=tma" not in format_schedule(empty.schedule)
