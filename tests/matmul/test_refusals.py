"""Each wrong argument of ``matmul`` and ``linear``: one sentence that names what to do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import gemmgen
from gemmgen.base.errors import CallError, ScheduleError, UsageError

from .samples import drawn

A, B = drawn((3, 4)), drawn((4, 5))


def call(*given: object, **named: object) -> Callable[[], object]:
    return lambda: gemmgen.matmul(*given, **named)


def layer(*given: object, **named: object) -> Callable[[], object]:
    return lambda: gemmgen.linear(*given, **named)


def overlapping() -> Callable[[], object]:
    a = drawn((4, 4))
    return call(a, a, out=a)


REFUSALS: dict[str, tuple[Callable[[], object], str]] = {
    "list": (call([[1.0]], B), r"a is a list; .* are taken: pass numpy.asarray\(a\)"),
    "number": (call(A, 2.0), r"b is a float; .* pass numpy.asarray\(b\)"),
    "nothing": (call(A, None), "b is a NoneType; NumPy arrays, CuPy arrays and PyTorch tensors"),
    "memory": (call(memoryview(b"abcd"), B), "a is a memoryview; NumPy arrays"),
    "no dimension": (call(A, np.float32(1)), "b is a numpy.float32"),
    "0-d": (call(np.array(1, np.float32), B), r"a has no dimension: multiply by a number with \*"),
    "shapes": (
        call(A, drawn((3, 5))),
        r"a has shape \(3, 4\) and b has shape \(3, 5\): 4 columns of a meet 3 rows of b$",
    ),
    "transposed": (call(A, drawn((5, 4))), "b transposed would fit: pass b.T"),
    "vector": (call(drawn((3,)), B), "3 columns of a meet 4 rows of b"),
    "batches": (
        call(drawn((2, 3, 4)), drawn((3, 4, 5))),
        "batch dimensions of 2 and 3 don't broadcast, which takes equal ones or 1",
    ),
    "too many batches": (
        call(drawn((2, 1, 2, 1, 3, 4)), drawn((2, 1, 2, 1, 2, 4, 5))),
        "the product has 5 batch dimensions that are not adjacent in memory, and at most 4",
    ),
    "types": (
        call(A, B.astype(np.float16)),
        "a is float32 and b is float16: convert one to the type of the other",
    ),
    "int64": (call(A.astype(np.int64), B), "a is int64, and the types that are multiplied are"),
    "int32": (call(A, B.astype(np.int32)), "b is int32, and the types that are multiplied are"),
    "complex": (call(A.astype(np.complex64), B), "a is complex64, and the types"),
    "bits": (
        call(A.astype(np.uint16), B),
        r"a is uint16, which is not a number type.* pass a.view\(ml_dtypes.bfloat16\)",
    ),
    "byte order": (call(A.astype(">f4"), B), r"a is >f4, in another byte order .*newbyteorder"),
    "mask": (call(np.ma.masked_array(A), B), r"a is a masked array, .* pass a.filled\(0\), or"),
    "mask of out": (
        call(A, B, out=np.ma.masked_array(np.zeros((3, 5), np.float32))),
        "out is a masked array, whose mask would be ignored; pass out.data",
    ),
    "out's shape": (
        call(A, B, out=np.zeros((5, 3), np.float32)),
        r"out has shape \(5, 3\), and the product has shape \(3, 5\)",
    ),
    "out's type": (
        call(A, B, out=np.zeros((3, 5), np.int32)),
        "out is int32, and a product of float32 is stored as float32 or float16 or bfloat16",
    ),
    "out's strides": (
        call(A, B, out=np.zeros((6, 10), np.float32)[::2, ::2]),
        r"C has strides \(20, 2\), and a kernel writes rows or columns whose elements are adjacent"
        r".* \(A is a, B is b, C is out\)",
    ),
    "out backwards": (
        call(A, B, out=np.zeros((3, 5), np.float32)[::-1]),
        r"C has strides \(-5, 1\), and a kernel writes .*C is out",
    ),
    "out broadcast": (
        call(
            drawn((2, 3, 4)),
            B,
            out=np.lib.stride_tricks.as_strided(
                np.zeros((3, 5), np.float32), (2, 3, 5), (0, 20, 4)
            ),
        ),
        "C has strides .*two of its elements have one address.*C is out",
    ),
    "out read-only": (
        call(A, B, out=np.broadcast_to(np.zeros((3, 5), np.float32), (3, 5))),
        "C is written, but the array is read-only.*C is out",
    ),
    "out overlaps": (overlapping(), r"C overlaps A in memory; .* \(A is a, B is b, C is out\)"),
    "bias's shape": (
        call(A, B, bias=drawn((4,))),
        r"n has 4 values in bias\[n\], but 5 in B\[k, n\]",
    ),
    "bias's dimensions": (call(A, B, bias=drawn((3, 5))), r"bias\[n\] has 1 dimensions, not 2"),
    "bias's type": (
        call(A, B, bias=np.zeros(5, np.int64)),
        "bias is int64; an epilogue reads float16, bfloat16, .*: convert it",
    ),
    "bias of a number": (call(A, B, bias=2.0), r"bias is a float; .* pass numpy.asarray\(bias\)"),
    "bias unread": (
        call(A, B, bias=drawn((5,)), epilogue="relu(acc)"),
        r"bias is given, and the epilogue relu\(acc\) has no bias\[n\]",
    ),
    "bias missing": (
        call(A, B, epilogue="acc + bias[n]"),
        r"the epilogue acc \+ bias\[n\] reads bias, which is not given: pass bias=",
    ),
    "bias twice": (
        call(A, B, bias=drawn((5,)), epilogue=("acc + bias[n]", {"bias": drawn((5,))})),
        "bias is given twice: as bias=, and in epilogue=",
    ),
    "value missing": (
        call(A, B, epilogue="scale * acc"),
        r'reads scale, which is not given: pass epilogue=\(text, {"scale": ...}\)',
    ),
    "value unread": (
        call(A, B, epilogue=("relu(acc)", {"scale": 2.0})),
        r"scale is given, and the epilogue relu\(acc\) has no scale",
    ),
    "array for a number": (
        call(A, B, epilogue=("scale * acc", {"scale": drawn((5,))})),
        "scale is a ndarray; the kernel takes a number",
    ),
    "number for an array": (
        call(A, B, epilogue=("acc + r[n]", {"r": 2.0})),
        r"r is a float; .* pass numpy.asarray\(r\)",
    ),
    "epilogue's type": (call(A, B, epilogue=7), "epilogue= is a int; it is a text, or a text and"),
    "epilogue's values": (
        call(A, B, epilogue=("acc", 7)),
        "epilogue= is a text, or a text and its",
    ),
    "epilogue's name": (call(A, B, epilogue=("acc", {"a b": 7})), "epilogue= has the name 'a b'"),
    "two lines": (
        call(A, B, epilogue="relu(acc)\ntile m=64 n=64"),
        "is not one line of an expression without comments",
    ),
    "comment": (call(A, B, epilogue="acc # * 2"), "is not one line of an expression without"),
    "no text": (call(A, B, epilogue=" "), "is not one line of an expression without"),
    "beta": (
        call(A, B, epilogue=("acc + beta * C[m, n]", {"beta": 1.0})),
        "reads C, the old result: pass it as out=",
    ),
    "weight's shape": (
        layer(A, B),
        r"x has shape \(3, 4\) and weight has shape \(4, 5\): rows of 4 and of 5 elements",
    ),
    "weight's dimensions": (
        layer(A, drawn((2, 5, 4))),
        r"weight has 3 dimensions; it has shape \(N, K\), or \(K,\)",
    ),
    "weight's type": (layer(A, B.T.astype(np.int64)), "weight is int64, and the types"),
    "x": (layer([1.0], B), "x is a list"),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_a_wrong_argument_is_one_sentence(what: str) -> None:
    run, message = REFUSALS[what]
    for _ in range(2):  # also once something is cached
        with pytest.raises(CallError, match=message) as caught:
            run()
        assert "\n" not in str(caught.value)
        assert caught.value.__suppress_context__ or caught.value.__context__ is None


INJECTED = (
    "acc); evil(",
    "acc + __syncthreads()",
    "acc + bias[n]; tile m=64",
    "acc + threadIdx[n]",
    "acc /* */",
    'asm("trap")',
    "acc + A[m, k]",
    "acc\u2028tile m=64 n=64",
    "acc\ttile",
)


@pytest.mark.parametrize("text", INJECTED)
def test_only_the_languages_expressions_reach_a_kernel(text: str) -> None:
    with pytest.raises((ScheduleError, CallError)):
        gemmgen.matmul(A, B, epilogue=text)


@pytest.mark.parametrize(
    "name", ("A", "C", "acc", "m", "n", "k", "M", "lda", "threadIdx", "int", "__x", "Ă", "x y", "")
)
def test_only_names_of_the_language_reach_a_kernel(name: str) -> None:
    with pytest.raises((ScheduleError, CallError)):
        gemmgen.matmul(A, B, epilogue=(f"acc * {name}", {name: 2.0}))


def test_a_mistake_of_an_epilogue_is_located() -> None:
    with pytest.raises(ScheduleError) as caught:
        gemmgen.matmul(A, B, epilogue="relu(ac) + bas[q]")
    assert "`q` is not a letter of the output" in str(caught.value)
    with pytest.raises(ScheduleError, match="did you mean `relu`") as caught:
        gemmgen.matmul(A, B, epilogue="rel(acc)")
    assert caught.value.line == 2 and "<epilogue>" in str(caught.value)


def test_explain_matmul_refuses_the_same() -> None:
    with pytest.raises(CallError, match="a is a list"):
        gemmgen.explain_matmul([1.0], B)
    with pytest.raises(UsageError, match="7"):
        gemmgen.explain_matmul(A, B, gpu=7)
    with pytest.raises(UsageError, match="H2000"):
        gemmgen.explain_matmul(A, B, gpu="H2000")
