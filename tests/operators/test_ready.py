"""Calls like an earlier one, with a launcher that records what it is given."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from gemmgen.gpu.arguments import View, contiguous_strides  # noqa: E402
from gemmgen.gpu.binding import Binding  # noqa: E402
from gemmgen.pipeline import compile_source  # noqa: E402
from gemmgen.source import Source  # noqa: E402
from gemmgen.torch.ready import Ready  # noqa: E402
from gemmgen.torch.signature import Signature  # noqa: E402

TEXT = "gemm C[m, n] = A[m, k] * B[k, n]\nfuse_epilogue scale * acc + alpha * row[m] + shift\n"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A ready call of tensors of 4 x 6, 6 x 8 and 4, those tensors, and what was launched."""
    current = [None]  # as the CPU's index is
    monkeypatch.setattr(torch.cuda, "current_device", lambda: current[0])
    emitted = compile_source(Source(TEXT))
    binding, launched = Binding(emitted.interface), []
    kernel = SimpleNamespace(
        tensors=binding.tensors,
        scalars=binding.scalars,
        fixed=lambda like, views: lambda *given: launched.append(given),
    )
    signature = Signature.of(emitted.schedule)
    tensors = [torch.ones(4, 6), torch.ones(6, 8), torch.ones(4)]
    shapes = {"A": (4, 6), "B": (6, 8), "row": (4,), "C": (4, 8)}
    views = {name: View(0, shape, contiguous_strides(shape)) for name, shape in shapes.items()}
    return Ready(kernel, signature, tensors, views), signature, binding, launched, current


def test_addresses_and_numbers_go_where_the_kernel_has_them(made: Any) -> None:
    ready, signature, binding, launched, _ = made
    a, b, row = torch.zeros(4, 6), torch.zeros(6, 8), torch.zeros(4)
    assert signature.names == ("A", "B", "row", "scale", "shift", "alpha")
    assert ready.matches(a, b, row)
    output = ready((a, b, row), (a, b, row, 2.0, 3.0, 5.0))
    assert output.shape == (4, 8) and output.is_contiguous()
    ((addresses, numbers),) = launched
    where = {"A": a, "B": b, "row": row, "C": output}
    assert addresses == [where[param.name].data_ptr() for param in binding.tensors]
    values = {"scale": 2.0, "shift": 3.0, "alpha": 5.0}
    assert numbers == tuple(values[param.name] for param in binding.scalars)


def test_tensors_of_another_kind_do_not_match(made: Any) -> None:
    ready, *_ = made
    a, b, row = torch.zeros(4, 6), torch.zeros(6, 8), torch.zeros(4)
    assert not ready.matches(torch.zeros(5, 6), b, row)
    assert not ready.matches(a, torch.zeros(8, 6).t(), row)
    assert not ready.matches(a, b, row.double())
    assert not ready.matches(a, b, torch.zeros(8)[::2])


def test_a_less_aligned_address_or_another_gpu_is_left_to_a_closer_look(made: Any) -> None:
    ready, _, _, launched, current = made
    a, b, row = torch.zeros(25)[1:].view(4, 6), torch.zeros(6, 8), torch.zeros(4)
    assert ready.matches(a, b, row) and ready((a, b, row), (a, b, row, 1.0, 1.0, 1.0)) is None
    current[0] = 1
    a = torch.zeros(4, 6)
    assert ready((a, b, row), (a, b, row, 1.0, 1.0, 1.0)) is None
    assert not launched
