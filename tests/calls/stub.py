"""A stub of CuPy over host memory, so that the launcher runs without a GPU.

``launchKernel`` finds its arguments as the driver does, by the pointers it is given, and computes a
GEMM with NumPy on the memory that they name.
"""

from __future__ import annotations

import ctypes
import threading
from types import SimpleNamespace

import numpy as np

from gemmgen.ir.interface import Interface

_TYPES = {"extent": ctypes.c_int, "ld": ctypes.c_int, "stride": ctypes.c_longlong}
_ELEMENTS = {
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
    "i32": ctypes.c_int,
    "i8": ctypes.c_int8,
}


class ndarray:
    """An array of host memory with what the launcher asks of CuPy's."""

    def __init__(self, shape=(), dtype="float32", *, of: np.ndarray | None = None) -> None:
        self.host = np.full(shape, 77, dtype) if of is None else of

    @property
    def data(self) -> SimpleNamespace:
        return SimpleNamespace(ptr=self.host.ctypes.data if self.host.size else 0, device_id=0)

    def __getitem__(self, key: object) -> ndarray:
        return ndarray(of=self.host[key])

    shape = property(lambda self: self.host.shape)
    strides = property(lambda self: self.host.strides)
    dtype = property(lambda self: self.host.dtype)
    ndim = property(lambda self: self.host.ndim)
    _c_contiguous = property(lambda self: self.host.flags.c_contiguous)


class DriverError(RuntimeError):
    def __init__(self, status: int) -> None:
        super().__init__(f"CUDA error {status}")
        self.status = status


class Stub:
    """The module; ``launches`` are (stream, blocks, arguments by name) in order."""

    def __init__(self, interface: Interface) -> None:
        self.interface, self.ndarray = interface, ndarray
        self.launches: list[tuple[int, int, dict[str, float]]] = []
        self.maps: list[tuple[str, tuple[int, ...]]] = []
        self.stream, self.gpu, self.capturing = 7, 0, False
        self.has_context = threading.local()
        self.graph: list[tuple[str, int]] = []
        self._memory: dict[int, np.ndarray] = {}
        runtime = SimpleNamespace(
            getDevice=lambda: self.gpu,
            getDeviceCount=lambda: 1,
            getDeviceProperties=lambda _: {"major": 8, "minor": 0, "sharedMemPerBlockOptin": 0},
            setDevice=lambda _: setattr(self.has_context, "yes", True),
            streamIsCapturing=lambda _: self.capturing,
            mallocAsync=self._malloc_async,
            memsetAsync=lambda at, value, size, _: self._memset(at, value, size),
            freeAsync=lambda at, _: self.graph.append(("free", at)),
        )
        self.cuda = SimpleNamespace(
            runtime=runtime,
            driver=SimpleNamespace(launchKernel=self.launch, CUDADriverError=DriverError),
            get_current_stream=lambda: SimpleNamespace(ptr=self.stream),
        )

    def RawModule(self, *, path: str) -> SimpleNamespace:
        kernel = SimpleNamespace(kernel=SimpleNamespace(ptr=42))
        return SimpleNamespace(get_function=lambda name: kernel)

    def zeros(self, shape: tuple[int, ...], dtype: str) -> ndarray:
        return ndarray(of=np.zeros(shape, dtype))

    def asarray(self, value: object) -> ndarray:
        return ndarray(of=value.host)  # type: ignore[attr-defined]

    def empty(self, shape: tuple[int, ...], dtype: str) -> ndarray:
        return ndarray(shape, dtype)

    def _malloc_async(self, size: int, stream: int) -> int:
        array = np.full(size, 255, np.uint8)
        self._memory[array.ctypes.data] = array
        self.graph.append(("malloc", array.ctypes.data))
        return array.ctypes.data

    def _memset(self, at: int, value: int, size: int) -> None:
        ctypes.memset(at, value, size)
        self.graph.append(("memset", at))

    def launch(self, function, blocks, *rest) -> None:
        *shape, stream, pointers, extra = rest
        assert (function, extra) == (42, 0) and len(shape) == 6
        if not getattr(self.has_context, "yes", False):
            raise DriverError(201)
        table = ctypes.cast(pointers, ctypes.POINTER(ctypes.c_void_p))
        found: dict[str, float] = {}
        for at, param in enumerate(self.interface.kernel_params):
            if param.kind == "map":
                found |= self._mapped(param.name, table[at])
                continue
            kind = _TYPES.get(param.kind, ctypes.c_uint64)
            if param.kind == "scalar":
                kind = _ELEMENTS[param.dtype]
            found[param.name] = ctypes.cast(table[at], ctypes.POINTER(kind))[0]
        self.graph.append(("launch", blocks))
        self.launches.append((stream, blocks, found))
        self._gemm(found)

    def _mapped(self, name: str, address: int) -> dict[str, float]:
        """A matrix by the map that the fake driver wrote: its address, two sizes, a stride."""
        assert address % 128 == 0
        words = (ctypes.c_uint64 * 16).from_address(address)
        self.maps.append((name, tuple(words)))
        return {name: words[0], f"ld{name.lower()}": words[3] // 4}

    def _gemm(self, found: dict[str, float]) -> None:
        m, n, k = (int(found[name]) for name in "MNK")
        kinds = {param.name: _ELEMENTS.get(param.dtype) for param in self.interface.tensors}
        a, b = _matrix(found, "A", m, k, kinds), _matrix(found, "B", k, n, kinds)
        c, beta = _matrix(found, "C", m, n, kinds), found["beta"]
        product = found["alpha"] * (a.astype(c.dtype) @ b.astype(c.dtype)) if k else 0
        c[...] = product if beta == 0 else product + beta * c


def _matrix(found: dict[str, float], name: str, rows: int, columns: int, kinds) -> np.ndarray:
    ld, kind = int(found[f"ld{name.lower()}"]), np.dtype(kinds[name])
    if not rows or not columns:
        return np.zeros((rows, columns), kind)
    memory = (kinds[name] * ((rows - 1) * ld + columns)).from_address(int(found[name]))
    flat, size = np.frombuffer(memory, kind), kind.itemsize
    return np.lib.stride_tricks.as_strided(flat, (rows, columns), (size * ld, size))
