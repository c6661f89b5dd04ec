"""Boxes of tensors in shared memory, compared with NumPy's slices."""

from __future__ import annotations

import ctypes
import subprocess
from importlib import resources
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from gemmgen.ir.tensor_map import RANKS

RANK = 5
SHARED = 16384
SOURCE = Path(__file__).with_name("box_library.cpp")
Bytes = npt.NDArray[np.uint8]


class Box(ctypes.Structure):
    """``Box`` of boxes.h."""

    _fields_ = (
        ("base", ctypes.c_void_p),
        ("rank", ctypes.c_uint32),
        ("swizzle", ctypes.c_uint32),
        ("sizes", ctypes.c_uint64 * RANK),
        ("strides", ctypes.c_uint64 * RANK),
        ("sides", ctypes.c_uint32 * RANK),
        ("at", ctypes.c_int32 * RANK),
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    path = tmp_path_factory.mktemp("boxes") / "boxes.so"
    include = f"-I{resources.files('gemmgen.sim')}"
    flags = ("-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")
    subprocess.run(["g++", *flags, include, str(SOURCE), "-o", str(path)], check=True)
    found = ctypes.CDLL(str(path))
    assert found.box_size() == ctypes.sizeof(Box)
    return found


class Drawn:
    """A random box of a random tensor; ``tensor`` and ``sides`` are in NumPy's order."""

    def __init__(self, seed: int, rank: int, item: int):
        random = np.random.default_rng((seed, rank, item))
        sizes = random.integers(1, 12, rank)
        row = 16 // item  # elements of 16 bytes
        sides = random.integers(1, 7, rank)
        sides[-1] = row * random.integers(1, 4)
        self.at = random.integers(-8, 12, rank)
        pitch = -(-int(sizes[-1]) // row) * row + row * int(random.integers(0, 3))
        shape = (*(int(size) + int(random.integers(0, 3)) for size in sizes[:-1]), pitch)
        self.memory: Bytes = random.integers(0, 256, (*shape, item), np.uint8)
        self.tensor = self.memory[tuple(slice(int(size)) for size in sizes)]
        self.sides, self.item = sides, item
        self.bytes = int(np.prod(sides)) * item

    def box(self, swizzle: int = 0) -> Box:
        sizes, strides = self.tensor.shape[:-1], self.tensor.strides[:-1]
        base = self.memory.ctypes.data
        columns = zip(*((*part[::-1], *[0] * RANK) for part in (sizes, strides)), strict=False)
        made = Box(base, len(sizes), swizzle)
        for i, (size, stride) in enumerate(list(columns)[: len(sizes)]):
            made.sizes[i], made.strides[i] = size, stride
            made.sides[i], made.at[i] = int(self.sides[-1 - i]), int(self.at[-1 - i])
        return made

    def inside(self) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """The elements that tensor and box have in common: of the tensor, of the box."""
        lows = [max(0, int(at)) for at in self.at]
        ends = (at + side for at, side in zip(self.at, self.sides, strict=True))
        highs = [int(min(end, n)) for end, n in zip(ends, self.tensor.shape, strict=False)]
        both = [(low, max(low, high)) for low, high in zip(lows, highs, strict=True)]
        of_box = [slice(a - int(at), b - int(at)) for (a, b), at in zip(both, self.at, strict=True)]
        return tuple(slice(a, b) for a, b in both), tuple(of_box)

    def values(self) -> Bytes:
        """The box, with zeros outside the tensor."""
        found = np.zeros((*self.sides, self.item), np.uint8)
        of_tensor, of_box = self.inside()
        if all(part.stop > part.start for part in of_tensor):
            found[of_box] = self.tensor[of_tensor]
        return found


def pointer(array: Bytes) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


RANKS_AND_ITEMS = [(rank, item) for rank in RANKS for item in (1, 2, 4, 8)]


@pytest.mark.parametrize(("rank", "item"), RANKS_AND_ITEMS)
def test_a_load_is_a_slice_with_zeros_outside(library: ctypes.CDLL, rank: int, item: int) -> None:
    for seed in range(60):
        drawn = Drawn(seed, rank, item)
        box = drawn.box()
        assert library.bytes_of_box(ctypes.byref(box)) == drawn.bytes
        shared = np.full(max(SHARED, drawn.bytes + 128), 0xEE, np.uint8)
        library.load(ctypes.byref(box), pointer(shared), 128)
        assert (shared[128 : 128 + drawn.bytes] == drawn.values().reshape(-1)).all(), seed
        assert (shared[:128] == 0xEE).all() and (shared[128 + drawn.bytes :] == 0xEE).all()


@pytest.mark.parametrize(("rank", "item"), RANKS_AND_ITEMS)
def test_a_store_ends_with_a_unit_of_each_row(library: ctypes.CDLL, rank: int, item: int) -> None:
    """What is after a row of the tensor in its last 16 bytes becomes zeros, and no more."""
    for seed in range(60):
        drawn = Drawn(seed, rank, item)
        unit = 16 // item
        drawn.at[-1] -= drawn.at[-1] % unit
        box = drawn.box()
        random = np.random.default_rng(seed)
        shared = random.integers(0, 256, max(SHARED, drawn.bytes + 256), np.uint8)
        want = drawn.memory.copy()
        of_tensor, of_box = drawn.inside()
        if all(part.stop > part.start for part in of_tensor):
            boxed = shared[256 : 256 + drawn.bytes].reshape(*drawn.sides, item)
            want[of_tensor] = boxed[of_box]
            *outer, inner = of_tensor
            columns = drawn.tensor.shape[-2]
            if int(drawn.at[-1] + drawn.sides[-1]) > columns:
                assert inner.stop == columns
                want[(*outer, slice(columns, -(-columns // unit) * unit))] = 0
        library.store(ctypes.byref(box), pointer(shared), 256)
        assert (drawn.memory == want).all(), seed


@pytest.mark.parametrize(("swizzle", "span"), [(1, 32), (2, 64), (3, 128)])
def test_swizzled_chunks_change_places_within_a_row(
    library: ctypes.CDLL, swizzle: int, span: int
) -> None:
    """Chunk c of row r of the pattern lies at chunk c ^ (r % chunks), rows being 128 bytes."""
    rows, columns = 16, span // 4
    tensor = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
    box = Box(tensor.ctypes.data, 2, swizzle)
    for i, (size, stride) in enumerate(((columns, 4), (rows, span))):
        box.sizes[i], box.strides[i], box.sides[i] = size, stride, size
    shared = np.zeros(rows * span + 1024, np.uint8)
    library.load(ctypes.byref(box), pointer(shared), 1024)
    chunks = shared[1024:].view(np.float32).reshape(-1, 8, 4)  # lines of 128 bytes
    whole = tensor.reshape(-1, 8, 4)
    for line in range(len(whole)):
        for chunk in range(8):
            moved = chunk ^ (line % (span // 16))
            assert (chunks[line, moved] == whole[line, chunk]).all()
    back = np.zeros_like(tensor)
    box.base = back.ctypes.data
    library.store(ctypes.byref(box), pointer(shared), 1024)
    assert (back == tensor).all()
