"""The statements of a random schedule besides its directives: the problem, types, facts,
epilogue."""

from __future__ import annotations

from collections.abc import Mapping

from gemmgen.base.record import record
from gemmgen.fuzz.dice import Dice
from gemmgen.fuzz.epilogues import Names, epilogue
from gemmgen.fuzz.head_classes import NONE
from gemmgen.ir.dtypes import FP8, HALVES, ROUNDED
from gemmgen.ir.parameters import ld_name

_LETTERS = (("row", "col", "d"), ("i", "j", "d"), ("r", "s", "t"), ("u", "v", "w"))
_TENSORS = (("left", "right", "result"), ("X", "Y", "Z"), ("q0", "keys", "scores"), ("P", "Q", "L"))
_BATCHES = (("p", "q"), ("batch", "head"), ("g", "z1"))
_KERNELS = ("gemm", "gemm", "my_gemm", "fused_layer", "f")
_TARGETS = ("sm_75", "sm_86", "sm_90", "sm_120")
_ALONG_K = (16, 32, 64, 128, 128)
"""Elements of a block with a scale; an interval of promotion must divide them."""
_REQUIRES = ("require threads <= 1024", "require shared <= 160KiB")


@record
class Letters:
    m: str
    n: str
    k: str

    def order(self, code: str) -> list[str]:
        """``["m", "k"]`` of ``mk``, in the schedule's own letters."""
        return [{"m": self.m, "n": self.n, "k": self.k}[letter] for letter in code]


class DrawnHead:
    """The statements of a plan that are not directive, its numbers and names chosen; without an
    epilogue nothing is read by one."""

    def __init__(self, dice: Dice, plan: Mapping[str, str]):
        self.dice = dice
        self.plan = plan if plan["epilogue"] != NONE else {**plan, "reads": NONE}
        if not _may_have_scales(plan):
            self.plan = {**self.plan, "scales": NONE}
        usual = plan["names"] == "usual"
        self.letters = Letters(*(("m", "n", "k") if usual else dice.pick(_LETTERS)))
        tensors = ("A", "B", "C") if usual else dice.pick(_TENSORS)
        self.tensors = dict(zip("ABC", tensors, strict=True))
        self.batches = self._batches(usual)
        self.indices = {name: self._indices(name) for name in "CAB"}
        types = self._types()
        self.scales = self._scales()
        self.gemm = f"gemm {self._access('C')} = {self._factor('A')} * {self._factor('B')}"
        self.dtype = [f"dtype {types}"] if types else []
        self.target = [f"target {plan['target']}"] if plan["target"] != NONE else []
        if plan["types"].startswith("bytes") and not self.target:
            self.target = ["target sm_89"]
        self.problem = (self.gemm, *self.dtype, *self.target)

    def first(self) -> list[str]:
        """The ``gemm`` line; now and then none, if it is the usual one."""
        plan = self.plan
        orders = plan["order A"], plan["order B"], plan["order C"], plan["names"]
        unusual = orders != ("mk", "kn", "mn", "usual") or bool(self.batches or self.scales)
        return [self.gemm] if unusual or self.dice.chance(0.7) else []

    def optional(self) -> list[str]:
        """Statements for which a schedule may be refused: a target, a requirement."""
        drawn = self.dice.chance(0.5) and not self.target
        lines = [f"target {self.dice.pick(_TARGETS)}"] if drawn else []
        same_bits = f"require same_bits over {self.letters.m}"
        known = (*_REQUIRES, same_bits, f"{same_bits} {self.letters.n}")
        return lines + ([self.dice.pick(known)] if self.dice.chance(0.1) else [])

    def kernel(self) -> list[str]:
        name = self.dice.pick(_KERNELS)
        return [f"kernel {name}"] if name != "gemm" else []

    def assumes(self, tile: tuple[int, int], step: int) -> tuple[str, ...]:
        """Facts about extents and leading dimensions; ``step`` is 0 if k is not split."""
        letters, (m, n) = self.letters, tile
        whole = [
            f"assume {letter.upper()} % {max(size, 2)} == 0"
            for letter, size in ((letters.m, m), (letters.n, n), (letters.k, step or 8))
        ]
        lds = [
            f"assume {ld_name(self.tensors[name])} == "
            + letters.order(self.plan[f"order {name}"])[1].upper()
            for name in "ABC"
        ]
        fours = [f"assume {x.upper()} % 4 == 0" for x in (letters.m, letters.n, letters.k)]
        pair = self.dice.shuffled((letters.m, letters.n, letters.k))[:2]
        known = {
            "rows": whole[:1],
            "columns": whole[1:2],
            "k": whole[2:],
            "whole": whole,
            "fours": fours,
            "lds": lds[self.dice.below(3) :],
            "all": [*whole, *lds],
            "equal": [f"assume {pair[0].upper()} == {pair[1].upper()}"],
        }
        return tuple(known.get(self.plan["assume"], ()))

    def epilogue(self) -> list[str]:
        plan, letters = self.plan, self.letters
        if plan["epilogue"] == NONE:
            return []
        kept = ", ".join(letters.order(plan["order C"]))
        transposed = ", ".join(letters.order(plan["order C"][::-1]))
        batches = tuple(x for x in self.indices["C"] if x in self.batches)
        names = Names(letters.m, letters.n, self._access("C"), transposed, kept, batches)
        return [f"fuse_epilogue {epilogue(self.dice, plan['epilogue'], plan['reads'], names)}"]

    def _batches(self, usual: bool) -> dict[str, str]:
        """The batch letters, and the inputs that have each: ``A``, ``B``, ``AB``."""
        kind = self.plan["batch"]
        one, other = ("b", "h") if usual else self.dice.pick(_BATCHES)
        found = {NONE: {}, "both": {one: "AB"}, "A": {one: "A"}, "B": {one: "B"}}.get(kind)
        if found is None:
            found = {one: "AB", other: self.dice.pick(("AB", "A", "B"))}
        return found

    def _indices(self, name: str) -> list[str]:
        """A tensor's letters.  Batches come anywhere but last; in C a row's or a column's comes
        before the one that is tiled."""
        found = self.letters.order(self.plan[f"order {name}"])
        for letter, inputs in reversed(self.batches.items()):
            if name != "C" and name not in inputs:
                continue
            last = len(found) - 1
            if name == "C" and inputs != "AB":
                last = found.index(self.letters.m if inputs == "A" else self.letters.n)
            at = self.dice.below(last + 1) if self.dice.chance(0.4) else 0
            found.insert(at, letter)
        return found

    def _access(self, name: str) -> str:
        return f"{self.tensors[name]}[{', '.join(self.indices[name])}]"

    def _factor(self, name: str) -> str:
        access = self._access(name)
        return f"({access} * {self.scales[name]})" if name in self.scales else access

    def _scales(self) -> dict[str, str]:
        """The scales of A, of B, or of both."""
        k, along_k = self.letters.k, self.dice.pick(_ALONG_K)
        found: dict[str, str] = {}
        for name, free in (("A", self.letters.m), ("B", self.letters.n)):
            if self.plan["scales"] in (name, "both"):
                elements = self.dice.pick((1, 1, 2, 16, 128))
                one = free if elements == 1 else f"{free}/{elements}"
                indices = self.dice.shuffled((one, f"{k}/{along_k}"))
                found[name] = f"S{self.tensors[name]}[{', '.join(indices)}]"
        return found

    def _types(self) -> str:
        """The arguments of a ``dtype`` line; f32 is sometimes stated, too."""
        plan, names = self.plan["types"], [self.tensors[name] for name in "ABC"]
        if plan == "halves to f32":
            one = self.dice.pick(HALVES)
            other = one if self.dice.chance(0.6) else self.dice.pick(HALVES)
            return f"{names[0]}={one} {names[1]}={other}"
        if plan.startswith("bytes"):
            out = "f32" if plan == "bytes to f32" else self.dice.pick(FP8)
            one, other = self.dice.pick(FP8), self.dice.pick(FP8)
            return f"{names[0]}={one} {names[1]}={other} {names[2]}={out}"
        if plan.startswith("i8"):
            out = plan.removeprefix("i8 to ")
            if out == "i32" and self.plan["epilogue"] != NONE:
                out = "f32"  # an expression of any kind is not an expression of integers
            return f"{names[0]}=i8 {names[1]}=i8 {names[2]}={out}"
        if plan.removesuffix(" to f32") in ROUNDED:
            one = plan.removesuffix(" to f32")
            return f"{names[0]}={one} {names[1]}={one}"
        if plan == "f32 to halves":
            return f"{names[2]}={self.dice.pick(HALVES)}"
        if plan == "f32":
            return f"{self.dice.pick(names)}=f32" if self.dice.chance(0.1) else ""
        said = [f"{name}={plan}" for name in names]
        return " ".join([*said, "acc=f64"] if plan == "f64" else said)


def _may_have_scales(plan: Mapping[str, str]) -> bool:
    """Whether accumulators are f32, and the product is a single one."""
    types = plan["types"]
    return plan["batch"] == NONE and types != "f64" and not types.startswith("i8")
