"""Launches of kernels that come before a kernel: what each launch gets, and what it costs."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import pytest

from gemmgen.gpu import pre_pass_launches
from gemmgen.gpu.driver import INVALID_CONTEXT, Prepared
from gemmgen.ir.interface import Interface, PrePass
from gemmgen.ir.param import Param

Seen = tuple[int, int, tuple[int, ...]]
"""The blocks of a launch, its stream and its arguments."""
OWN = Interface(
    "gemm_split",
    (
        Param("rows", "extent"),
        Param("columns", "extent"),
        Param("x", "tensor", ("r", "c")),
        Param("ldx", "ld"),
        Param("planes", "tensor", ("p", "r", "c"), written=True, dtype="bf16"),
    ),
    (256, 1),
    (("rows", 1), ("columns", 1024)),
    (),
    0,
    0,
    (("x", "ldx"),),
)
LAUNCH = PrePass(OWN, ("M", "K", "A", "lda", "A_parts"))
NUMBERS = (ctypes.c_int, ctypes.c_int, ctypes.c_uint64, ctypes.c_int, ctypes.c_uint64)


class NoContext(RuntimeError):
    status = INVALID_CONTEXT


class Driver:
    """A driver that copies the arguments of launches, in whose thread no context may be current."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.adopted, self.is_ready = 0, True

    def launchKernel(self, function: int, blocks: int, *rest: int) -> None:
        if not self.is_ready:
            raise NoContext
        *shape, stream, pointers, extra = rest
        assert function == 42 and extra == 0
        assert shape == [1, 1, 256, 1, 1, 0]
        table = ctypes.cast(pointers, ctypes.POINTER(ctypes.c_void_p))
        given = (ctypes.cast(table[at], ctypes.POINTER(kind))[0] for at, kind in enumerate(NUMBERS))
        self.seen.append((blocks, stream, tuple(given)))

    def adopt_context(self, failure: RuntimeError) -> None:
        assert isinstance(failure, NoContext)
        self.adopted, self.is_ready = self.adopted + 1, True


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    made = Driver()
    cuda = SimpleNamespace(cuda=SimpleNamespace(driver=made))
    monkeypatch.setattr(pre_pass_launches, "cupy", lambda: cuda)
    return made


def front(driver: Driver) -> pre_pass_launches._PrePass:
    functions = {"gemm_split": SimpleNamespace(ptr=42)}
    loaded = SimpleNamespace(pre_passes=functions, adopt_context=driver.adopt_context)
    return pre_pass_launches._PrePass(loaded, LAUNCH, 5, (7, 9, 1, 12, 3))  # type: ignore[arg-type]


def counted(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The memories that are made from here on."""
    made: list[object] = []
    plain = pre_pass_launches._Arguments.__init__

    def noted(self: pre_pass_launches._Arguments, layout: pre_pass_launches._Layout) -> None:
        made.append(self)
        plain(self, layout)

    monkeypatch.setattr(pre_pass_launches._Arguments, "__init__", noted)
    return made


def test_each_call_has_its_addresses_and_uses_the_memory_again(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, made = front(driver), counted(monkeypatch)
    for stream, source in ((3, 0x1000), (4, 0x2000), (3, 0x3000)):
        one.start(stream, (0, source, 0, source + 8))
    assert driver.seen == [
        (5, stream, (7, 9, source, 12, source + 8))
        for stream, source in ((3, 0x1000), (4, 0x2000), (3, 0x3000))
    ]
    assert len(made) == 1


def test_a_prepared_launch_packs_nothing_when_it_starts(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    fronts = tuple(front(driver).prepared((0, at, 0, at + 8)) for at in (16, 32))
    last = front(driver).prepared((0, 64, 0, 72))
    launch: Prepared = pre_pass_launches._InOrder(last, fronts)
    made = counted(monkeypatch)
    for stream in (1, 2):
        launch.start(stream)
    assert made == []
    assert driver.seen == [
        (5, stream, (7, 9, at, 12, at + 8)) for stream in (1, 2) for at in (16, 32, 64)
    ]


def test_the_first_launch_of_a_thread_adopts_the_context(driver: Driver) -> None:
    one = front(driver)
    prepared = one.prepared((0, 16, 0, 24))
    for start in (lambda: one.start(1, (0, 16, 0, 24)), lambda: prepared.start(1)):
        driver.is_ready = False
        start()
    assert driver.adopted == 2 and len(driver.seen) == 2


def test_blocks_cover_the_rows_of_a_matrix_and_there_are_none_without_elements() -> None:
    for rows, columns, blocks in ((3, 1024, 3), (3, 1025, 6), (0, 5, 0), (5, 0, 0)):
        assert LAUNCH.blocks({"M": rows, "K": columns, "A": 1}) == blocks
