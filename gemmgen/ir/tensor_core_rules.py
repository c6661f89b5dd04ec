"""How the tensor cores of each architecture add the products of an instruction: a table of rules.

A group of products and the accumulator are aligned to the largest exponent among them, cut off
toward zero some bits below it, and added exactly; the sum is cut off to the accumulator's bits.
Decision 96 says how the rules of sm_90 were measured, and who published the others.
"""

from __future__ import annotations

from gemmgen.base.record import record
from gemmgen.ir.atoms import ATOMS, Atom
from gemmgen.ir.dtypes import FP8, HALVES, ROUNDED, DType


@record
class SumRule:
    """One way of adding to accumulators of f32.

    ``group``: products that are added at once, if the instruction has as many; the groups of an
    instruction follow one another along k.  An exponent is the sum of those of the factors, which
    is one less than the product's if its significand is 2 or more; a subnormal factor has the least
    exponent of its type, and a zero has none.  What is aligned keeps ``fraction`` bits below the
    largest exponent, which is at least ``least``; a sum keeps ``bits`` after its leading one.

    ``converted``: FP8 operands become f16 first, whose exponents count; a group has pairs of
    adjacent k, as far apart as there are groups; the groups begin at zero, and the accumulator is
    added after the last, rounded to nearest.  ``measured``: bit by bit, on a GPU; else published.
    """

    group: int
    fraction: int
    bits: int = 23
    least: int = -133
    converted: bool = False
    measured: bool = False

    def groups(self, k: int) -> tuple[tuple[int, ...], ...]:
        """The products of an instruction of ``k`` that are added at once, group by group."""
        count = max(1, k // self.group)
        if self.converted:
            return tuple(tuple(x for x in range(k) if x // 2 % count == i) for i in range(count))
        return tuple(tuple(range(i, min(i + self.group, k))) for i in range(0, k, self.group))


_AMPERE = {"halves": SumRule(8, 24, least=-132), "tf32": SumRule(4, 24, least=-132)}
_HOPPER = {
    "halves": SumRule(16, 25, measured=True),
    "tf32": SumRule(8, 25, measured=True),
    "FP8": SumRule(16, 25, converted=True, measured=True),
    "FP8 of wgmma": SumRule(32, 13, bits=13, measured=True),
}
_LATER = {"halves": SumRule(16, 25), "tf32": SumRule(8, 25)}

RULES: dict[str, dict[str, SumRule]] = {
    "sm_75": {"halves": SumRule(8, 24, least=-132)},
    "sm_80": _AMPERE,
    "sm_86": _AMPERE,
    "sm_89": {**_AMPERE, "FP8": SumRule(16, 13, bits=13, least=-132)},
    "sm_90": _HOPPER,
    "sm_100": {**_LATER, "FP8": SumRule(16, 25, converted=True)},
    "sm_120": {**_LATER, "FP8": SumRule(32, 25)},
}
"""The rules of each architecture, by the operands."""


def rule_of(target: str, atom: Atom, multiplied: DType) -> SumRule | None:
    """How an instruction of ``target`` (``sm_90a``) adds products of type ``multiplied``.  None if
    it adds one product after another, each by a fused multiply-add (FFMA, f64), or integers."""
    if atom == "fma":
        return None
    rules = RULES[target.rstrip("a")]
    if multiplied in HALVES:
        return rules["halves"]
    if multiplied in ROUNDED:
        return rules["tf32"]
    if multiplied in FP8:
        return rules["FP8 of wgmma" if ATOMS[atom].in_place else "FP8"]
    return None
