"""What can differ between two schedules: factors, each with a few classes of values."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from gemmgen.ir.expr import Binary, Call, Element, Expr, Select, Var, walk
from gemmgen.ir.parameters import ld_name
from gemmgen.schedule.model import DEFAULT_GEMM, Directive, Schedule
from gemmgen.schedule.roles import batches, matrix, roles
from gemmgen.schedule.spec import Role

NONE = "-"
"""The class of what a schedule does not say."""

Plan = dict[str, str]
"""Each factor's class."""
Pair = tuple[str, str, str, str]
"""Two factors, in the order of ``FACTORS``, and their classes."""

SIZES = {
    "f32": (4, 4, 4),
    "f64": (8, 8, 8),
    "f16": (2, 2, 2),
    "bf16": (2, 2, 2),
    "halves to f32": (2, 2, 4),
    "f32 to halves": (4, 4, 2),
}
"""Classes of types, and the bytes of A's, B's and C's elements."""

_PARITY = ("odd", "even", "fours")
_STAGES = ("1", "2", "3", "4")
_WIDTHS = ("1", "2", "4", "8")
_ROWS = ("2", "4", "8")

FACTORS: dict[str, tuple[str, ...]] = {
    "order A": ("mk", "km"),
    "order B": ("kn", "nk"),
    "order C": ("mn", "nm"),
    "names": ("usual", "other"),
    "batch": (NONE, "both", "A", "B", "two"),
    "types": tuple(SIZES),
    "bind": (NONE, "m", "n"),
    "tile": (NONE, "no step", "1", *_PARITY),
    "cache A": (NONE, "kept", "turned"),
    "cache B": (NONE, "kept", "turned"),
    "warp": (NONE, "8x4", "4x8", "16x2", "2x16", "32x1", "1x32", "fragments"),
    "tensor": (NONE, "wmma"),
    "register m": (NONE, "1", *_PARITY),
    "register n": (NONE, "1", *_PARITY),
    "interleave": (NONE, "1", "2", "4", "other"),
    "order": ("rows", "serpentine", "zigzag"),
    "threads": ("32", "some", "many"),
    "A.global": _WIDTHS,
    "A.shared": _WIDTHS,
    "B.global": _WIDTHS,
    "B.shared": _WIDTHS,
    "C.global": _WIDTHS,
    "pad A": (NONE, *_PARITY),
    "pad B": (NONE, *_PARITY),
    "swizzle A": (NONE, *_ROWS),
    "swizzle B": (NONE, *_ROWS),
    "stages A": _STAGES,
    "stages B": _STAGES,
    "ahead A": (NONE, "yes"),
    "ahead B": (NONE, "yes"),
    "copies": (NONE, "cp_async"),
    "residue": (NONE, "first"),
    "unroll": (NONE, "1", "part", "whole"),
    "rounds": (NONE, "yes"),
    "blocks": (NONE, "1", "more"),
    "raster": (NONE, "2", "more"),
    "parts": (NONE, "2", "more", "groups", "atomic", "lanes"),
    "epilogue": (NONE, "arithmetic", "condition", "library"),
    "reads": (NONE, "rows", "columns", "matrix", "turned", "C", "beta C", "several"),
    "assume": (NONE, "rows", "columns", "terms", "whole", "fours", "lds", "all", "equal"),
}
"""``batch`` letters are in both inputs or in one; ``halves`` are f16 and bf16, alike or not;
``even`` is 2 mod 4; ``kept`` keeps the order of global memory; widths are those of the hops;
``some`` threads are 33 to 256; ``part`` of a tile's steps, or any steps where k is not split;
``rounds`` are of as many tiles as come back to the same stages; a warp's ``fragments`` are those of
tensor cores; ``lanes`` of a warp share out steps, too."""

_LIBRARY = frozenset({"exp", "erf", "tanh", "sigmoid", "silu", "gelu", "gelu_tanh"})
_CONDITIONS = frozenset({"relu", "min", "max", "clamp"})
_FEW_THREADS, _SOME_THREADS = 32, 256


def pairs(plan: Plan) -> Iterator[Pair]:
    """The pairs of classes in a plan."""
    for first, second in combinations(FACTORS, 2):
        yield first, second, plan[first], plan[second]


def plan_of(schedule: Schedule, threads: int) -> Plan:
    """The classes that a schedule has; ``threads`` are those of its block."""
    facts = _Facts(schedule)
    m, n, k = roles(schedule.gemm)
    plan = {
        "order A": "mk" if facts.indices["a"][0] == m else "km",
        "order B": "kn" if facts.indices["b"][0] == k else "nk",
        "order C": "mn" if facts.indices["c"][0] == m else "nm",
        "names": "usual" if _usual(schedule) else "other",
        "batch": _batch(schedule),
        "types": _types(schedule),
        "bind": {None: NONE, m: "m", n: "n"}[facts.word("bind", "x")],
        "tile": facts.tile(k),
        "warp": facts.warp(m, n),
        "tensor": facts.word("tensor_core", "via") or NONE,
        "register m": _parity(facts.number("register_block", m)),
        "register n": _parity(facts.number("register_block", n)),
        "interleave": _listed(facts.number("register_block", "interleave"), "124", "other"),
        "order": facts.word("register_block", "order") or "rows",
        "threads": "32" if threads <= _FEW_THREADS else _some(threads),
        "C.global": facts.value("vectorize", "c", "global", "width", 1),
        "copies": facts.word("async_copy", "via") or NONE,
        "residue": facts.word("residue", k) or NONE,
        "unroll": facts.unrolled(k),
        "rounds": NONE if facts.number("unroll", f"tile_{k}") < 2 else "yes",
        "blocks": _listed(facts.number("launch_bounds", "blocks"), "1", "more"),
        "raster": _listed(facts.number("raster", "group"), "2", "more"),
        "parts": facts.parts(),
        "epilogue": NONE,
        "reads": NONE,
        "assume": _assumed(schedule),
    }
    roles_of: tuple[tuple[str, Role], ...] = (("A", "a"), ("B", "b"))
    for name, role in roles_of:
        plan[f"cache {name}"] = facts.cached(role)
        for hop in ("global", "shared"):
            plan[f"{name}.{hop}"] = facts.value("vectorize", role, hop, "width", 1)
        if NONE in (plan[f"cache {name}"], plan["register m"]):
            plan[f"{name}.shared"] = "1"  # there is no such hop: a bare operand means the other
        plan[f"pad {name}"] = _parity(int(facts.value("pad", role, "", "by", 0)), one="odd")
        plan[f"swizzle {name}"] = facts.swizzled(role)
        plan[f"stages {name}"] = facts.value("double_buffer", role, "shared", "stages", 1, 2)
        ahead = facts.value("double_buffer", role, "register", "stages", 1, 2)
        plan[f"ahead {name}"] = NONE if ahead == "1" else "yes"
    if schedule.epilogue:
        plan["epilogue"] = _computed(schedule.epilogue.expression)
        plan["reads"] = _read(schedule)
    return {factor: plan[factor] for factor in FACTORS}


class _Facts:
    """Reads directives by role and letter."""

    def __init__(self, schedule: Schedule):
        self.schedule, gemm = schedule, schedule.gemm
        self.tensor = {"a": gemm.a.tensor, "b": gemm.b.tensor, "c": gemm.c.tensor}
        accesses = {"a": gemm.a, "b": gemm.b, "c": gemm.c}
        self.indices = {role: matrix(access, gemm) for role, access in accesses.items()}

    def of(self, name: str) -> Iterator[Directive]:
        return (d for d in self.schedule.directives if d.name == name)

    def argument(self, name: str, argument: str) -> int | str | None:
        values = (a.value for d in self.of(name) for a in d.arguments if a.name == argument)
        return next(values, None)

    def number(self, name: str, argument: str) -> int:
        value = self.argument(name, argument)
        return value if isinstance(value, int) else 0

    def word(self, name: str, argument: str) -> str | None:
        value = self.argument(name, argument)
        return value if isinstance(value, str) else None

    def value(
        self, name: str, role: Role, hop: str, argument: str, absent: int, default: int = 0
    ) -> str:
        """What a directive says of one hop; a bare operand is the shared tile's for stages."""
        bare = ("global", "shared", "") if name != "double_buffer" else ("shared",)
        for directive in self.of(name):
            for operand in directive.operands:
                meant = operand.hop == hop or (operand.hop is None and hop in bare)
                if operand.tensor == self.tensor[role] and meant:
                    given = (a.value for a in directive.arguments if a.name == argument)
                    return str(next(given, default))
        return str(absent)

    def parts(self) -> str:
        if self.word("split_k", "within"):
            return "lanes"
        if self.number("split_k", "parts") < 2:
            return NONE
        if self.word("split_k", "reduce") == "atomic":
            return "atomic"
        if self.number("split_k", "groups") > 1:
            return "groups"
        return _listed(self.number("split_k", "parts"), "2", "more")

    def cached(self, role: Role) -> str:
        for directive in self.of("cache_shared"):
            for operand in directive.operands:
                if operand.tensor == self.tensor[role]:
                    return "kept" if operand.indices == self.indices[role] else "turned"
        return NONE

    def tile(self, k: str) -> str:
        if not any(self.of("tile")):
            return NONE
        return _parity(self.number("tile", k)) if self.number("tile", k) else "no step"

    def swizzled(self, role: Role) -> str:
        rows = self.value("swizzle", role, "", "by", 1, 8)
        return NONE if rows == "1" else rows if rows in _ROWS else "8"

    def unrolled(self, k: str) -> str:
        steps = self.number("unroll", k)
        if steps < 2:
            return "1" if steps else NONE
        return "whole" if steps == self.number("tile", k) else "part"

    def warp(self, m: str, n: str) -> str:
        if not any(self.of("warp_tile")):
            return NONE
        if any(self.of("tensor_core")):
            return "fragments"
        lanes = (
            self.number("warp_tile", x) // (self.number("register_block", x) or 1) for x in (m, n)
        )
        return "x".join(map(str, lanes))


def _some(threads: int) -> str:
    return "some" if threads <= _SOME_THREADS else "many"


def _parity(value: int, one: str = "1") -> str:
    if value <= 1:
        return one if value else NONE
    return "odd" if value % 2 else "fours" if value % 4 == 0 else "even"


def _listed(value: int, known: str, otherwise: str) -> str:
    if not value:
        return NONE
    return str(value) if str(value) in known else otherwise


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
        return {m: "rows", n: "columns", k: "terms"}[next(iter(divided)).lower()]
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
