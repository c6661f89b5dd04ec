"""The least time of a product: what the arithmetic rate and the memory bandwidth of a GPU allow."""

from __future__ import annotations

import math
from collections.abc import Mapping

from gemmgen.gpu.gpus import Gpu
from gemmgen.ir import edit
from gemmgen.ir.dtypes import BYTES, DType
from gemmgen.ir.gemm_roles import contraction
from gemmgen.ir.interface import Interface
from gemmgen.pipeline import Emitted


def on_tensor_cores(emitted: Emitted) -> DType | None:
    """The type of the elements that a kernel's tensor cores multiply; None on the CUDA cores."""
    contract = edit.contraction(emitted.program.main)
    return None if contract.atom == "fma" else contract.into or emitted.program.problem.a.dtype


def lower_bound(
    interface: Interface, shape: Mapping[str, int], gpu: Gpu, multiplied: DType | None = None
) -> float:
    """The roofline in milliseconds: max(operations / rate, bytes / bandwidth).

    The rate is that of the tensor cores for elements of the type ``multiplied`` (a product of split
    elements counts as several), and of the CUDA cores if it is None.
    """
    product = contraction(interface)
    if multiplied is None:
        lanes = gpu.double_lanes if product.c.dtype == "f64" else gpu.lanes
    else:
        lanes = gpu.tensor_lanes(multiplied)
    rate = 2.0 * lanes * gpu.sms * gpu.clock / interface.arithmetic.products
    size = sum(
        BYTES[param.dtype] * math.prod(shape[interface.extent(letter)] for letter in param.indices)
        for param in (product.a, product.b, product.c)
    )
    return 1e3 * max(2 * math.prod(shape.values()) / rate, size / gpu.memory)
