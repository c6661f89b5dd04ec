"""The launcher with a stub of CuPy: the driver's arguments, cached plans, and refusals."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from gemmgen.base.errors import CallError

from .bench import SPLIT, TILED, WIDE, Bench
from .stub import ndarray


def integers(*shape: int) -> ndarray:
    draw = np.random.default_rng(sum(shape))
    return ndarray(of=draw.integers(-4, 5, shape).astype(np.float32))


def same(found: object, wanted: np.ndarray) -> None:
    assert isinstance(found, ndarray)
    np.testing.assert_array_equal(found.host, wanted)


def test_each_argument_reaches_its_parameter(bench: Bench) -> None:
    kernel, big = bench.kernel, integers(40, 64)
    a, b, c = big[:33, :20], integers(20, 17), integers(33, 17)
    want = 2 * (a.host @ b.host) - 3 * c.host
    for _ in range(2):  # as a new kind of call, and as a known one
        mine = ndarray(of=c.host.copy())
        assert kernel(a, b, mine, alpha=2, beta=np.array(-3.0)) is mine
        same(mine, want)
    stream, blocks, found = bench.stub.launches[-1]
    assert (stream, blocks) == (7, 3 * 2)
    assert {n: found[n] for n in ("M", "N", "K", "lda", "ldb", "ldc")} == {
        **{"M": 33, "N": 17, "K": 20},
        **{"lda": 64, "ldb": 17, "ldc": 17},
    }
    bench.stub.stream = 9
    same(kernel(A=a, B=b), a.host @ b.host)
    assert bench.stub.launches[-1][0] == 9


@pytest.mark.parametrize("bench", ["dtype A=i8 B=i8 C=i32\n" + TILED], indirect=True)
def test_scalars_that_are_left_out_have_the_type_that_the_kernel_takes(bench: Bench) -> None:
    a, b = (ndarray(of=integers(*shape).host.astype(np.int8)) for shape in ((9, 8), (8, 7)))
    want = a.host.astype(np.int32) @ b.host
    for _ in range(2):
        same(bench.kernel(a, b), want)
    c = ndarray((9, 7), "int32")
    bench.kernel.prepare(a, b, c)()
    same(c, want)
    same(bench.kernel(a, b, c, alpha=2, beta=-1), want)


def test_a_known_call_is_distinguished_from_others_by_all_that_matters(bench: Bench) -> None:
    kernel = bench.kernel
    a, b, c = integers(16, 16), integers(16, 16), integers(16, 16)
    for _ in range(2):
        same(kernel(a, b, c), a.host @ b.host)
        same(kernel(a, b), a.host @ b.host)
        with pytest.raises(CallError, match="A is not contiguous along k"):
            kernel(ndarray(of=a.host.T), b, c)
        with pytest.raises(CallError, match="A is float64"):
            kernel(ndarray(of=a.host.astype(float)), b, c)
        with pytest.raises(CallError, match=r"B has shape .*, so K = 16"):
            kernel(a[:, :15], b, c)
        with pytest.raises(CallError, match="C overlaps B"):
            kernel(a, b, b)
        with pytest.raises(CallError, match="C overlaps A"):
            kernel(a, b, a)
        with pytest.raises(CallError, match="C is missing: the kernel reads it"):
            kernel(a, b, beta=1)
        joined = integers(16, 32)
        same(kernel(joined[:, :16], b, joined[:, 16:]), joined.host[:, :16] @ b.host)
    bench.stub.gpu = 1
    with pytest.raises(CallError, match="loaded on GPU 0, which isn't current"):
        kernel(a, b, c)


@pytest.mark.parametrize("bench", [WIDE], indirect=True)
def test_addresses_are_checked_at_each_call(bench: Bench) -> None:
    kernel = bench.kernel
    memory = ndarray(of=np.zeros(4 * 64 + 8, np.float32))
    skip = -(memory.data.ptr // 4) % 4
    a, b = integers(4, 8), integers(8, 64)

    def at(first: int) -> ndarray:
        part = memory.host[skip + first :][: 4 * 64]
        return ndarray(of=part.reshape(4, 64))

    same(kernel(a, b, at(0)), a.host @ b.host)
    with pytest.raises(CallError, match="C begins 4 bytes past a multiple of 16"):
        kernel(a, b, at(1))
    same(kernel(a, b, at(4)), a.host @ b.host)


@pytest.mark.parametrize("bench", [WIDE], indirect=True)
def test_a_kernel_takes_the_output_that_it_allocates(bench: Bench) -> None:
    a, b = integers(33, 20), integers(20, 45)
    for _ in range(2):
        found = bench.kernel(a, b)
        same(found, a.host @ b.host)
        assert found.strides == (48 * 4, 4)
    with pytest.raises(CallError, match="ldc = 45, and the kernel needs ldc % 4 == 0: pad"):
        bench.kernel(a, b, integers(33, 45))


def test_the_oldest_of_many_plans_goes_first(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gemmgen.gpu.planner._PLANS", 3)
    b, made = integers(5, 6), []
    planner = bench.kernel._planner
    monkeypatch.setattr(planner, "plan", _counted(planner.plan, made))
    for m in (1, 2, 3, 4, 3, 2, 1):
        a = integers(m, 5)
        same(bench.kernel(a, b), a.host @ b.host)
    assert made == [1, 2, 3, 4, 1]


def _counted(plan, made: list[int]):
    def counted(library, views):
        made.append(views["A"].shape[0])
        return plan(library, views)

    return counted


def test_an_empty_output_launches_nothing_and_an_empty_sum_does(bench: Bench) -> None:
    assert bench.kernel(integers(0, 5), integers(5, 7)).shape == (0, 7)
    bench.kernel.prepare(integers(0, 5), integers(5, 7))()
    assert not bench.stub.launches
    c = integers(3, 7)
    want = 2 * c.host
    same(bench.kernel(integers(3, 0), integers(0, 7), c, beta=2.0), want)


def test_alpha_zero_asks_for_no_terms(bench: Bench) -> None:
    a, b, c = integers(3, 5), integers(5, 7), integers(3, 7)
    a.host[:] = np.nan
    want = 2 * c.host
    same(bench.kernel(a, b, c, alpha=0, beta=2), want)
    assert bench.stub.launches[-1][2]["K"] == 0


def test_a_prepared_launch_keeps_its_arrays_and_joins_the_stream_of_the_moment(
    bench: Bench,
) -> None:
    a, b = integers(33, 20), integers(20, 45)
    want = a.host @ b.host
    launch = bench.kernel.prepare(a, b, alpha=2)
    del a, b
    bench.kernel(integers(3, 5), integers(5, 7))
    assert len(bench.stub.launches) == 1
    bench.stub.stream = 11
    launch()
    same(launch.output, 2 * want)
    assert bench.stub.launches[-1][0] == 11 and launch.extents["N"] == 45


def test_a_prepared_launch_is_refused_while_another_gpu_is_current(bench: Bench) -> None:
    launch = bench.kernel.prepare(integers(33, 20), integers(20, 45))
    bench.stub.gpu = 1
    with pytest.raises(CallError, match=r"loaded on GPU 0, .* within cupy.cuda.Device\(0\)"):
        launch()
    assert not bench.stub.launches
    bench.stub.gpu = 0
    launch()
    assert len(bench.stub.launches) == 1


def test_a_thread_without_a_context_gets_the_gpus(bench: Bench) -> None:
    a, b, c = integers(9, 8), integers(8, 7), integers(9, 7)
    thread = threading.Thread(target=bench.kernel, args=(a, b, c))
    thread.start()
    thread.join()
    same(c, a.host @ b.host)


def test_threads_share_a_kernel(bench: Bench) -> None:
    wrong: list[int] = []

    def work(at: int) -> None:
        a, b = integers(9 + at % 2, 8), integers(8, 7)
        for _ in range(100):
            if not np.array_equal(bench.kernel(a, b, alpha=at).host, at * (a.host @ b.host)):
                wrong.append(at)

    threads = [threading.Thread(target=work, args=(at,)) for at in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("bench", [SPLIT], indirect=True)
def test_scratch_is_kept_for_each_stream_and_is_the_graphs_within_a_capture(bench: Bench) -> None:
    stub, a, b = bench.stub, integers(20, 40), integers(40, 17)

    def used() -> float:
        same(bench.kernel(a, b), a.host @ b.host)
        return stub.launches[-1][2]["workspace"]

    first = used()
    assert used() == first
    stub.stream = 8
    assert used() != first
    stub.capturing = True
    assert used() not in (first, None)
    counters, workspace = "memset", "malloc"
    kinds = [kind for kind, _ in stub.graph if kind != "launch"]
    assert kinds.count(workspace) == kinds.count("free") == 2 and counters in kinds
    assert [kind for kind, _ in stub.graph][-3:] == ["launch", "free", "free"]
    with pytest.raises(CallError, match="arrived is missing: pass workspace and arrived, or none"):
        bench.kernel(a, b, workspace=integers(4096))


def test_an_input_of_other_dimensions_is_refused_without_an_output_too(bench: Bench) -> None:
    for shape in ((), (4,), (2, 3, 4)):
        with pytest.raises(CallError, match=r"A has shape .*, of 2 dimensions"):
            bench.kernel(ndarray(of=np.ones(shape, np.float32)), integers(4, 5))
    for m in (2**31, 2**40):
        huge = np.broadcast_to(np.float32(1), (m, 5))
        with pytest.raises(CallError, match=r"overlap|more than an int holds"):
            bench.kernel(ndarray(of=huge), integers(5, 6))


def test_without_cupys_private_name_each_call_is_like_a_first_one(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(ndarray, "_c_contiguous")
    a, b = integers(9, 8), integers(8, 7)
    for _ in range(2):
        same(bench.kernel(a, b), a.host @ b.host)
