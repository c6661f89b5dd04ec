import dataclasses
import itertools
import time

import numpy as np
import pytest

from gemmgen.base.errors import CallError
from gemmgen.gpu.launch import Kernel

from . import kernels

cp = pytest.importorskip("cupy")
ORDERS = list(itertools.product(("mk", "km"), ("kn", "nk"), ("mn", "nm")))


def plain(name: str = "tiled") -> Kernel:
    return Kernel(kernels.text(name), kernels.interface(*kernels.PLAIN[name]))


def matrices(m: int, n: int, k: int, orders: tuple[str, str, str] = ("mk", "kn", "mn")) -> list:
    """A, B and C of small integers, stored as ``orders`` say."""
    size = {"m": m, "n": n, "k": k}
    draw = np.random.default_rng(m * n + k)
    host = [draw.integers(-4, 5, [size[i] for i in order]) for order in orders]
    return [cp.asarray(one.astype(np.float32)) for one in host]


@pytest.mark.parametrize("orders", ORDERS)
def test_every_storage_order_is_followed(orders: tuple[str, str, str]) -> None:
    kernel = Kernel(kernels.any_order(orders), kernels.interface((32, 8), 8, 32, orders=orders))
    a, b, c = matrices(37, 53, 29, orders)
    want = 2 * np.einsum(f"{orders[0]},{orders[1]}->{orders[2]}", a.get(), b.get()) - 3 * c.get()
    assert kernel(A=a, B=b, C=c, alpha=2, beta=-3) is c
    np.testing.assert_array_equal(c.get(), want)


def test_a_view_into_a_larger_matrix_is_used_in_place() -> None:
    a, b, _ = matrices(40, 24, 30)
    big = cp.full((50, 60), -1, "float32")
    plain()(A=a[3:20, 5:25], B=b[:20], C=big[7:24, 11:35])
    want = np.full((50, 60), -1, np.float32)
    want[7:24, 11:35] = a.get()[3:20, 5:25] @ b.get()[:20]
    np.testing.assert_array_equal(big.get(), want)


def test_an_absent_output_is_allocated() -> None:
    a, b, _ = matrices(33, 17, 5)
    found = plain()(A=a, B=b)
    assert isinstance(found, cp.ndarray)
    np.testing.assert_array_equal(found.get(), a.get() @ b.get())
    with pytest.raises(CallError, match="C is missing: the kernel reads it, unless beta is 0"):
        plain()(A=a, B=b, beta=1.0)


def test_beta_zero_reads_no_c() -> None:
    a, b, c = matrices(33, 17, 5)
    c.fill(np.nan)
    np.testing.assert_array_equal(plain()(A=a, B=b, C=c).get(), a.get() @ b.get())


def test_an_empty_sum_scales_c_and_an_empty_output_launches_nothing() -> None:
    a, b, c = matrices(33, 17, 0)
    want = 3 * c.get()
    np.testing.assert_array_equal(plain()(A=a, B=b, C=c, beta=3.0).get(), want)
    a, b, c = matrices(0, 17, 5)
    assert plain()(A=a, B=b, C=c) is c
    assert plain()(A=a, B=b).shape == (0, 17)


def test_alpha_may_be_infinite() -> None:
    a, b = cp.ones((3, 2), "float32"), cp.ones((2, 5), "float32")
    assert np.isinf(plain()(A=a, B=b, alpha=float("inf")).get()).all()


def test_the_launch_joins_cupys_current_stream() -> None:
    kernel, (a, b, c) = plain(), matrices(64, 64, 64)
    kernel(A=a, B=b, C=c)
    c.fill(-1)
    cp.cuda.Device().synchronize()
    with cp.cuda.Stream(non_blocking=True) as stream:
        stream.begin_capture()
        kernel(A=a, B=b, C=c)
        graph = stream.end_capture()
        assert (c.get() == -1).all()
        graph.launch()
        stream.synchronize()
    np.testing.assert_array_equal(c.get(), a.get() @ b.get())


def test_dynamic_shared_memory_beyond_48_kib_is_reserved() -> None:
    text = kernels.text("naive").replace(
        "float acc = 0.0f;",
        "extern __shared__ float kept[]; kept[24000 + threadIdx.x] = 0.0f; "
        "float acc = kept[24000 + threadIdx.x];",
    )
    interface = dataclasses.replace(
        kernels.interface(*kernels.PLAIN["naive"]), dynamic_shared=100 * 1024
    )
    a, b, _ = matrices(64, 64, 64)
    np.testing.assert_array_equal(Kernel(text, interface)(A=a, B=b).get(), a.get() @ b.get())


def test_a_wide_kernel_with_an_epilogue_takes_its_names() -> None:
    kernel = Kernel(kernels.text("vectorized"), kernels.relu_bias())
    a, b, _ = matrices(200, 132, 68)
    bias = cp.asarray(np.arange(132, dtype=np.float32) - 60)
    want = np.maximum(a.get() @ b.get() + bias.get(), 0)
    np.testing.assert_array_equal(kernel(A=a, B=b, bias=bias).get(), want)
    with pytest.raises(CallError, match="bias is missing"):
        kernel(A=a, B=b)
    with pytest.raises(CallError, match=r"lda = 67, and the kernel needs lda % 4 == 0"):
        kernel(A=a[:, :67].copy(), B=b[:67], bias=bias)
    padded = cp.empty((201, 68), "float32").ravel()[1 : 1 + 200 * 68].reshape(200, 68)
    with pytest.raises(CallError, match="A begins 4 bytes past a multiple of 16"):
        kernel(A=padded, B=b, bias=bias)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"A": np.ones((8, 16), np.float32)}, "A is a numpy.ndarray in host memory"),
        ({"A": [[1.0]]}, r"A is a builtins.list; the kernel takes a CuPy array or"),
        ({"D": None}, "there is no argument D: the kernel takes A, B, C, alpha, beta"),
        ({"B": None}, "B is missing"),
        ({"alpha": "2"}, "alpha is a str; the kernel takes a number"),
        ({"alpha": 1e39}, "alpha = 1e[+]39 is more than a float32 holds"),
    ],
)
def test_refuses_in_one_sentence(changed: dict[str, object], says: str) -> None:
    a, b, c = matrices(8, 32, 16)
    with pytest.raises(CallError, match=says) as caught:
        plain()(**{"A": a, "B": b, "C": c, **changed})
    assert "\n" not in str(caught.value)


def test_refuses_dtypes_transposes_and_aliases() -> None:
    a, b, c = matrices(16, 16, 16)
    with pytest.raises(CallError, match="A is float64"):
        plain()(A=a.astype("float64"), B=b, C=c)
    with pytest.raises(CallError, match="A is not contiguous along k"):
        plain()(A=a.T, B=b, C=c)
    with pytest.raises(CallError, match="C overlaps A"):
        plain()(A=a, B=b, C=a)
    with pytest.raises(CallError, match="begin 0 elements apart"):
        plain()(A=cp.broadcast_to(a[:1], (16, 16)), B=b, C=c)


def test_offsets_do_not_wrap_beyond_2_to_the_31_elements() -> None:
    pitch, m = 2**31 // 1000 + 123, 1100
    buffer = cp.empty((m * pitch,), "float32")
    a = buffer.reshape(m, pitch)[:, :7]
    a[...] = cp.asarray(np.random.default_rng(0).integers(-4, 5, (m, 7)).astype(np.float32))
    b = cp.ones((7, 3), "float32")
    np.testing.assert_array_equal(plain("naive")(A=a, B=b).get(), a.get() @ b.get())


@pytest.mark.timing
def test_a_call_costs_little_of_pythons_time() -> None:
    kernel, (a, b, c) = plain("naive"), matrices(8, 32, 16)
    for _ in range(200):
        kernel(A=a, B=b, C=c)
    cp.cuda.Device().synchronize()
    start = time.perf_counter()
    for _ in range(2000):
        kernel(A=a, B=b, C=c)
    each = (time.perf_counter() - start) / 2000 * 1e6
    cp.cuda.Device().synchronize()
    print(f"\na call takes {each:.1f} us of Python")
    assert each < 25  # 9 on an H200's host; a busy machine needs more
