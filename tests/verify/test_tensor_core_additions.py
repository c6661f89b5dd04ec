"""What tensor cores accumulate: the table's rules in NumPy, against rational numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from gemmgen.ir.atoms import ATOMS, Atom
from gemmgen.ir.dtypes import FP8, HALVES, DType
from gemmgen.ir.target import TARGETS, offers
from gemmgen.ir.tensor_core_rules import RULES, SumRule, rule_of
from gemmgen.numerics.formats import STORAGE, held
from gemmgen.numerics.formats import numbers as decoded
from gemmgen.numerics.tensor_core_additions import TensorCoreAdditions

Row = list[float]
LEAST: dict[DType, int] = {"f16": -14, "bf16": -126, "tf32": -126, "e4m3": -6, "e5m2": -14}
"""The exponents of the least normal numbers."""
HOPPER = RULES["sm_90"]
CORES: dict[str, TensorCoreAdditions] = {
    "Hopper, f16": TensorCoreAdditions(HOPPER["halves"], 16, "f16", "f16"),
    "Hopper, bf16": TensorCoreAdditions(HOPPER["halves"], 16, "bf16", "bf16"),
    "Hopper, k8": TensorCoreAdditions(HOPPER["halves"], 8, "f16", "f16"),
    "Hopper, tf32": TensorCoreAdditions(HOPPER["tf32"], 8, "tf32", "tf32"),
    "Hopper, mma of FP8": TensorCoreAdditions(HOPPER["FP8"], 32, "e5m2", "e4m3"),
    "Hopper, wgmma of FP8": TensorCoreAdditions(HOPPER["FP8 of wgmma"], 32, "e4m3", "e4m3"),
    "Hopper, wgmma of both FP8": TensorCoreAdditions(HOPPER["FP8 of wgmma"], 32, "e4m3", "e5m2"),
    "Ampere, bf16": TensorCoreAdditions(RULES["sm_80"]["halves"], 16, "bf16", "bf16"),
    "Ampere, tf32": TensorCoreAdditions(RULES["sm_80"]["tf32"], 8, "tf32", "tf32"),
    "Ada, FP8": TensorCoreAdditions(RULES["sm_89"]["FP8"], 32, "e4m3", "e5m2"),
    "Blackwell, FP8": TensorCoreAdditions(RULES["sm_120"]["FP8"], 32, "e5m2", "e5m2"),
}
SHAPE = (5, 7)


def exponent(value: Fraction, least: int) -> int:
    found = math.frexp(float(value))[1] - 1  # exact: they have few bits
    return max(found, least)


def cut(value: Fraction, place: int) -> Fraction:
    unit = Fraction(2) ** place
    return (abs(value) // unit) * unit * (1 if value >= 0 else -1)


def fused(
    acc: Fraction, a: list[Fraction], b: list[Fraction], core: TensorCoreAdditions
) -> Fraction:
    """One group, by the words of the rule."""
    rule = core.rule
    of_a, of_b = ("f16", "f16") if rule.converted else (core.a, core.b)
    exponents = [rule.least] + ([exponent(acc, -126)] if acc else [])
    exponents += [
        exponent(x, LEAST[of_a]) + exponent(y, LEAST[of_b])
        for x, y in zip(a, b, strict=True)
        if x and y
    ]
    place = max(exponents) - rule.fraction
    total = cut(acc, place) + sum(cut(x * y, place) for x, y in zip(a, b, strict=True))
    return cut(total, exponent(total, -126) - rule.bits) if total else total


def pairs(k: int, group: int) -> list[list[int]]:
    count = k // group
    return [[x for x in range(k) if (x % (2 * count)) // 2 == i] for i in range(count)]


def by_fractions(core: TensorCoreAdditions, a: Row, b: Row, acc: float = 0.0) -> float:
    """One output."""
    rule, found = core.rule, Fraction(acc)
    missing = [0.0] * (-len(a) % core.k)
    left, right = ([Fraction(x) for x in (*row, *missing)] for row in (a, b))
    for first in range(0, len(left), core.k):
        runs = [list(range(i, i + rule.group)) for i in range(0, core.k, rule.group)]
        runs = [[i for i in run if i < core.k] for run in runs]
        partial = Fraction(0) if rule.converted else found
        for at in pairs(core.k, rule.group) if rule.converted else runs:
            own = [first + i for i in at]
            partial = fused(partial, [left[i] for i in own], [right[i] for i in own], core)
        found = (
            Fraction(float(np.float32(found) + np.float32(partial))) if rule.converted else partial
        )
    return float(found)


def numbers(kind: str, shape: tuple[int, ...], dtype: DType, seed: int) -> np.ndarray:
    """Numbers of a type: of unit size, of many sizes (subnormal ones and zeros among them), or all
    of the least ones."""
    rng = np.random.default_rng(seed)
    found = rng.standard_normal(shape)
    least = LEAST[dtype]
    if kind == "wide":
        spread = min(14, 7 - least // 2)
        found = np.ldexp(found, rng.integers(max(least - 3, -spread), spread, shape))
        found[rng.random(shape) < 0.2] = 0
    if kind == "least":
        found = np.ldexp(found, least + rng.integers(-3, 2, shape))
    with np.errstate(over="ignore"):
        return held(found.astype(np.float32), dtype).astype(np.float32)


def operands(
    core: TensorCoreAdditions, kind: str, depth: int = 70
) -> tuple[np.ndarray, np.ndarray]:
    a = numbers(kind, (SHAPE[0], depth), core.a, 1)
    return a, numbers(kind if kind != "least" else "normal", (depth, SHAPE[1]), core.b, 2)


def differing(core: TensorCoreAdditions, other: TensorCoreAdditions, kind: str) -> int:
    a, b = operands(core, kind)
    return int((core.accumulate(a, b) != other.accumulate(a, b)).sum())


@pytest.mark.by_default("*-normal")
@pytest.mark.parametrize("kind", ["normal", "wide", "least"])
@pytest.mark.parametrize("name", CORES)
def test_accumulators_are_those_of_the_rule(name: str, kind: str) -> None:
    core = CORES[name]
    a, b = operands(core, kind)
    got = core.accumulate(a, b)
    assert np.isfinite(got).all() and got.dtype == np.float32
    for row in range(SHAPE[0]):
        for column in range(SHAPE[1]):
            want = by_fractions(core, a[row].tolist(), b[:, column].tolist())
            assert float(got[row, column]) == want, (row, column)


@pytest.mark.parametrize("name", CORES)
def test_accumulators_are_added_to(name: str) -> None:
    """Also far larger, far smaller and subnormal ones; a chain is one instruction after another."""
    core = CORES[name]
    a, b = operands(core, "normal", core.k)
    rng = np.random.default_rng(3)
    acc = np.ldexp(rng.standard_normal(SHAPE), rng.integers(-150, 40, SHAPE)).astype(np.float32)
    got = core.added(acc, a, b)
    for at in np.ndindex(*SHAPE):
        want = by_fractions(core, a[at[0]].tolist(), b[:, at[1]].tolist(), float(acc[at]))
        assert float(got[at]) == want, at
    again = core.added(got, a[::-1], b)
    both = core.added(acc, np.hstack((a, a[::-1])), np.vstack((b, b)))
    assert np.array_equal(again, both)


@pytest.mark.parametrize("name", CORES)
def test_a_mistake_in_the_rule_shows(name: str) -> None:
    core = CORES[name]
    rule = core.rule
    wrong = {
        "a bit less": replace(rule, fraction=rule.fraction - 1),
        "a bit more": replace(rule, fraction=rule.fraction + 1),
        "half the group": replace(rule, group=min(rule.group, core.k) // 2),
        "a sum of a bit less": replace(rule, bits=rule.bits - 1),
    }
    if rule.group < core.k:
        wrong["a larger group"] = replace(rule, group=2 * rule.group)
    for what, other in wrong.items():
        planted = replace(core, rule=other)
        assert any(differing(core, planted, kind) for kind in ("normal", "wide")), what


def test_what_the_instructions_of_sm_90_have_in_common() -> None:
    """``wgmma`` adds f16, bf16 and tf32 as ``mma.sync`` does, and FP8 otherwise."""
    for dtype, atoms in {
        "f16": ("m16n8k16", "wmma", "m64nNk16"),
        "bf16": ("m16n8k16_f32", "m64nNk16_f32"),
        "tf32": ("m16n8k8_tf32", "m64nNk8"),
    }.items():
        assert len({rule_of("sm_90a", atom, dtype) for atom in atoms}) == 1  # type: ignore[arg-type]
    core, other = CORES["Hopper, mma of FP8"], HOPPER["FP8 of wgmma"]
    assert differing(core, TensorCoreAdditions(other, 32, core.a, core.b), "normal")


def test_an_e4m3_operand_of_mma_has_the_exponent_of_its_f16() -> None:
    """An output of an H200: the largest product is of 1.25 * 2^11 and -2^-8, a subnormal e4m3."""
    bits = {
        "e5m2": {2: 0x69, 3: 0x65, 4: 0x9C, 5: 0x86, 9: 0x1A, 19: 0x51, 20: 0x19, 25: 0xC8, 31: 6},
        "e4m3": {0: 0xA4, 2: 0x82, 4: 0xC8, 5: 0xA0, 8: 1, 11: 0xB0, 17: 0xF2, 22: 0xAD, 31: 2},
    }
    a, b = (stored_in(bits[dtype], dtype) for dtype in ("e5m2", "e4m3"))
    acc = np.array([[0x40161C4F]], np.uint32).view(np.float32)
    got = CORES["Hopper, mma of FP8"].added(acc, a[None, :], b[:, None])
    assert got.view(np.uint32) == 0xC0F471BE
    wanted = by_fractions(CORES["Hopper, mma of FP8"], a.tolist(), b.tolist(), float(acc[0, 0]))
    assert wanted == float(got[0, 0])


def stored_in(bits: dict[int, int], dtype: DType) -> np.ndarray:
    """32 numbers, by the bits of those that are not zero."""
    words = np.zeros(32, np.uint8)
    words[list(bits)] = list(bits.values())
    return decoded(words.view(STORAGE[dtype]), dtype).astype(np.float32)


def test_infinities_and_nans() -> None:
    core = CORES["Hopper, f16"]
    a = np.ones((4, 16), np.float32)
    b = np.ones((16, 1), np.float32)
    a[1, 3], a[2, 5], a[3, 1] = np.inf, np.nan, np.inf
    a[3, 2] = -np.inf
    got = core.accumulate(a, b)[:, 0]
    assert got[0] == 16 and got[1] == np.inf and np.isnan(got[2:]).all()
    b[3] = 0  # infinity times zero
    assert np.isnan(core.accumulate(a, b)[1, 0])


def test_products_beyond_f32_are_added() -> None:
    """Two products of 2^200 that cancel are nothing; a sum beyond f32 is infinite."""
    core = CORES["Hopper, bf16"]
    a = np.full((1, 16), 0, np.float32)
    b = np.ones((16, 1), np.float32)
    a[0, :3], b[:2, 0] = (2.0**100, -(2.0**100), 0.0), 2.0**100
    assert core.accumulate(a, b)[0, 0] == 0
    a[0, 1] = 2.0**100
    assert core.accumulate(a, b)[0, 0] == np.inf
    assert core.accumulate(-a, b)[0, 0] == -np.inf


def test_zeros_are_positive() -> None:
    core = CORES["Hopper, f16"]
    a = np.full((1, 16), -0.0, np.float32)
    got = core.added(np.full((1, 1), -0.0, np.float32), a, np.ones((16, 1), np.float32))
    assert got[0, 0] == 0 and not np.signbit(got[0, 0])


@pytest.mark.proof
def test_integers_are_exact_as_they_would_be_without_the_short_way() -> None:
    rng = np.random.default_rng(4)
    for core in CORES.values():
        a, b = rng.integers(-3, 4, (5, 64)).astype(np.float32), rng.integers(-3, 4, (64, 7)).astype(
            np.float32
        )
        got = core.accumulate(a, b)
        assert np.array_equal(got, a @ b)
        for at in np.ndindex(*SHAPE):
            assert by_fractions(core, a[at[0]].tolist(), b[:, at[1]].tolist()) == got[at]


def test_batches_broadcast() -> None:
    core = CORES["Hopper, tf32"]
    a = numbers("wide", (3, 1, 5, 20), "tf32", 1)
    b = numbers("wide", (2, 20, 7), "tf32", 2)
    got = core.accumulate(a, b)
    assert got.shape == (3, 2, 5, 7)
    for i, j in np.ndindex(3, 2):
        assert np.array_equal(got[i, j], core.accumulate(a[i, 0], b[j]))
    assert core.accumulate(a[..., :0], b[..., :0, :]).shape == (3, 2, 5, 7)
    assert core.accumulate(a[..., :0, :], b).shape == (3, 2, 0, 7)


def test_every_atom_of_every_target_has_a_rule() -> None:
    """None only where one product is added after another, or integers."""
    for target in TARGETS:
        for name, traits in ATOMS.items():
            if name == "fma" or not offers(target, name):
                continue
            for a, _, _ in traits.products:
                if not offers(target, a):
                    continue
                rule = rule_of(target, name, a)
                assert (rule is None) == (a in ("i8", "f64")), (target, name, a)
                if rule is not None:
                    assert rule.measured == target.startswith("sm_90")
                    assert sorted(x for g in rule.groups(traits.k) for x in g) == list(
                        range(traits.k)
                    )
    assert rule_of("sm_80", "fma", "f16") is None


def test_groups() -> None:
    assert SumRule(8, 24).groups(16) == (tuple(range(8)), tuple(range(8, 16)))
    assert SumRule(16, 25).groups(8) == (tuple(range(8)),)
    both = SumRule(16, 25, converted=True).groups(32)
    assert both[0][:4] == (0, 1, 4, 5) and both[1][-2:] == (30, 31)
    assert {*HALVES, *FP8} <= LEAST.keys()
    names: tuple[Atom, ...] = ("m16n8k16", "m64nNk32")
    assert all(name in ATOMS for name in names)
