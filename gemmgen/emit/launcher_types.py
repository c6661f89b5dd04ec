"""What the launcher calls the elements of tensors: stored bits, or CUDA's own types.

The kernel takes bits in both cases, so that NVRTC needs no header.
"""

from __future__ import annotations

from typing import Literal, get_args

from gemmgen.emit.ctypes import STORED
from gemmgen.emit.printing import printed
from gemmgen.ir.dtypes import DType
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param

ElementTypes = Literal["bits", "cuda"]
"""What a launcher calls the elements of bf16: ``unsigned short``, their bits, without a header, or
``__nv_bfloat16``, CUDA's own type."""
ELEMENT_TYPES: tuple[ElementTypes, ...] = get_args(ElementTypes)

CUDA_TYPES: dict[DType, tuple[str, str]] = {
    "f16": ("__half", "cuda_fp16.h"),
    "bf16": ("__nv_bfloat16", "cuda_bf16.h"),
    "e4m3": ("__nv_fp8_e4m3", "cuda_fp8.h"),
    "e5m2": ("__nv_fp8_e5m2", "cuda_fp8.h"),
}
"""CUDA's own C++ types of what is stored as bits, and the headers that define them."""


def element_type(param: Param, types: ElementTypes) -> str:
    """The C++ type of a parameter's elements in the launcher's signature."""
    own = _own(param) if types == "cuda" else None
    return own[0] if own else STORED[param.dtype]


def includes(interface: Interface, types: ElementTypes) -> list[str]:
    """The ``#include`` lines that the types need, as one text; none if they need no header."""
    if types == "bits":
        return []
    headers = dict.fromkeys(own[1] for p in interface.params if (own := _own(p)))
    lines = [printed("include.j2", {"file": header}) for header in headers]
    return ["\n".join(lines)] if lines else []


def as_bits(param: Param, types: ElementTypes) -> str:
    """A launcher's parameter as the kernel's argument."""
    if types == "bits" or _own(param) is None:
        return param.name
    view = {"constant": range(not param.written), "type": STORED[param.dtype], "name": param.name}
    return printed("parameters/bits.j2", view)


def _own(param: Param) -> tuple[str, str] | None:
    return CUDA_TYPES.get(param.dtype) if param.kind == "tensor" else None
