"""The factors of a schedule besides its directives, and the classes that a schedule has."""

from __future__ import annotations

from gemmgen.ir.dtypes import FP8, ROUNDED
from gemmgen.ir.expr import Binary, Call, Element, Expr, Select, Var, walk
from gemmgen.ir.parameters import ld_name
from gemmgen.ir.target import ONLY, SINCE, has
from gemmgen.schedule.model import DEFAULT_GEMM, Schedule
from gemmgen.schedule.roles import batches, matrix, roles

NONE = "-"
"""The class of what a schedule does not state."""

Plan = dict[str, str]
"""Each factor's class."""

_TYPES = (
    "f32",
    "f64",
    "f16",
    "bf16",
    "halves to f32",
    "f32 to halves",
    "i8 to f32",
    "i8 to i32",
    "i8 to i8",
    "bytes to f32",
    "bytes to bytes",
    *(f"{name} to f32" for name in ROUNDED),
)

NEWER = "sm_90"
"""The target of what older ones have not."""
ALONE = tuple(dict.fromkeys(ONLY.values()))
"""Those of what no other target has."""

FACTORS: dict[str, tuple[str, ...]] = {
    "order A": ("mk", "km"),
    "order B": ("kn", "nk"),
    "order C": ("mn", "nm"),
    "names": ("usual", "other"),
    "batch": (NONE, "both", "A", "B", "two"),
    "types": _TYPES,
    "scales": (NONE, "A", "B", "both"),
    "threads": ("some", "32", "many"),
    "epilogue": (NONE, "arithmetic", "condition", "library"),
    "reads": (NONE, "rows", "columns", "matrix", "transposed", "C", "beta C", "several"),
    "assume": (NONE, "rows", "columns", "k", "whole", "fours", "lds", "all", "equal"),
    "target": (NONE, NEWER, *ALONE),
}
"""``batch`` letters are in both inputs or in one; ``halves`` are f16 and bf16, equal or not;
``bytes`` are e4m3 and e5m2, equal or not; ``scales`` are of blocks of A, of B, or of both; ``some``
threads of a block are 33 to 256; ``reads`` are an epilogue's operands besides the accumulators."""

DRAWN = tuple(name for name in FACTORS if name != "threads")
"""Those that are chosen; threads follow from the directives."""

_FEW_THREADS, _SOME_THREADS = 32, 256
_LIBRARY = frozenset({"exp", "erf", "tanh", "sigmoid", "silu", "gelu", "gelu_tanh"})
_CONDITIONS = frozenset({"relu", "min", "max", "clamp"})


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
        "scales": _scales(schedule),
        "threads": threads_class(threads),
        "epilogue": NONE,
        "reads": NONE,
        "assume": _assumed(schedule),
        "target": _target(schedule.target),
    }
    if schedule.epilogue:
        plan["epilogue"] = _computed(schedule.epilogue.expression)
        plan["reads"] = _read(schedule)
    return plan


def _target(target: str) -> str:
    if target in ALONE:
        return target
    return NEWER if has(target, SINCE["tma"]) else NONE


def _batch(schedule: Schedule) -> str:
    gemm = schedule.gemm
    found = [
        "".join(name for name, access in (("A", gemm.a), ("B", gemm.b)) if letter in access.indices)
        for letter in batches(gemm)
    ]
    if len(found) > 1:
        return "two"
    return {"AB": "both"}.get(found[0], found[0]) if found else NONE


def _scales(schedule: Schedule) -> str:
    gemm = schedule.gemm
    names = {gemm.a.tensor: "A", gemm.b.tensor: "B"}
    found = [names[scale.of] for scale in gemm.scales]
    return "both" if len(found) > 1 else next(iter(found), NONE)


def _usual(schedule: Schedule) -> bool:
    gemm = schedule.gemm
    names = {access.tensor for access in (gemm.a, gemm.b, gemm.c)}
    return names == {"A", "B", "C"} and roles(gemm) == roles(DEFAULT_GEMM)


def _types(schedule: Schedule) -> str:
    gemm, stored = schedule.gemm, dict(schedule.dtypes)
    a, b, c = (stored[access.tensor] for access in (gemm.a, gemm.b, gemm.c))
    if a in FP8 or b in FP8:
        return "bytes to f32" if c == "f32" else "bytes to bytes"
    if "i8" in (a, b):
        return f"i8 to {c}"
    if a in ROUNDED or b in ROUNDED:
        return f"{a if a in ROUNDED else b} to f32"
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
    """What an epilogue reads: the old C, or its own tensors."""
    assert schedule.epilogue is not None
    expression, gemm = schedule.epilogue.expression, schedule.gemm
    m, n, _ = roles(gemm)
    found: set[str] = set()
    for e in walk(expression):
        if isinstance(e, Element):
            every = tuple(i.name for i in e.indices if isinstance(i, Var))
            letters = tuple(letter for letter in every if letter in (m, n))
            kinds = {(m,): "rows", (n,): "columns", matrix(gemm.c, gemm): "matrix"}
            own = kinds.get(letters, "transposed")
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
