"""The spec of a library: TOML, checked key by key.

name = "gpt2"
gpu = "H200"
version = "1.0"

[product.qkv]
gemm = "C[m, n] = A[m, k] * B[n, k]"
dtype = "bf16"
epilogue = "acc + bias[n]"
shapes = ["1x2304x768", "16..2048x2304x768"]
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from keyword import iskeyword
from typing import cast

from gemmgen.base.choices import value_shown
from gemmgen.base.errors import UsageError
from gemmgen.base.record import record
from gemmgen.explore.request import gemm_of
from gemmgen.gpu.gpu_names import gpu_named
from gemmgen.gpu.gpus import Gpu
from gemmgen.ir.launch_shape import Shape
from gemmgen.schedule.model import Gemm
from gemmgen.schedule.words import close
from gemmgen.schedule.written_shapes import resolve, written_shape

KEYS = ("name", "gpu", "version", "product")
PRODUCT_KEYS = ("gemm", "dtype", "epilogue", "shapes")
TARGETS = ("all", "clean", "edit_cache", "help", "install", "package", "test")
FILE = "selftest"
"""The name of a file that every library has."""
PART, MOST_LETTERS = re.compile(r"[A-Za-z](_?[A-Za-z0-9])*"), 40
"""A part of C's names: no _ at its ends, since parts are joined by one."""
VERSION = re.compile(r"[0-9]+(\.[0-9]+)*((a|b|rc)[0-9]+)?(\.post[0-9]+)?(\.dev[0-9]+)?")
"""A version of a Python package."""
TYPE = "Any"
"""A name that each Python package imports."""
RANGE = re.compile(r"([0-9]+)\.\.([0-9]+)")
"""Extents from one to another."""
MOST_SHAPES, MOST_PRODUCTS = 512, 64
"""Of a product, and of a library."""


@record
class ShapeRange:
    """Shapes from ``low`` to ``high``, both included, extent by extent."""

    low: Shape
    high: Shape


@record
class ProductSpec:
    """A product, with the shapes and the ranges of shapes that it is called with, in the order M,
    N, K and batches."""

    name: str
    gemm: str
    dtype: str
    epilogue: str | None
    shapes: tuple[Shape, ...]
    ranges: tuple[ShapeRange, ...] = ()


@record
class LibrarySpec:
    """A library for one GPU; ``version``: of its Python package."""

    name: str
    gpu: Gpu
    products: tuple[ProductSpec, ...]
    version: str = "0.1.0"


def parse_spec(text: str, file: str) -> LibrarySpec:
    """The spec in ``text``; raises ``UsageError`` with the file and the key of a mistake."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as wrong:
        raise UsageError(f"{file}: not TOML: {wrong}") from None
    try:
        return _spec(found)
    except UsageError as wrong:
        raise UsageError(f"{file}: {wrong}") from None


def _spec(found: Mapping[str, object]) -> LibrarySpec:
    _check_keys(found, KEYS, "")
    name = _name(_text(found, "name", ""), "name")
    if name in TARGETS:
        raise UsageError(f"name: {name} is a target of CMake's own; take another one")
    gpu = gpu_named(_text(found, "gpu", "", "H200"))
    products = found.get("product")
    if not isinstance(products, dict) or not products:
        raise UsageError("a product is missing: add a table [product.NAME] with gemm and shapes")
    tables = cast(dict[str, object], products)
    if len(tables) > MOST_PRODUCTS:
        raise UsageError(f"{len(tables)} products; a library has at most {MOST_PRODUCTS}")
    own = tuple(_product(key, table) for key, table in tables.items())
    version = _text(found, "version", "", "0.1.0")
    if not VERSION.fullmatch(version):
        raise UsageError(f"version: {value_shown(version)} is not a version; write 1.0 or 1.2.3rc1")
    return LibrarySpec(name, gpu, own, version)


def _product(key: str, table: object) -> ProductSpec:
    where = f"product.{key}"
    if _name(key, where) == FILE:
        raise UsageError(f"{where}: {FILE}.cu is the self-test; take another name")
    if not isinstance(table, dict):
        raise UsageError(f"{where} must be a table: write [{where}]")
    given = cast(dict[str, object], table)
    _check_keys(given, PRODUCT_KEYS, f"{where}.")
    gemm = _text(given, "gemm", f"{where}.")
    line = gemm_of(gemm)
    listed = given.get("shapes")
    texts = cast(list[object], listed) if isinstance(listed, list) else []
    if not texts:
        raise UsageError(f'{where}.shapes lists shapes: shapes = ["2048x2304x768"]')
    if len(texts) > MOST_SHAPES:
        raise UsageError(f"{where}.shapes has {len(texts)}; a product has at most {MOST_SHAPES}")
    found: list[Shape | ShapeRange] = []
    for at, text in enumerate(texts):
        try:
            if not isinstance(text, str):
                raise UsageError(f'{value_shown(text)} must be a text "MxNxK"')
            found.append(_shapes(text, line))
        except UsageError as wrong:
            raise UsageError(f"{where}.shapes[{at}]: {wrong}") from None
    shapes = tuple(dict.fromkeys(x for x in found if not isinstance(x, ShapeRange)))
    ranges = tuple(dict.fromkeys(x for x in found if isinstance(x, ShapeRange)))
    epilogue = _text(given, "epilogue", f"{where}.") if "epilogue" in given else None
    dtype = _text(given, "dtype", f"{where}.", "f32")
    return ProductSpec(key, gemm, dtype, epilogue, shapes, ranges)


def _shapes(text: str, line: Gemm) -> Shape | ShapeRange:
    """A shape, or a range of them: ``1..4096x2304x768``."""
    low, high = (resolve(written_shape(RANGE.sub(f"\\{end}", text)), line, "it") for end in (1, 2))
    if min(low) < 1:
        raise UsageError("extents are at least 1")
    for least, most in zip(low, high, strict=True):
        if least > most:
            raise UsageError(f"a range begins with its least extent: write {most}..{least}")
    return ShapeRange(low, high) if RANGE.search(text) else low


def _check_keys(given: Mapping[str, object], known: tuple[str, ...], where: str) -> None:
    for key in given:
        if key not in known:
            near = close(key, known)
            hint = f"did you mean {near}?" if near else f"there are {', '.join(known)}"
            raise UsageError(f"{where}{value_shown(key)[1:-1]} is unknown; {hint}")


def _text(given: Mapping[str, object], key: str, where: str, usual: str | None = None) -> str:
    value = given.get(key, usual)
    if value is None:
        raise UsageError(f"{where}{key} is missing")
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"{where}{key} is {value_shown(value)}; it is a text")
    return value


def _name(text: str, where: str) -> str:
    """A part of C's names."""
    if not PART.fullmatch(text) or len(text) > MOST_LETTERS:
        raise UsageError(
            f"{where}: {value_shown(text)} becomes part of C's names: up to {MOST_LETTERS} "
            "letters, digits and single _, a letter first"
        )
    if iskeyword(text) or text == TYPE:
        raise UsageError(f"{where}: Python has a word {text} of its own; take another name")
    return text
