"""The spec of a library: what it says, and each mistake with its key."""

from __future__ import annotations

import pytest

from gemmgen.base.errors import GemmgenError, UsageError
from gemmgen.library.chosen_kernels import kernels_of
from gemmgen.library.library_spec import ShapeRange, parse_spec

from .specs import SMALL


def test_a_spec_is_read() -> None:
    found = parse_spec(SMALL, "mini.toml")
    linear, single = found.products
    assert (found.name, found.gpu.name, linear.name, single.dtype) == (
        "mini",
        "H200",
        "linear",
        "f32",
    )
    assert linear.shapes == ((16, 256, 512), (300, 200, 5000)) and single.epilogue is None


def test_a_range_has_two_ends() -> None:
    found = parse_spec(SMALL.replace("512x512x512", "1..4096x512x16..64"), "mini.toml").products[1]
    assert found.shapes == () and found.ranges == (ShapeRange((1, 512, 16), (4096, 512, 64)),)


MISTAKES = {
    "a range that falls": (
        SMALL.replace("512x512x512", "9..8x512x512"),
        "single.shapes[0]: a range begins with its least extent: write 8..9",
    ),
    "a range from 0": (SMALL.replace("512x512x512", "0..8x512x512"), "extents are at least 1"),
    "half a range": (SMALL.replace("512x512x512", "1..x512x512"), "single.shapes[0]: a shape is"),
    "no name": (SMALL.replace('name = "mini"', ""), "name is missing"),
    "a name that C has not": (SMALL.replace("mini", "9lives"), "becomes part of C's names"),
    "a name of two _": (SMALL.replace("mini", "a__b"), "becomes part of C's names"),
    "a word of Python": (SMALL.replace("mini", "import"), "Python has a word import of its own"),
    "a type of the package": (SMALL.replace("single", "Any"), "product.Any: Python has a word Any"),
    "no version": (f'version = "new"\n{SMALL}', "version: 'new' is not a version; write 1.0"),
    "a target of CMake": (SMALL.replace("mini", "install"), "a target of CMake's own"),
    "a name that is no text": (SMALL.replace('"mini"', "3"), "name is 3; it is a text"),
    "the self-test's file": (SMALL.replace("single", "selftest"), "is the self-test"),
    "no TOML": ("name = ", "not TOML"),
    "another key": (f"gpus = 1\n{SMALL}", "gpus is unknown; did you mean gpu?"),
    "another key of a product": (SMALL.replace("dtype", "dtypes"), "product.linear.dtypes is unk"),
    "no product": ('name = "a"', "add a table [product.NAME]"),
    "a product that is no table": ('name = "a"\nproduct = { x = 1 }', "write [product.x]"),
    "an unknown GPU": (f'gpu = "H300"\n{SMALL}', "H300"),
    "no gemm": ('name = "a"\n[product.x]\nshapes = ["1x1x1"]', "product.x.gemm is missing"),
    "no shapes": (
        'name = "a"\n[product.x]\ngemm = "C[m, n] = A[m, k] * B[k, n]"\nshapes = []',
        "product.x.shapes lists shapes",
    ),
    "a shape that is none": (SMALL.replace("512x512x512", "512x"), "product.single.shapes[0]: "),
    "a shape that is a number": (SMALL.replace('"512x512x512"', "512"), "must be a text"),
    "an extent of 0": (SMALL.replace("512x512x512", "512x0x512"), "extents are at least 1"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_with_its_key(name: str) -> None:
    text, message = MISTAKES[name]
    with pytest.raises(UsageError) as refused:
        parse_spec(text, "mini.toml")
    assert str(refused.value).startswith("mini.toml: ") and message in str(refused.value)


@pytest.mark.by_default("acc + bias?n?-acc + -epilogue", "*linear_1*")
@pytest.mark.parametrize(
    ("old", "new", "message"),
    (
        ("B[k, n]", "B[k, n", "gemm"),
        ("acc + bias[n]", "acc + ", "epilogue"),
        ('dtype = "bf16"', 'dtype = "bf17"', "bf17"),
        ("product.single", "product.linear_1", "mini_linear_1 is a name of product.linear, too"),
        ("product.single", "product.linear_workspace", "is a name of product.linear, too"),
        ("A[m, k] * B[k, n]", "tried[m, k] * B[k, n]", "a variable tried of its own; rename it"),
        ("acc + bias[n]", "acc + K_of_B[n]", "can't have a variable K_of_B; rename it"),
        ("acc + bias[n]", "acc + lambda[n]", "can't have a variable lambda; rename it"),
        ("product.single", "product.error_text", "is a name of a helper of the Python package"),
        ("product.single", "product.linear_packed", "is a name of product.linear, too; rename"),
    ),
)
def test_a_mistake_of_the_language_is_reported(old: str, new: str, message: str) -> None:
    with pytest.raises(GemmgenError) as refused:
        list(kernels_of(parse_spec(SMALL.replace(old, new), "mini.toml")))
    assert message in str(refused.value)
