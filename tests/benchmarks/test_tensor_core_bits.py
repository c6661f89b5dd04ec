"""``benchmarks/tensor_core_bits.py``: its model is exact, and its search finds a rule again."""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from math import floor
from pathlib import Path

import numpy as np
import pytest

from gemmgen.gpu.compiler import available, compile_text
from gemmgen.ir.tensor_core_rules import RULES as TABLE
from gemmgen.ir.tensor_core_rules import SumRule
from gemmgen.numerics.tensor_core_additions import TensorCoreAdditions

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import tensor_core_bits  # noqa: E402
from tensor_core_batches import CATEGORIES, Tiles, batch  # noqa: E402
from tensor_core_kernels import INSTRUCTIONS, Instruction, text  # noqa: E402
from tensor_core_model import (  # noqa: E402
    FORMATS,
    Candidate,
    Operands,
    Rule,
    Sequential,
    decode,
    evaluate,
    steps_of,
)
from tensor_core_search import equal, model_of, search, single, undecided  # noqa: E402

NAMES = {each.name: each for each in INSTRUCTIONS}
HALVES = "mma.m16n8k16.f32.f16.f16"
DOUBLES = "mma.m8n8k4.f64.f64.f64"
SMALL = "mma.m16n8k4.f32.tf32.tf32"
RULES: dict[str, Candidate] = {
    HALVES: Rule(16),
    "mma.m16n8k16.f16.f16.f16": Rule(8, fraction=24, result="nearest", bits=10, least=-20),
    "mma.m16n8k8.f32.bf16.bf16": Rule(8, least=-133, signs="kept", overflow="largest"),
    "mma.m16n8k8.f32.tf32.tf32": Rule(4, "strides", 24, cut="floor", zeros="counted"),
    "mma.m16n8k32.f32.e4m3.e5m2": Rule(16, "pairs", 25, "added"),
    "wgmma.m64n8k32.f32.e4m3.e4m3": Rule(32, fraction=13, bits=13, exponents="normalized"),
    "wgmma.m64n8k32.f16.e5m2.e5m2": Rule(32, fraction=13, bits=10, result="nearest"),
    SMALL: Rule(4),
    DOUBLES: Sequential(),
}


class Model:
    """A device that computes by a rule."""

    def __init__(self, rule: Candidate):
        self.rule = rule

    def run(self, what: Instruction, tiles: Tiles) -> np.ndarray:
        return model_of(self.rule, what, tiles)


def value_of(bits: int, name: str) -> Fraction | float:
    """A number of a format by its definition."""
    form = FORMATS[name]
    bits >>= form.shift
    fraction = bits & ((1 << form.fraction) - 1)
    field = bits >> form.fraction & ((1 << form.exponent) - 1)
    sign = -1 if bits >> (form.fraction + form.exponent) else 1
    if field == (1 << form.exponent) - 1:
        if not form.finite:
            return float("nan") if fraction else sign * float("inf")
        if fraction == (1 << form.fraction) - 1:
            return float("nan")
    whole = fraction + (1 << form.fraction if field else 0)
    return sign * whole * Fraction(2) ** (max(field, 1) - 1 + form.least - form.fraction)


def exponent_of(value: Fraction, least: int) -> int:
    magnitude, found = abs(value), least
    while magnitude >= Fraction(2) ** (found + 1):
        found += 1
    return found


def cut(value: Fraction, place: int) -> Fraction:
    unit = Fraction(2) ** place
    magnitude = floor(abs(value) / unit) * unit
    return magnitude if value >= 0 else -magnitude


def exactly(
    a: list[Fraction], b: list[Fraction], c: Fraction, types: tuple[str, ...], rule: Rule
) -> Fraction:
    """A chain of additions by a rule whose fields are at their defaults, with fractions."""
    least_a, least_b, least = (FORMATS[name].least for name in types)
    for first in range(0, len(a), rule.group):
        exponents = [] if c == 0 else [exponent_of(c, least)]
        products = []
        for x, y in zip(a[first : first + rule.group], b[first : first + rule.group], strict=True):
            if x * y != 0:
                exponents.append(exponent_of(x, least_a) + exponent_of(y, least_b))
                products.append(x * y)
        place = max(exponents, default=0) - rule.fraction
        total = sum((cut(product, place) for product in products), cut(c, place))
        c = cut(total, exponent_of(total, least) - rule.bits)
    return c


@pytest.mark.proof
@pytest.mark.parametrize(
    "name", [HALVES, "mma.m16n8k8.f32.bf16.bf16", "wgmma.m64n8k32.f32.e4m3.e5m2"]
)
def test_the_model_is_exact(name: str) -> None:
    what = NAMES[name]
    rule = Rule(what.k, fraction=13, bits=13) if what.via == "wgmma" else Rule(what.k // 2)
    types = (what.a, what.b, what.acc)
    for category in (
        "wide",
        "cancelling",
        "deep",
        "hidden",
        "sparse",
        "tiny",
        "least",
        "vanishing",
    ):
        tiles = batch(what, category, 5)
        outputs = single(tiles, what, np.arange(0, tiles[2].size, 167))
        got = decode(evaluate(outputs, what.k, rule), what.acc).value
        for i in range(len(outputs)):
            a, b = (
                [value_of(int(x), t) for x in row[i]]
                for row, t in ((outputs.a, what.a), (outputs.b, what.b))
            )
            want = exactly(a, b, value_of(int(outputs.c[i]), what.acc), types, rule)  # type: ignore[arg-type]
            assert Fraction(float(got[i])) == want, (category, i)


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "f64"])
def test_numbers_are_decoded(name: str) -> None:
    form = FORMATS[name]
    count = 1 << min(16, 1 + form.exponent + form.fraction)
    words = np.linspace(0, (1 << (8 * np.dtype(form.word).itemsize)) - 1, count).astype(form.word)
    got = decode(words, name).value
    for word, value in zip(words[::97].tolist(), got[::97].tolist(), strict=True):
        want = float(value_of(word, name))
        assert value == want or (value != value and want != want)


def test_every_product_is_in_one_group() -> None:
    for order in ("run", "pairs", "strides"):
        for k, group in ((32, 16), (16, 8), (16, 4), (8, 4)):
            groups = steps_of(k, group, order)
            assert sorted(at for each in groups for at in each) == list(range(k))
            assert {len(each) for each in groups} == {group}


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", RULES)
def test_the_search_finds_a_rule_again(name: str) -> None:
    what, rule = NAMES[name], RULES[name]
    core, edges = search(tensor_core_bits.observe(Model(rule), what, 3), what)
    assert core.share == edges.share == 1.0
    assert rule in edges.explain
    assert (
        not {"group", "order", "fraction", "accumulator", "result"}
        & undecided(edges.explain).keys()
    )


@pytest.mark.proof
def test_a_device_with_another_rule_is_not_explained() -> None:
    class Wrong(Model):
        def run(self, what: Instruction, tiles: Tiles) -> np.ndarray:
            return super().run(what, tiles) ^ np.uint64(1)

    what = NAMES[DOUBLES]
    rows = tensor_core_bits.judge(tensor_core_bits.observe(Wrong(Sequential()), what, 3), what)
    assert rows[0]["core count"] == rows[0]["edges count"] == 0
    near = next(row for row in rows if row.get("category") == "near")
    assert near["equal"] < near["outputs"] and near["examples"][0]["a"]
    assert "first:" in tensor_core_bits.report(rows)


@pytest.mark.proof
def test_records_are_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    what = NAMES[DOUBLES]
    seen = tensor_core_bits.observe(Model(Sequential()), what, 1)
    assert list(seen) == list(CATEGORIES)
    tensor_core_bits.record(tmp_path / "records", what, seen)
    results = tmp_path / "results.jsonl"
    arguments = [str(results), "--replay", str(tmp_path / "records"), "--jobs", "1"]
    assert tensor_core_bits.main(arguments) == 0
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    assert {row["row"] for row in rows} == {"device", "instruction", "category"}
    assert "1 of 1 instructions explained" in capsys.readouterr().out


@pytest.mark.proof
@pytest.mark.parametrize("name", NAMES)
def test_kernels_compile(name: str) -> None:
    if available() is not None:
        pytest.skip(f"no compiler: {available()}")
    what = NAMES[name]
    compile_text(text(what), "sm_90a")


def test_specials() -> None:
    """Infinity times zero and infinities of both signs are NaN; NaN is all ones."""
    a = np.array([[0x7C00, 0], [0x7C00, 0xFC00], [0x7E00, 0], [0x7C00, 0x3C00]], np.uint16)
    b = np.array([[0, 0], [0x3C00, 0x3C00], [0, 0], [0x3C00, 0x3C00]], np.uint16)
    operands = Operands(a, b, np.zeros(4, np.uint32), ("f16", "f16", "f32"))
    got = evaluate(operands, 2, Rule(2))
    assert got.tolist() == [0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7F800000]


IN_TABLE = {
    "mma.m16n8k16.f32.bf16.bf16": "halves",
    "mma.m16n8k32.f32.e5m2.e4m3": "FP8",
    "wgmma.m64n8k8.f32.tf32.tf32": "tf32",
    "wgmma.m64n8k32.f32.e4m3.e5m2": "FP8 of wgmma",
}


def as_candidate(rule: SumRule, k: int) -> Rule:
    """The candidate that a rule of the library's table is."""
    if rule.converted:
        return Rule(rule.group, "pairs", rule.fraction, "added", exponents="f16")
    return Rule(min(rule.group, k), fraction=rule.fraction, bits=rule.bits, least=rule.least)


@pytest.mark.proof
@pytest.mark.in_proof(share=2)
@pytest.mark.parametrize("name", IN_TABLE)
def test_the_library_adds_as_the_candidate(name: str) -> None:
    """All categories, infinities and NaNs among them."""
    what, rule = NAMES[name], TABLE["sm_90"][IN_TABLE[name]]
    core = TensorCoreAdditions(rule, what.k, what.a, what.b)  # type: ignore[arg-type]
    for category in CATEGORIES:
        tiles = batch(what, category, 7)
        a, b, acc = (x[:8] for x in tiles)
        want = model_of(as_candidate(rule, what.k), what, (a, b, acc))
        of_a, of_b = decode(a, what.a).value, decode(b, what.b).value
        got = core.added(acc.view(np.float32), of_a, np.swapaxes(of_b, -1, -2)).view(np.uint32)
        assert equal(got, want, what.acc).all(), category
