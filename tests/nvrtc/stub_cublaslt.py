"""cublasLt on a CPU: it multiplies matrices of NumPy as the descriptions of its calls say."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

import numpy as np

TYPES = {0: "float32", 1: "float64", 2: "float16", 3: "int8", 10: "int32"}
"""NumPy's of those by CUDA's numbers that the tests compute with."""


@dataclass
class StubLt:
    """``states``: of the proposals, 0 those that are possible.  What is described is kept by the
    numbers that stand for handles."""

    states: tuple[int, ...] = (0, 0, 0)
    refuses: tuple[int, ...] = ()
    heuristics: int = 0
    made: dict[int, dict[Any, Any]] = field(default_factory=dict)
    ran: list[int] = field(default_factory=list)
    destroyed: int = 0
    _next: int = 1

    def cublasLtCreate(self, handle: Any) -> int:
        return self._make(handle, {})

    def cublasLtMatmulDescCreate(self, found: Any, compute: Any, scale: Any) -> int:
        return self._make(found, {"compute": compute.value, "scale": scale.value})

    def cublasLtMatrixLayoutCreate(
        self, found: Any, kind: Any, rows: Any, columns: Any, ld: Any
    ) -> int:
        shape = rows.value, columns.value, ld.value
        assert ld.value >= rows.value
        return self._make(found, {"kind": kind.value, "shape": shape})

    def cublasLtMatmulPreferenceCreate(self, found: Any) -> int:
        return self._make(found, {})

    def cublasLtMatmulDescSetAttribute(self, to: Any, at: Any, value: Any, size: Any) -> int:
        assert size.value == ctypes.sizeof(value._obj)
        self.made[to.value][at.value] = value._obj.value
        return 0

    cublasLtMatmulPreferenceSetAttribute = cublasLtMatmulDescSetAttribute

    def cublasLtMatmulDescDestroy(self, found: Any) -> int:
        self.destroyed += 1
        return 0

    cublasLtMatrixLayoutDestroy = cublasLtMatmulPreferenceDestroy = cublasLtMatmulDescDestroy

    def cublasLtMatmulAlgoGetHeuristic(self, *arguments: Any) -> int:
        *_, preference, most, found, count = arguments
        self.preference = self.made[preference.value]
        count._obj.value = min(most.value, len(self.states))
        for number, state in enumerate(self.states[: most.value]):
            found[number].algorithm.data[0] = number
            found[number].status = state
        return self.heuristics

    def cublasLtMatmul(self, *arguments: Any) -> int:
        _, description, alpha, a, at, b, bt, beta, c, ct, d, dt, algorithm, *_ = arguments
        assert (c, ct) == (d, dt) and alpha._obj.value == 1 and beta._obj.value == 0
        number = algorithm._obj.data[0]
        if number in self.refuses:
            return 15
        self.ran.append(number)
        self.description = self.made[description.value]
        one, two = (self._operand(x, t, s) for x, t, s in ((a, at, 3), (b, bt, 4)))
        self._matrix(c, ct)[...] = one.astype("float64") @ two.astype("float64")
        return 0

    def _make(self, found: Any, what: dict[Any, Any]) -> int:
        found._obj.value, self.made[self._next] = self._next, what
        self._next += 1
        return 0

    def _operand(self, pointer: Any, layout: Any, transposed: int) -> Any:
        matrix = self._matrix(pointer, layout)
        return matrix.T if self.description[transposed] else matrix

    def _matrix(self, pointer: Any, layout: Any) -> Any:
        """A view of a matrix that is stored by columns."""
        rows, columns, ld = self.made[layout.value]["shape"]
        kind = np.dtype(TYPES[self.made[layout.value]["kind"]])
        memory = (ctypes.c_char * (ld * columns * kind.itemsize)).from_address(pointer.value)
        return np.frombuffer(memory, kind).reshape(columns, ld)[:, :rows].T
