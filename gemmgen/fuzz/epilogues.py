"""Random epilogues: expressions of a given kind over given operands."""

from __future__ import annotations

from dataclasses import dataclass

from gemmgen.base.record import record
from gemmgen.fuzz.dice import Dice

_POOL = {
    "arithmetic": ("{v}", "alpha * {v}", "-({v})", "({v}) / 3", "2 * {v} - 1", "{v} * 0.1"),
    "condition": (
        "relu({v})",
        "where({v} < 0, {v} * slope, {v})",
        "clamp({v}, -6, 6)",
        "where({m} > {n}, 0, {v})",
        "where(!({v} > 0) || {n} == 3, slope, {v})",
        "min(max({v}, -1.5), {m})",
    ),
    "library": (
        "gelu({v} / 16)",
        "gelu_tanh({v} / 16)",
        "silu({v} / 8)",
        "sigmoid({v} / 8)",
        "tanh({v} / 8)",
        "exp(-abs({v}) / 8)",
    ),
}
_NUMBERS = ("0", "1", "2", "0.5", "1e-3", "3.25", "7", "1e5", "0.1")
_UNARY = ("-{a}", "abs({a})", "round({a})", "sqrt(abs({a}))")
_BINARY = ("{a} + {b}", "{a} - {b}", "({a}) * ({b})", "({a}) / ({b})", "{a} - ({b})")
_CHOICES = (
    "where({a} < {b}, {b}, {a})",
    "where({a} >= {b} && {m} != 1, {a}, -({b}))",
    "min({a}, {b})",
    "max({a}, {b})",
    "relu({a})",
    "clamp({a}, -3, 12)",
    "where(!({a} == {b}), {b}, {a})",
)
_SMOOTH = ("{a} + {b}", "{b} - ({a})", "{a} - ({b})", "0.5 * ({a})", "-({a})", "({a}) * -3.25")
"""Forms around a library function's result, without discontinuities that amplify its last bits."""


@record
class Names:
    """The names of the epilogue's schedule; ``own`` are names for tensors."""

    m: str
    n: str
    c: str
    """The old C with its indices."""
    transposed: str
    """The indices of a matrix stored the other way than C."""
    kept: str
    batches: tuple[str, ...] = ()


def epilogue(dice: Dice, kind: str, reads: str, names: Names) -> str:
    """An expression whose classes are ``kind`` and ``reads``."""
    value = _with_reads(dice, _read(dice, reads, names))
    if dice.chance(0.5):
        return dice.pick(_POOL[kind]).format(v=_bracketed(value), m=names.m, n=names.n)
    tree = _Tree(dice, names, _bracketed(value))
    if kind == "library":
        return tree.smooth(2)
    text = tree.grow(kind == "condition", 3)
    return text if kind == "arithmetic" else f"max({text}, -1e4)"


def _read(dice: Dice, reads: str, names: Names) -> list[str]:
    """The elements that an epilogue reads."""

    def own(letters: str) -> str:
        """The indices of a tensor with some of the batch letters, or none."""
        some = (letter for letter in names.batches if dice.chance(0.5))
        return ", ".join((*some, letters))

    one = {
        "rows": f"row_scale[{own(names.m)}]",
        "columns": f"bias[{own(names.n)}]",
        "matrix": f"residual[{own(names.kept)}]",
        "transposed": f"other[{own(names.transposed)}]",
        "C": names.c,
        "beta C": f"beta * {names.c}",
    }
    if reads == "several":
        del one[dice.pick(("C", "beta C"))]
        return [one[key] for key in dice.shuffled(one)[: 2 + dice.below(2)]]
    return [one[reads]] if reads in one else []


def _with_reads(dice: Dice, parts: list[str]) -> str:
    value = dice.pick(("acc", "acc", "alpha * acc"))
    for part in parts:
        form = dice.pick(("{v} + {p}", "{v} - {p}", "{p} + {v}"))
        if not part.startswith("beta"):
            form = dice.pick((form, "({v}) * {p}"))
        value = form.format(v=value, p=part)
    return value


def _bracketed(value: str) -> str:
    return value if value.replace("_", "").isalnum() else f"({value})"


@dataclass
class _Tree:
    """Grows expressions around ``value``, which occurs in each at least once."""

    dice: Dice
    names: Names
    value: str

    def grow(self, choices: bool, depth: int) -> str:
        if depth == 0:
            return self.value
        forms = _UNARY + _BINARY + (_CHOICES * 2 if choices else ())
        form = self.dice.pick(forms)
        inner = _bracketed(self.grow(choices, depth - 1))
        return self._filled(form, inner, self._leaf())

    def smooth(self, depth: int) -> str:
        called = self.dice.pick(_POOL["library"]).format(v=self.value)
        text = called
        for _ in range(depth):
            text = self._filled(self.dice.pick(_SMOOTH), _bracketed(text), self._leaf())
        return text

    def _leaf(self) -> str:
        names = self.names
        leaves = ("slope", "alpha", "shift", names.m, names.n, "acc", self.value, *names.batches)
        return self.dice.pick(leaves if self.dice.chance(0.6) else _NUMBERS)

    def _filled(self, form: str, a: str, b: str) -> str:
        if "/" in form and b == "0":
            b = self.value
        return form.format(a=a, b=b, m=self.names.m, n=self.names.n)
