"""Every call that can't be launched is refused in one sentence, with no GPU."""

import dataclasses

import pytest
from gpu import kernels

from gemmgen.base.errors import CallError
from gemmgen.calling.arguments import View, contiguous_strides, geometry, output_layout
from gemmgen.calling.overlaps import check_addresses
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param
from gemmgen.ir.requirement import AtMost, Equal, MultipleOf

PLAIN = kernels.interface((32, 8), 8, 32)
WIDE = kernels.interface((16, 16), 128, 128, width=4)


def view(pointer: int, *shape: int, strides: tuple[int, ...] | None = None) -> View:
    return View(pointer, shape, contiguous_strides(shape) if strides is None else strides)


def call(interface: Interface, **changed: View) -> dict[str, View]:
    views = {"A": view(0, 8, 16), "B": view(4096, 16, 32), "C": view(16384, 8, 32)}
    return {**views, **changed}


def address(views: dict[str, View]) -> dict[str, int]:
    return {name: found.pointer for name, found in views.items()}


def test_extents_come_from_shapes_and_leading_dimensions_from_strides() -> None:
    found = geometry(PLAIN, call(PLAIN, A=view(0, 8, 16, strides=(20, 1))))
    assert found.values == {"M": 8, "N": 32, "K": 16, "lda": 20, "ldb": 32, "ldc": 32}
    assert found.grid == 1


def test_transposed_storage_gives_the_same_extents() -> None:
    interface = kernels.interface((32, 8), 8, 32, orders=("km", "nk", "nm"))
    views = {"A": view(0, 16, 8), "B": view(4096, 32, 16), "C": view(16384, 32, 8)}
    found = geometry(interface, views)
    assert found.values == {"M": 8, "N": 32, "K": 16, "lda": 8, "ldb": 16, "ldc": 8}


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"A": View(0, (8, 16), (16, 1), "float64")}, "A is float64; the kernel takes float32"),
        ({"A": view(0, 8, 16, 1)}, r"A has shape \(8, 16, 1\); the kernel takes A\[m, k\]"),
        (
            {"B": view(4096, 17, 32)},
            r"B has shape \(17, 32\), so K = 17, but A has shape \(8, 16\)",
        ),
        ({"C": view(16384, 9, 32)}, r"C has shape \(9, 32\), so M = 9"),
        (
            {"A": view(0, 8, 16, strides=(1, 8))},
            "A is not contiguous along k: its stride there is 8",
        ),
        (
            {"A": view(0, 8, 16, strides=(15, 1))},
            "A has rows of 16 elements that begin 15 elements",
        ),
        ({"A": view(0, 8, 16, strides=(0, 1))}, "begin 0 elements apart"),
        ({"B": view(4096, 16, 32, strides=(-32, 1))}, "begin -32 elements apart"),
        ({"B": view(4096, 16, 32, strides=(2**31, 1))}, "ldb = 2147483648 is more than an int"),
    ],
)
def test_refuses_what_a_kernel_cannot_follow(changed: dict[str, View], says: str) -> None:
    with pytest.raises(CallError, match=says) as caught:
        geometry(PLAIN, call(PLAIN, **changed))
    assert "\n" not in str(caught.value)


def test_refuses_extents_beyond_an_int() -> None:
    huge = 2**31
    views = {"A": view(0, huge, 1), "B": view(0, 1, 1), "C": view(0, huge, 1)}
    with pytest.raises(CallError, match="M = 2147483648 is more than an int holds"):
        geometry(PLAIN, views)


def test_refuses_more_blocks_than_a_launch_has() -> None:
    big = 2**31 - 1
    interface = kernels.interface((1, 1), 1, 1)
    views = {"A": view(0, big, 1), "B": view(0, 1, big), "C": view(0, big, big)}
    with pytest.raises(CallError, match="at most 2147483647 blocks"):
        geometry(interface, views)


def test_refuses_a_leading_dimension_that_wide_accesses_cannot_use() -> None:
    views = call(WIDE, A=view(0, 8, 16, strides=(18, 1)))
    with pytest.raises(
        CallError, match=r"lda = 18, and the kernel needs lda % 4 == 0: pad the rows"
    ):
        geometry(WIDE, views)


def test_refuses_a_pointer_that_wide_accesses_cannot_use() -> None:
    views = call(WIDE, B=view(4100, 16, 32))
    with pytest.raises(CallError, match="B begins 4 bytes past a multiple of 16"):
        check_addresses(geometry(WIDE, views), WIDE, address(views))


def test_a_single_row_suits_wide_accesses_whatever_its_length() -> None:
    views = {"A": view(0, 1, 6), "B": view(4096, 6, 32), "C": view(16384, 1, 32)}
    assert geometry(WIDE, views).values["lda"] == 16


@pytest.mark.parametrize(("m", "n", "k"), [(0, 32, 16), (8, 0, 16), (0, 0, 0)])
def test_an_empty_output_needs_no_block(m: int, n: int, k: int) -> None:
    views = {"A": view(0, m, k), "B": view(0, k, n), "C": view(0, m, n)}
    assert geometry(WIDE, views).grid == 0


def test_an_empty_sum_is_launched() -> None:
    views = {"A": view(0, 8, 0), "B": view(0, 0, 32), "C": view(0, 8, 32)}
    found = geometry(WIDE, views)
    assert (found.values["K"], found.grid) == (0, 1)
    check_addresses(found, WIDE, address(views))


@pytest.mark.parametrize("start", [0, 4, 508, 4096 + 2044, 16384 - 1020])
def test_refuses_an_output_that_overlaps_an_input(start: int) -> None:
    views = call(PLAIN, C=view(start, 8, 32))
    if start == 16384 - 1020:
        views["B"] = view(16384, 16, 32)
    with pytest.raises(CallError, match=r"C overlaps [AB] in memory"):
        check_addresses(geometry(PLAIN, views), PLAIN, address(views))


def test_columns_of_one_matrix_side_by_side_do_not_overlap() -> None:
    pitch = (64, 1)
    views = call(PLAIN, A=view(0, 8, 16, strides=pitch), C=view(64, 8, 32, strides=pitch))
    views["B"] = view(65536, 16, 32)
    check_addresses(geometry(PLAIN, views), PLAIN, address(views))
    views["C"] = view(60, 8, 32, strides=pitch)
    with pytest.raises(CallError, match="C overlaps A"):
        check_addresses(geometry(PLAIN, views), PLAIN, address(views))


def test_assumptions_of_the_schedule_are_checked() -> None:
    bounded = dataclasses.replace(PLAIN, requirements=(AtMost("M", 7), Equal("N", "K")))
    with pytest.raises(CallError, match="M = 8 is more than the 7"):
        geometry(bounded, call(bounded))
    equal = dataclasses.replace(PLAIN, requirements=(Equal("N", "K"),))
    with pytest.raises(CallError, match="N = 32 and K = 16, but the schedule assumes N == K"):
        geometry(equal, call(equal))


def test_an_assumed_leading_dimension_is_checked() -> None:
    pitch = (("A", "K"), ("B", "ldb"), ("C", "ldc"))
    assumed = dataclasses.replace(PLAIN, pitch=pitch, requirements=())
    assert "lda" not in geometry(assumed, call(assumed)).values
    with pytest.raises(CallError, match="A has a leading dimension of 20"):
        geometry(assumed, call(assumed, A=view(0, 8, 16, strides=(20, 1))))


BATCHED = kernels.batched()


def batches(**changed: View) -> dict[str, View]:
    views = {"X": view(0, 3, 8, 16), "Y": view(4096, 16, 32), "Z": view(16384, 3, 8, 32)}
    return {**views, **changed}


def test_strides_come_from_strides() -> None:
    found = geometry(BATCHED, batches())
    assert found.grid == 3
    assert found.values["size_b"] == 3
    assert (found.values["stride_X_b"], found.values["stride_Z_b"]) == (128, 256)
    for stride in (0, 1, 200, 2**40, -128):
        views = batches(X=view(0, 3, 8, 16, strides=(stride, 16, 1)))
        assert geometry(BATCHED, views).values["stride_X_b"] == stride


def test_heads_within_a_row_are_matrices_of_long_rows() -> None:
    views = batches(X=view(0, 3, 8, 16, strides=(16, 48, 1)))
    found = geometry(BATCHED, views).values
    assert (found["ldx"], found["stride_X_b"]) == (48, 16)


def test_one_matrix_has_any_stride_and_no_matrix_no_block() -> None:
    one = batches(X=view(0, 1, 8, 16, strides=(7, 16, 1)), Z=view(16384, 1, 8, 32))
    found = geometry(BATCHED, one)
    assert (found.values["stride_X_b"], found.grid) == (0, 1)
    none = batches(X=view(0, 0, 8, 16), Z=view(16384, 0, 8, 32))
    assert geometry(BATCHED, none).grid == 0


@pytest.mark.parametrize("strides", [(0, 32, 1), (32, 32, 1), (224, 32, 1), (31, 96, 1)])
def test_refuses_an_output_whose_matrices_overlap(strides: tuple[int, int, int]) -> None:
    with pytest.raises(CallError, match="two of its elements have one address"):
        geometry(BATCHED, batches(Z=view(16384, 3, 8, 32, strides=strides)))


def test_an_output_beside_an_input_in_one_row_does_not_overlap_it() -> None:
    """Queries, keys and the result in one buffer: every row has all three."""
    views = batches(
        X=view(0, 3, 8, 16, strides=(16, 144, 1)), Z=view(192, 3, 8, 32, strides=(32, 144, 1))
    )
    views["Y"] = view(65536, 16, 32)
    check_addresses(geometry(BATCHED, views), BATCHED, address(views))
    views["Z"] = view(188, 3, 8, 32, strides=(32, 144, 1))
    with pytest.raises(CallError, match="Z overlaps X"):
        check_addresses(geometry(BATCHED, views), BATCHED, address(views))


def test_a_reversed_input_is_followed_and_its_place_known() -> None:
    views = batches(X=view(1024, 3, 8, 16, strides=(-128, 16, 1)), Z=view(1536, 3, 8, 32))
    views["Y"] = view(65536, 16, 32)
    check_addresses(geometry(BATCHED, views), BATCHED, address(views))
    views["Z"] = view(0, 3, 8, 32)
    with pytest.raises(CallError, match="Z overlaps X"):
        check_addresses(geometry(BATCHED, views), BATCHED, address(views))


def test_a_stride_that_breaks_a_width_is_explained() -> None:
    wide = dataclasses.replace(BATCHED, requirements=(MultipleOf("stride_X_b", 4),))
    geometry(wide, batches())
    with pytest.raises(CallError, match=r"stride_X_b = 130, .* pad the matrices of X"):
        geometry(wide, batches(X=view(0, 3, 8, 16, strides=(130, 16, 1))))


def test_more_matrices_than_a_grid_dimension_has_blocks() -> None:
    count = 1 << 22
    views = batches(X=view(0, count, 8, 16), Z=view(1 << 40, count, 8, 32))
    assert geometry(BATCHED, views).grid == count
    shape = 1 << 20, 1 << 15, 32
    views = batches(X=view(0, *shape[:2], 16), Z=view(1 << 60, *shape))
    with pytest.raises(CallError, match="at most 2147483647 blocks"):
        geometry(BATCHED, views)


def test_an_absent_output_has_the_shape_that_the_inputs_give() -> None:
    output = Param("C", "tensor", ("n", "m"), written=True)
    assert output_layout(output, PLAIN, {"A": view(0, 8, 16), "B": view(0, 16, 32)})[0] == (32, 8)


@pytest.mark.parametrize("shape", [(), (8,), (8, 16, 1)])
def test_an_absent_output_needs_matrices_to_follow_from(shape: tuple[int, ...]) -> None:
    views = {"A": View(0, shape, tuple(1 for _ in shape)), "B": view(4096, 16, 32)}
    c = next(p for p in PLAIN.params if p.name == "C")
    with pytest.raises(CallError, match=r"A has shape .*; the kernel takes A\[m, k\], of 2"):
        output_layout(c, PLAIN, views)


def test_an_absent_output_of_more_rows_than_an_int_holds_is_not_made() -> None:
    views = {"A": view(0, 2**31, 16, strides=(16, 1)), "B": view(4096, 16, 32)}
    c = next(p for p in PLAIN.params if p.name == "C")
    with pytest.raises(CallError, match="M = 2147483648 is more than an int holds"):
        output_layout(c, PLAIN, views)


def test_an_absent_output_has_rows_that_wide_accesses_can_take() -> None:
    output = next(p for p in PLAIN.params if p.name == "C")
    wide = dataclasses.replace(PLAIN, requirements=(MultipleOf("ldc", 4), MultipleOf("ldc", 2)))
    views = {"A": view(0, 8, 16), "B": view(0, 16, 45)}
    assert output_layout(output, PLAIN, views) == ((8, 45), (45, 1))
    assert output_layout(output, wide, views) == ((8, 45), (48, 1))
