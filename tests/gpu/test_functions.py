"""G1: what an emitted function does on a GPU is what its model does: the very same text on both."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from gemmgen.calling.launches import LANDINGS
from gemmgen.ir.dtypes import DType
from gemmgen.numerics.formats import STORAGE, Stored, bits
from gemmgen.sim.run import compile_kernel

from .probes import Probe, additions, bases, copies, counts, groups

cp = pytest.importorskip("cupy")

DTYPES: tuple[DType, ...] = ("f32", "f64", "f16", "bf16")


def given(probe: Probe) -> Stored:
    """Numbers whose bits all differ."""
    values = np.arange(1, probe.read + 1, dtype=np.float64) * 3 - 50
    if probe.dtype == "bf16":
        return (np.arange(probe.read, dtype=np.uint16) + 0x3F80).view(STORAGE["bf16"])
    return values.astype(STORAGE[probe.dtype])


def on_cpu(probe: Probe, a: Stored, landing: str) -> npt.NDArray[np.generic]:
    c = np.zeros(probe.written, STORAGE[probe.result])
    kernel = compile_kernel(probe.text(), probe.interface())
    kernel.run({"M": probe.read, "N": probe.written, "A": a, "C": c}, landing=landing)
    return bits(c)


def on_gpu(probe: Probe, a: Stored) -> npt.NDArray[np.generic]:
    module = cp.RawModule(code=probe.text(), options=("--std=c++17",))
    c = cp.zeros(probe.written, STORAGE[probe.result].name)
    counter = cp.zeros(1, "uint32")
    numbers = (np.int32(probe.read), np.int32(probe.written))
    order = (*numbers, cp.asarray(a), c, counter)
    module.get_function("probe")((probe.blocks,), (32,), order)
    return bits(c.get().view(STORAGE[probe.result]))


@pytest.mark.parametrize("size", (4, 8, 16))
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_copy_of_every_number_of_bytes(dtype: DType, size: int) -> None:
    if size < np.dtype(STORAGE[dtype]).itemsize:
        pytest.skip("less than an element")
    probe = copies(dtype, size)
    a = given(probe)
    got = on_gpu(probe, a)
    for landing in LANDINGS:
        assert (got == on_cpu(probe, a, landing)).all()
    whole = bits(a).reshape(32, -1)[size:]
    assert (got.reshape(32, -1)[size:] == whole).all() and (got.reshape(32, -1)[0] == 0).all()


@pytest.mark.parametrize("pending", range(4))
def test_a_wait_is_for_all_groups_but_the_last(pending: int) -> None:
    probe = groups(pending)
    a = given(probe)
    got = on_gpu(probe, a)
    for landing in LANDINGS:
        assert (got == on_cpu(probe, a, landing)).all()


@pytest.mark.parametrize("last", (63, 7, 15))
def test_blocks_count_from_zero_to_the_last(last: int) -> None:
    probe = counts(last)
    a = given(probe)
    got = np.sort(on_gpu(probe, a).view(np.float32))
    assert (got == np.sort(on_cpu(probe, a, "late").view(np.float32))).all()
    assert (got == np.sort(np.arange(64) % (last + 1))).all()


@pytest.mark.parametrize("dtype", ("f32", "f64"))
def test_additions_are_undivided(dtype: DType) -> None:
    probe = additions(dtype)
    a = given(probe)
    assert (on_gpu(probe, a) == on_cpu(probe, a, "late")).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_base_is_the_pointer(dtype: DType) -> None:
    probe = bases(dtype)
    a = given(probe)
    got = on_gpu(probe, a)
    assert (got == on_cpu(probe, a, "late")).all() and (got == bits(a)[3:35]).all()
