"""The part of PyTorch that this package uses; it is imported with the first operator."""

from __future__ import annotations

import importlib
from typing import Any, Protocol, cast

from gemmgen.base.errors import CannotCheck
from gemmgen.base.installing import install
from gemmgen.ir.dtypes import DType
from gemmgen.numerics.formats import NAMES


class Device(Protocol):
    type: str
    index: int | None


class TorchTensor(Protocol):
    """The members of ``torch.Tensor`` that are used here."""

    shape: tuple[int, ...]
    dtype: object
    device: Device

    def stride(self) -> tuple[int, ...]: ...
    def data_ptr(self) -> int: ...
    def storage_offset(self) -> int: ...
    def untyped_storage(self) -> object: ...
    def permute(self, order: tuple[int, ...]) -> TorchTensor: ...
    def reshape(self, shape: tuple[int, ...]) -> TorchTensor: ...
    def contiguous(self) -> TorchTensor: ...
    def sum(self, dim: tuple[int, ...]) -> TorchTensor: ...
    def to(self, dtype: object) -> TorchTensor: ...
    def view(self, dtype: object) -> TorchTensor: ...
    def __mul__(self, factor: float) -> TorchTensor: ...


def pytorch() -> Any:
    """The module ``torch``; raises ``CannotCheck`` if it isn't installed."""
    try:
        return importlib.import_module("torch")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise CannotCheck(f"PyTorch is not installed: {install('torch')}") from None


def torch_dtype(dtype: DType) -> object:
    """``torch.float32`` of ``f32``."""
    return cast(object, getattr(pytorch(), NAMES[dtype]))
