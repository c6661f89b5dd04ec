"""The Python package over a library of stubs: what products are called with, and each error.

Arrays are fakes: they say where they lie, and nothing reads them.
"""

from __future__ import annotations

import ctypes
import inspect
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from .stub_library import Stub, built

if not shutil.which("g++"):
    pytest.skip("there is no g++", allow_module_level=True)
AT = 1 << 20
"""Where fake arrays lie; from 2^40 on they lie on the second GPU."""
STREAM = 77


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Stub:
    return built(tmp_path_factory.mktemp("python"))


@pytest.fixture(autouse=True)
def _reset(stub: Stub) -> None:
    stub.need(0)
    stub.fail(0)
    stub.capture(0)
    stub.log()


class Array:
    """An array with the CUDA array interface; ``strides`` are bytes."""

    def __init__(
        self,
        at: int,
        *shape: int,
        kind: str = "<f4",
        strides: tuple[int, ...] | None = None,
        read_only: bool = False,
        stream: int | None = None,
        mask: object = None,
    ) -> None:
        self.__cuda_array_interface__ = {
            "shape": shape, "typestr": kind, "data": (at, read_only), "version": 3,
            "strides": strides, "stream": stream, "mask": mask,
        }  # fmt: skip


class Capsuled:
    """An array with DLPack."""

    def __init__(
        self,
        at: int,
        *shape: int,
        kind: tuple[int, int] = (2, 32),
        device: tuple[int, int] = (2, 0),
    ) -> None:
        self.device, self.streams = device, list[int]()
        self.sizes = (ctypes.c_int64 * len(shape))(*shape)
        fields = (at, *device, len(shape), *kind, 1, ctypes.addressof(self.sizes), 0, 0)
        self.memory = _Managed(*fields)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, *, stream: int) -> Any:
        self.streams.append(stream)
        return _capsule(ctypes.addressof(self.memory), b"dltensor", None)


class _Managed(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_uint64), ("type", ctypes.c_int32), ("id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16), ("shape", ctypes.c_uint64), ("strides", ctypes.c_uint64),
        ("offset", ctypes.c_uint64),
    )  # fmt: skip


_capsule: Any = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)(("PyCapsule_New", ctypes.pythonapi))


def bits(at: int, *shape: int, **others: Any) -> Array:
    return Array(at, *shape, kind="<u2", **others)


def linear(stub: Stub, **others: Any) -> Any:
    arrays = {"A": bits(AT, 4, 6), "B": bits(AT + 1, 5, 6), "bias": bits(AT + 2, 5)}
    named = {"out": bits(AT + 3, 4, 5), "stream": STREAM, **arrays, **others}
    a, b, bias = (named.pop(name) for name in ("A", "B", "bias"))
    return stub.package.linear(a, b, bias, **named)


def test_a_product_gets_pointers_extents_and_strides(stub: Stub) -> None:
    out = bits(AT + 3, 4, 5, strides=(32, 2))
    assert linear(stub, out=out) is out
    assert stub.log() == [f"linear 4 5 6 {AT} 6 {AT + 1} 6 {AT + 3} 16 {AT + 2} 0 0 {STREAM}"]


def test_scalars_have_their_usual_values(stub: Stub) -> None:
    a, b, c = Array(AT, 2, 3), Array(AT + 1, 3, 4), Array(AT + 2, 2, 4)
    stub.package.single(a, b, out=c)
    stub.package.single(a, b, out=c, alpha=0.5, beta=2)
    one, two = stub.log()
    assert one == f"single 2 4 3 1.000000 {AT} 3 {AT + 1} 4 0.000000 {AT + 2} 4 1"
    assert "0.500000" in two and "2.000000" in two
    named = inspect.signature(stub.package.batched).parameters
    assert named["scale"].default is inspect.Parameter.empty


def test_matrices_of_a_batch_have_a_stride(stub: Stub) -> None:
    a = Array(AT, 3, 2, 8, kind="<f2", strides=(160, 32, 2))
    b, c = Array(AT + 1, 8, 4, kind="<f2"), Array(AT + 2, 3, 2, 4, kind="<f2")
    stub.package.batched(a, b, out=c, scale=3)
    wanted = f"batched 2 4 8 3 {AT} 16 80 {AT + 1} 4 {AT + 2} 4 8 3.000000 1"
    assert stub.log() == [wanted]


def test_dlpack_is_exchanged_for_the_stream(stub: Stub) -> None:
    a, b = Capsuled(AT, 2, 3), Capsuled(AT + 1, 3, 4)
    c = Capsuled(AT + 2, 2, 4)
    stub.package.single(a, b, out=c, stream=STREAM)
    assert a.streams == b.streams == c.streams == [STREAM]
    assert stub.log()[0].startswith(f"single 2 4 3 1.000000 {AT} 3 {AT + 1} 4")
    stub.package.single(a, b, out=c)
    assert a.streams[-1] == 1
    stub.package.bytes(
        Capsuled(AT, 2, 3, kind=(10, 8)), Capsuled(AT, 4, 3, kind=(1, 8)),
        out=Capsuled(AT, 2, 4, kind=(4, 16)),
    )  # fmt: skip
    assert stub.log()[-1].startswith("bytes 2 4 3")


@pytest.mark.parametrize("kind", ("__cuda_stream__", "ptr", "cuda_stream"))
def test_a_stream_is_a_handle_or_an_object(stub: Stub, kind: str) -> None:
    value = (lambda: (0, STREAM)) if kind == "__cuda_stream__" else STREAM
    linear(
        stub, stream=type("Stream", (), {kind: staticmethod(value) if callable(value) else value})
    )
    assert stub.log()[0].endswith(f" {STREAM}")


def test_the_stream_waits_for_another_one_that_wrote_an_array(stub: Stub) -> None:
    linear(stub, B=bits(AT + 1, 5, 6, stream=5), A=bits(AT, 4, 6, stream=STREAM))
    first, second, call = stub.log()
    assert (first, second) == ("record 5", f"wait {STREAM}") and call.startswith("linear")
    linear(stub, A=bits(AT, 4, 6, stream=5), stream=None)
    assert stub.log()[0].endswith(" 5")


def test_another_gpu_is_current_during_the_call(stub: Stub) -> None:
    far = 1 << 40
    linear(
        stub, A=bits(far, 4, 6), B=bits(far, 5, 6), bias=bits(far, 5), out=bits(far, 4, 5)
    )  # fmt: skip
    log = stub.log()
    assert log[0] == "device 1" and log[1].startswith("linear") and log[2] == "device 0"


def test_strides_of_an_extent_of_one_are_not_read(stub: Stub) -> None:
    linear(stub, A=bits(AT, 1, 6, strides=(2, 2)), out=bits(AT + 3, 1, 5, strides=(0, 2)))
    assert f"1 5 6 {AT} 6" in stub.log()[0]


def test_an_empty_array_has_no_device(stub: Stub) -> None:
    linear(stub, A=bits(0, 0, 6), out=bits(0, 0, 5))
    assert stub.log()[0].startswith("linear 0 5 6 0 6")


def test_a_workspace_is_kept_for_each_stream_and_grows(stub: Stub) -> None:
    stub.need(70_000)
    linear(stub, stream=101)
    first, zeroed, call = stub.log()
    assert (first, zeroed) == ("malloc 70000", "memset 65536") and " 70000 " in call
    stub.need(80_000)
    linear(stub, stream=101)
    assert stub.log()[0] == "malloc 140000"
    linear(stub, stream=102)
    assert stub.log()[0] == "malloc 80000"
    linear(stub, stream=101)
    assert len(stub.log()) == 1


def test_a_graph_has_a_workspace_of_its_own_which_ends_with_it(stub: Stub) -> None:
    stub.need(70_000)
    linear(stub, stream=201)
    stub.log()
    stub.capture(9)
    linear(stub, stream=201)
    allocated, zeroed, retained, call = stub.log()
    assert (allocated, zeroed, retained) == ("malloc 70000", "memset 65536", "retain")
    linear(stub, stream=201)
    assert stub.log() == [call]
    stub.end_graph()
    stub.capture(10)
    linear(stub, stream=201)
    assert stub.log() == ["memset 65536", "retain", call]


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "another type": ({"A": Array(AT, 4, 6)}, "A has the type <f4; it must be bfloat16 (V2 or u2)"),
    "swapped bytes": ({"A": Array(AT, 4, 6, kind=">u2")}, "A has the type >u2"),
    "another number of dimensions": ({"A": bits(AT, 4)}, "A has 1 dimensions; it must have 2: [m,"),
    "columns": ({"A": bits(AT, 4, 6, strides=(2, 8))}, "strides (1, 4); elements along k must be"),
    "rows that overlap": ({"A": bits(AT, 4, 6, strides=(8, 2))}, "of 6 elements that begin 4"),
    "rows upwards": ({"A": bits(AT, 4, 6, strides=(-12, 2))}, "a negative stride: (-6, 1)"),
    "half elements": ({"A": bits(AT, 4, 6, strides=(13, 2))}, "no multiples of 2"),
    "extents": ({"B": bits(AT, 5, 7)}, "B [n, k] is 5 x 7, which does not fit: A is 4 x 6"),
    "a bias": ({"bias": bits(AT, 4)}, "bias [n] is 4, which does not fit: B is 5 x 6"),
    "a result": ({"out": bits(AT, 5, 4)}, "out [m, n] is 5 x 4, which does not fit: A is 4 x 6, B"),
    "a read-only result": ({"out": bits(AT, 4, 5, read_only=True)}, "out is read-only"),
    "a mask": ({"A": bits(AT, 4, 6, mask=1)}, "A has a mask"),
    "no result": ({"out": None}, "out is missing; without it only arrays of PyTorch and CuPy"),
    "memory of the host": ({"A": bits(64, 4, 6)}, "A is in the host's memory"),
    "NumPy": ({"A": np.zeros((4, 6), np.uint16)}, "A is in the host's memory (NumPy?); copy it"),
    "NumPy later": ({"B": np.zeros((5, 6), np.uint16)}, "B is in the host's memory"),
    "a list": ({"A": [1]}, "A is list, which has neither __dlpack__ nor"),
    "two GPUs": ({"B": bits(1 << 40, 5, 6)}, "B is on GPU 1, another array on GPU 0"),
    "a stream": ({"stream": "0"}, "stream is str; it is a handle (int) or a stream's object"),
    "a large extent": ({"A": bits(AT, 1 << 31, 6), "out": bits(AT, 1 << 31, 5)}, "does not fit in"),
    "another type of DLPack": ({"A": Capsuled(AT, 4, 6)}, "A is float32; it must be bfloat16"),
    "another device": ({"A": Capsuled(AT, 4, 6, device=(10, 0))}, "a device of DLPack's type 10"),
    "pinned memory": ({"A": Capsuled(AT, 4, 6, device=(3, 0))}, "A is in the host's memory"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_clear_error(stub: Stub, name: str) -> None:
    others, message = MISTAKES[name]
    with pytest.raises((TypeError, ValueError)) as refused:
        linear(stub, **others)
    text = str(refused.value)
    assert message in text and (name == "a stream" or text.startswith("linear: "))
    assert stub.log() == []


def test_a_result_that_is_read_must_be_given(stub: Stub) -> None:
    a, b = Array(AT, 2, 3), Array(AT + 1, 3, 4)
    with pytest.raises(TypeError, match="single: out is missing, which beta multiplies"):
        stub.package.single(a, b, beta=1)
    with pytest.raises(TypeError, match="added: out is missing, whose elements"):
        stub.package.added(a, b)
    with pytest.raises(ValueError, match="single: a number does not fit in C's type"):
        stub.package.single(a, b, alpha="1", out=Array(AT + 2, 2, 4))


def test_a_result_whose_matrices_overlap_is_refused(stub: Stub) -> None:
    a, b = Array(AT, 3, 2, 8, kind="<f2"), Array(AT + 1, 8, 4, kind="<f2")
    c = Array(AT + 2, 3, 2, 4, kind="<f2", strides=(8, 8, 2))
    with pytest.raises(ValueError, match=r"batched: out has strides .* its elements overlap"):
        stub.package.batched(a, b, out=c, scale=1)


def test_an_array_of_jax_is_no_result(stub: Stub) -> None:
    immutable = type("Array", (Array,), {"__module__": "jaxlib._jax"})
    with pytest.raises(TypeError, match="out is an array of JAX, which is immutable"):
        linear(stub, out=immutable(AT, 4, 5, kind="<u2"))


def test_an_error_of_cuda_is_raised(stub: Stub) -> None:
    stub.fail(1)
    with pytest.raises(RuntimeError, match="linear: CUDA error 1: invalid argument"):
        linear(stub)
    assert stub.log()[1:] == ["error taken"], "the next launch would report it again"


class Tensor:
    """A tensor of a PyTorch that is a fake."""

    def __init__(self, at: int, *shape: int, dtype: str = "bfloat16", device: int = 0) -> None:
        self.at, self.shape, self.dtype, self.index = at, shape, dtype, device

    @property
    def device(self) -> SimpleNamespace:
        return SimpleNamespace(type="cpu" if self.index < 0 else "cuda")

    def get_device(self) -> int:
        return self.index

    def stride(self) -> tuple[int, ...]:
        return tuple(int(np.prod(self.shape[at + 1 :])) for at in range(len(self.shape)))

    def data_ptr(self) -> int:
        return self.at


class Transposed(Tensor):
    """A view of a matrix with the other order of its indices."""

    def stride(self) -> tuple[int, ...]:
        return (1, self.shape[0])


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """PyTorch with a current stream of the GPU's number plus 50."""
    found = SimpleNamespace(
        Tensor=Tensor,
        bfloat16="bfloat16",
        device=lambda kind, index: (kind, index),
        empty=lambda shape, dtype, device: Tensor(AT + 9, *shape, dtype=dtype, device=device[1]),
        cuda=SimpleNamespace(current_stream=lambda at: SimpleNamespace(cuda_stream=at + 50)),
        _C=SimpleNamespace(),
    )
    monkeypatch.setitem(sys.modules, "torch", found)
    return found


def test_tensors_take_the_current_stream_and_get_a_result(
    stub: Stub, torch: SimpleNamespace
) -> None:
    a, b, bias = Tensor(AT, 4, 6), Tensor(AT + 1, 5, 6), Tensor(AT + 2, 5)
    out = stub.package.linear(a, b, bias)
    assert isinstance(out, torch.Tensor) and out.shape == (4, 5)
    assert stub.log() == [f"linear 4 5 6 {AT} 6 {AT + 1} 6 {AT + 9} 5 {AT + 2} 0 0 50"]
    one = stub.package.linear(Transposed(AT, 1, 6), b, bias, out=Tensor(AT + 3, 1, 5))
    assert one.at == AT + 3 and stub.log()[0].startswith(f"linear 1 5 6 {AT} 6")
    far = (Tensor(AT, 4, 6, device=1), Tensor(AT, 5, 6, device=1), Tensor(AT, 5, device=1))
    assert stub.package.linear(*far).index == 1
    assert [line.split()[-1] for line in stub.log()] == ["1", "51", "0"]


TENSORS: dict[str, tuple[dict[str, Any], str]] = {
    "another type": ({"A": Tensor(AT, 4, 6, dtype="torch.float32")}, "A is float32; it must be bf"),
    "a tensor of the host": ({"A": Tensor(AT, 4, 6, device=-1)}, "move it to a GPU: .cuda()"),
    "another GPU": ({"B": Tensor(AT, 5, 6, device=1)}, "another array on cuda:0"),
    "NumPy": ({"B": np.zeros((5, 6))}, "B is numpy.ndarray, not a tensor of PyTorch"),
    "None": ({"B": None}, "B is NoneType, not a tensor"),
    "transposed": ({"A": Transposed(AT, 4, 6)}, "elements along k must be adjacent"),
    "a vector": ({"A": Tensor(AT, 4)}, "A has 1 dimensions; it must have 2"),
    "a stream": ({"stream": STREAM}, "tensors of PyTorch take its current stream"),
    "extents": ({"B": Tensor(AT, 5, 7)}, "B [n, k] is 5 x 7"),
}


@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.usefixtures("torch")
def test_a_mistake_of_tensors_is_one_clear_error(stub: Stub, name: str) -> None:
    others, message = TENSORS[name]
    named = {"A": Tensor(AT, 4, 6), "B": Tensor(AT, 5, 6), "bias": Tensor(AT, 5), **others}
    with pytest.raises((TypeError, ValueError)) as refused:
        stub.package.linear(**named)
    assert str(refused.value).startswith("linear: ") and message in str(refused.value)
    assert stub.log() == []


def test_a_pytorch_without_the_type_says_so(stub: Stub, torch: SimpleNamespace) -> None:
    with pytest.raises(TypeError, match="bytes: A is float8_e4m3fn, which this PyTorch has not"):
        stub.package.bytes(Tensor(AT, 4, 6), Tensor(AT, 5, 6))
    assert not hasattr(torch, "float8_e4m3fn")


def test_cupy_gives_the_result_and_its_current_stream(
    stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = type("ndarray", (Array,), {"__module__": "cupy._core.core"})

    def empty(shape: tuple[int, ...], dtype: str) -> SimpleNamespace:
        assert dtype == "uint16"
        return SimpleNamespace(shape=shape, data=SimpleNamespace(ptr=AT + 9))

    cuda = SimpleNamespace(
        get_current_stream=lambda: SimpleNamespace(ptr=33),
        Device=lambda index: nullcontext(index),
    )
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(empty=empty, cuda=cuda))
    a, b, bias = (kind(AT, *shape, kind="<u2") for shape in ((4, 6), (5, 6), (5,)))
    assert stub.package.linear(a, b, bias).shape == (4, 5)
    assert stub.log() == [f"linear 4 5 6 {AT} 6 {AT} 6 {AT + 9} 5 {AT} 0 0 33"]


def test_importing_it_imports_no_array_library(stub: Stub) -> None:
    folder = Path(stub.package.__file__ or "").parents[1]
    code = "import sys, mini; print({'numpy', 'torch', 'cupy', 'jax', 'gemmgen'} & {*sys.modules})"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=folder, capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"
    assert stub.package.__all__ == ["linear", "single", "batched", "bytes", "added"]
    assert "A     [M, K] bfloat16" in (stub.package.linear.__doc__ or "")
