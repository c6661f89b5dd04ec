"""The statements of a random schedule besides its directives: the problem, types, facts,
epilogue."""

from __future__ import annotations

from collections.abc import Mapping

from gemmgen.base.record import record
from gemmgen.fuzz.dice import Dice
from gemmgen.fuzz.epilogues import Names, epilogue
from gemmgen.ir.expr import Binary, Call, Element, Expr, Select, Var, walk
from gemmgen.ir.parameters import ld_name
from gemmgen.schedule.model import DEFAULT_GEMM, Schedule
from gemmgen.schedule.roles import batches, matrix, roles

NONE = "-"
"""The class of what a schedule does not state."""

Plan = dict[str, str]
"""Each factor's class."""

_TYPES = ("f32", "f64", "f16", "bf16", "halves to f32", "f32 to halves")
_HALVES = ("f16", "bf16")

FACTORS: dict[str, tuple[str, ...]] = {
    "order A": ("mk", "km"),
    "order B": ("kn", "nk"),
    "order C": ("mn", "nm"),
    "names": ("usual", "other"),
    "batch": (NONE, "both", "A", "B", "two"),
    "types": _TYPES,
    "threads": ("some", "32", "many"),
    "epilogue": (NONE, "arithmetic", "condition", "library"),
    "reads": (NONE, "rows", "columns", "matrix", "turned", "C", "beta C", "several"),
    "assume": (NONE, "rows", "columns", "k", "whole", "fours", "lds", "all", "equal"),
}
"""``batch`` letters are in both inputs or in one; ``halves`` are f16 and bf16, equal or not;
``some`` threads of a block are 33 to 256; ``reads`` are an epilogue's operands besides the sums."""

DRAWN = tuple(name for name in FACTORS if name != "threads")
"""Those that are chosen; threads follow from the directives."""

_FEW_THREADS, _SOME_THREADS = 32, 256
_LIBRARY = frozenset({"exp", "erf", "tanh", "sigmoid", "silu", "gelu", "gelu_tanh"})
_CONDITIONS = frozenset({"relu", "min", "max", "clamp"})

_LETTERS = (("row", "col", "d"), ("i", "j", "d"), ("r", "s", "t"), ("u", "v", "w"))
_TENSORS = (("left", "right", "result"), ("X", "Y", "Z"), ("q0", "keys", "scores"), ("P", "Q", "L"))
_BATCHES = (("p", "q"), ("batch", "head"), ("g", "z1"))
_KERNELS = ("gemm", "gemm", "my_gemm", "fused_layer", "f")
_TARGETS = ("sm_75", "sm_86", "sm_90", "sm_120")
_REQUIRES = ("require threads <= 1024", "require shared <= 160KiB")


@record
class Letters:
    m: str
    n: str
    k: str

    def order(self, code: str) -> list[str]:
        """``["m", "k"]`` of ``mk``, in the schedule's own letters."""
        return [{"m": self.m, "n": self.n, "k": self.k}[letter] for letter in code]


class Head:
    """The statements of a plan that are no directive, its numbers and names chosen."""

    def __init__(self, dice: Dice, plan: Mapping[str, str]):
        self.dice, self.plan = dice, plan
        usual = plan["names"] == "usual"
        self.letters = Letters(*(("m", "n", "k") if usual else dice.pick(_LETTERS)))
        tensors = ("A", "B", "C") if usual else dice.pick(_TENSORS)
        self.tensors = dict(zip("ABC", tensors, strict=True))
        self.batches = self._batches(usual)
        self.indices = {name: self._indices(name) for name in "CAB"}
        types = self._types()
        self.gemm = f"gemm {self._access('C')} = {self._access('A')} * {self._access('B')}"
        self.dtype = [f"dtype {types}"] if types else []

    def first(self) -> list[str]:
        """The ``gemm`` line; now and then none, if it is the usual one."""
        plan = self.plan
        orders = plan["order A"], plan["order B"], plan["order C"], plan["names"]
        unusual = orders != ("mk", "kn", "mn", "usual") or bool(self.batches)
        return [self.gemm] if unusual or self.dice.chance(0.7) else []

    def optional(self) -> list[str]:
        """Statements for which a schedule may be refused: a target, a requirement."""
        lines = [f"target {self.dice.pick(_TARGETS)}"] if self.dice.chance(0.5) else []
        return lines + ([self.dice.pick(_REQUIRES)] if self.dice.chance(0.1) else [])

    def kernel(self) -> list[str]:
        name = self.dice.pick(_KERNELS)
        return [f"kernel {name}"] if name != "gemm" else []

    def assumes(self, tile: tuple[int, int], step: int) -> list[str]:
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
        return known.get(self.plan["assume"], [])

    def epilogue(self) -> list[str]:
        plan, letters = self.plan, self.letters
        if plan["epilogue"] == NONE:
            return []
        kept = ", ".join(letters.order(plan["order C"]))
        turned = ", ".join(letters.order(plan["order C"][::-1]))
        batches = tuple(x for x in self.indices["C"] if x in self.batches)
        names = Names(letters.m, letters.n, self._access("C"), turned, kept, batches)
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

    def _types(self) -> str:
        """The arguments of a ``dtype`` line; f32 is sometimes stated, too."""
        plan, names = self.plan["types"], [self.tensors[name] for name in "ABC"]
        if plan == "halves to f32":
            one = self.dice.pick(_HALVES)
            other = one if self.dice.chance(0.6) else self.dice.pick(_HALVES)
            return f"{names[0]}={one} {names[1]}={other}"
        if plan == "f32 to halves":
            return f"{names[2]}={self.dice.pick(_HALVES)}"
        if plan == "f32":
            return f"{self.dice.pick(names)}=f32" if self.dice.chance(0.1) else ""
        said = [f"{name}={plan}" for name in names]
        return " ".join([*said, "acc=f64"] if plan == "f64" else said)


def threads_class(threads: int) -> str:
    """The class of a block's threads."""
    if threads <= _FEW_THREADS:
        return "32"
    return "some" if threads <= _SOME_THREADS else "many"


def plan_of(schedule: Schedule, threads: int) -> Plan:
    """The classes of these factors that a schedule has; ``threads`` are those of its block."""
    gemm = schedule.gemm
    m, _, k = roles(gemm)
    a, b, c = (matrix(access, gemm) for access in (gemm.a, gemm.b, gemm.c))
    plan = {
        "order A": "mk" if a[0] == m else "km",
        "order B": "kn" if b[0] == k else "nk",
        "order C": "mn" if c[0] == m else "nm",
        "names": "usual" if _usual(schedule) else "other",
        "batch": _batch(schedule),
        "types": _types(schedule),
        "threads": threads_class(threads),
        "epilogue": NONE,
        "reads": NONE,
        "assume": _assumed(schedule),
    }
    if schedule.epilogue:
        plan["epilogue"] = _computed(schedule.epilogue.expression)
        plan["reads"] = _read(schedule)
    return plan


def _batch(schedule: Schedule) -> str:
    gemm = schedule.gemm
    found = [
        "".join(name for name, access in (("A", gemm.a), ("B", gemm.b)) if letter in access.indices)
        for letter in batches(gemm)
    ]
    if len(found) > 1:
        return "two"
    return {"AB": "both"}.get(found[0], found[0]) if found else NONE


def _usual(schedule: Schedule) -> bool:
    gemm = schedule.gemm
    names = {access.tensor for access in (gemm.a, gemm.b, gemm.c)}
    return names == {"A", "B", "C"} and roles(gemm) == roles(DEFAULT_GEMM)


def _types(schedule: Schedule) -> str:
    gemm, stored = schedule.gemm, dict(schedule.dtypes)
    a, b, c = (stored[access.tensor] for access in (gemm.a, gemm.b, gemm.c))
    if a == b == c:
        return a
    return "halves to f32" if c == "f32" else "f32 to halves"


def _assumed(schedule: Schedule) -> str:
    assumes = schedule.assumes
    gemm = schedule.gemm
    lds = {ld_name(access.tensor) for access in (gemm.a, gemm.b, gemm.c)}
    equal = {a.name for a in assumes if a.equals is not None}
    divided = {a.name: a.divisor for a in assumes if a.divisor is not None}
    if equal - lds:
        return "equal"
    if equal:
        return "all" if divided else "lds"
    if len(divided) == 1:
        m, n, k = roles(gemm)
        return {m: "rows", n: "columns", k: "k"}[next(iter(divided)).lower()]
    if not divided:
        return NONE
    return "fours" if set(divided.values()) == {4} else "whole"


def _computed(expression: Expr) -> str:
    functions = {e.function for e in walk(expression) if isinstance(e, Call)}
    if functions & _LIBRARY:
        return "library"
    choices = any(isinstance(e, Select) for e in walk(expression))
    return "condition" if choices or functions & _CONDITIONS else "arithmetic"


def _read(schedule: Schedule) -> str:
    """What an epilogue reads: the old C, or tensors of its own."""
    assert schedule.epilogue is not None
    expression, gemm = schedule.epilogue.expression, schedule.gemm
    m, n, _ = roles(gemm)
    found: set[str] = set()
    for e in walk(expression):
        if isinstance(e, Element):
            every = tuple(i.name for i in e.indices if isinstance(i, Var))
            letters = tuple(letter for letter in every if letter in (m, n))
            kinds = {(m,): "rows", (n,): "columns", matrix(gemm.c, gemm): "matrix"}
            own = kinds.get(letters, "turned")
            found.add("C" if e.buffer == gemm.c.tensor else own)
    if found == {"C"} and any(_is_beta(e) for e in walk(expression)):
        return "beta C"
    return "several" if len(found) > 1 else next(iter(found), NONE)


def _is_beta(expr: Expr) -> bool:
    match expr:
        case Binary("*", Var("beta"), Element()):
            return True
        case _:
            return False
