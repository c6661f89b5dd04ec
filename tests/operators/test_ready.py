"""Calls like an earlier one, with a launcher that records what it is given."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from gemmgen.base.errors import CallError  # noqa: E402
from gemmgen.base.source import Source  # noqa: E402
from gemmgen.calling.arguments import View, contiguous_strides  # noqa: E402
from gemmgen.calling.binding import Binding  # noqa: E402
from gemmgen.pipeline import compile_source  # noqa: E402
from gemmgen.torch.ready import Ready  # noqa: E402
from gemmgen.torch.schema import Signature  # noqa: E402

TEXT = "gemm C[m, n] = A[m, k] * B[k, n]\nfuse_epilogue scale * acc + alpha * row[m] + shift\n"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A ready call of tensors of 4 x 6, 6 x 8 and 4, what was launched while which GPU was current,
    and the one that is."""
    current = [None]  # as the CPU's index is
    monkeypatch.setattr(torch.cuda, "current_device", lambda: current[0])

    @contextmanager
    def device(index: object) -> Generator[None]:
        before, current[0] = current[0], index
        yield
        current[0] = before

    monkeypatch.setattr(torch.cuda, "device", device)
    emitted = compile_source(Source(TEXT))
    binding, launched = Binding(emitted.interface), []
    kernel = SimpleNamespace(
        tensors=binding.tensors,
        scalars=binding.scalars,
        fixed=lambda like, views: lambda *given: launched.append((*given, current[0])),
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
    ((addresses, numbers, _),) = launched
    where = {"A": a, "B": b, "row": row, "C": output}
    assert addresses == [where[param.name].data_ptr() for param in binding.tensors]
    values = {"scale": 2.0, "shift": 3.0, "alpha": 5.0}
    assert numbers == tuple(values[param.name] for param in binding.scalars)


def test_a_number_that_the_kernel_cannot_hold_is_refused(made: Any) -> None:
    ready, _, _, launched, _ = made
    tensors = torch.zeros(4, 6), torch.zeros(6, 8), torch.zeros(4)
    with pytest.raises(CallError, match=r"scale = 1e[+]300 is more than a float32 holds"):
        ready(tensors, (*tensors, 1e300, 1.0, 1.0))
    assert not launched


def test_tensors_of_another_kind_do_not_match(made: Any) -> None:
    ready, *_ = made
    a, b, row = torch.zeros(4, 6), torch.zeros(6, 8), torch.zeros(4)
    assert not ready.matches(torch.zeros(5, 6), b, row)
    assert not ready.matches(a, torch.zeros(8, 6).t(), row)
    assert not ready.matches(a, b, row.double())
    assert not ready.matches(a, b, torch.zeros(8)[::2])


def test_a_less_aligned_address_is_left_to_a_closer_look(made: Any) -> None:
    ready, _, _, launched, _ = made
    a, b, row = torch.zeros(25)[1:].view(4, 6), torch.zeros(6, 8), torch.zeros(4)
    assert ready.matches(a, b, row) and ready((a, b, row), (a, b, row, 1.0, 1.0, 1.0)) is None
    assert not launched


def test_the_tensors_gpu_is_made_current_for_the_launch(made: Any) -> None:
    ready, *_, launched, current = made
    current[0] = 1
    tensors = torch.zeros(4, 6), torch.zeros(6, 8), torch.zeros(4)
    assert ready(tensors, (*tensors, 1.0, 1.0, 1.0)).shape == (4, 8)
    assert launched[0][-1] is None and current == [1]
