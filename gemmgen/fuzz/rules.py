"""Which classes go together: the combinations of the schedule language, as rules over plans.

They are told apart from the compiler's own checks on purpose: where the two disagree, one is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache

from gemmgen.base.record import record
from gemmgen.fuzz.factors import FACTORS, NONE, SIZES, Plan
from gemmgen.fuzz.grids import grids, last_shared, permuted, whole_runs, widest, wish

Chosen = Mapping[str, str]


@record
class Rule:
    """``holds`` where all of ``factors`` are chosen; ``says`` why not, for a person.

    Rules ``of_sizes`` have to do with so many factors that they tell nothing of any one.
    """

    says: str
    factors: frozenset[str]
    holds: Callable[[Chosen], bool]
    of_sizes: bool = False


def broken(plan: Chosen) -> str | None:
    """The first rule that a (partial) plan breaks, in words."""
    for rule in RULES:
        if plan.keys() >= rule.factors and not rule.holds(plan):
            return rule.says
    return None


def broken_by(plan: Chosen, factor: str, sized: bool = True) -> Rule | None:
    """The first rule about ``factor`` that its choice breaks, of those whose factors are chosen;
    not ``sized``, of those that are not of sizes."""
    chosen = plan.keys()
    for rule in _about(factor, sized):
        if chosen >= rule.factors and not rule.holds(plan):
            return rule
    return None


@cache
def _about(factor: str, sized: bool) -> tuple[Rule, ...]:
    return tuple(r for r in RULES if factor in r.factors and (sized or not r.of_sizes))


def _implies(says: str, first: str, second: str, allowed: Callable[[str, str], bool]) -> Rule:
    return Rule(says, frozenset((first, second)), lambda p: allowed(p[first], p[second]))


_STEP_WIDTHS = {"1": "1", "odd": "1", "even": "12", "fours": "1248"}
_STEPS_OF = {"even": 2, "fours": 4}
"""What all steps of a class are multiples of."""
_PADS = {
    1: (NONE, "odd", "even", "fours"),
    2: (NONE, "even", "fours"),
    4: (NONE, "fours"),
    8: (NONE, "fours"),
}
_ACCESS, _COPY = 16, 4
"""Bytes of the widest access, and of the smallest asynchronous copy."""


def _size(types: str, name: str) -> int:
    return SIZES[types]["ABC".index(name)]


def _accesses(name: str, hops: tuple[str, ...]) -> Iterator[Rule]:
    for hop in hops:
        yield _implies(
            "an access has sixteen bytes at the most",
            "types",
            f"{name}.{hop}",
            lambda types, width: int(width) * _size(types, name) <= _ACCESS,
        )


def _of_operand(name: str) -> Iterator[Rule]:
    free = "m" if name == "A" else "n"
    order, cache_, micro = f"order {name}", f"cache {name}", f"register {free}"
    loads, reads = f"{name}.global", f"{name}.shared"
    yield _implies(
        "a shared tile needs a step of k",
        "tile",
        cache_,
        lambda tile, kept: kept == NONE or tile not in (NONE, "no step"),
    )
    yield Rule(
        "a wide load needs a copy that it is part of",
        frozenset((loads, cache_, micro, order, "parts")),
        lambda p: p[loads] == "1"
        or p[cache_] != NONE
        or (p[order][1] == "k" if p["parts"] == "lanes" else p[micro] != NONE),
    )
    yield Rule(
        "a wide load along k divides the step, or lands in no fragment but a lane's",
        frozenset((loads, order, cache_, "tile", "parts")),
        lambda p: p[loads] == "1"
        or p[order][1] != "k"
        or p["parts"] == "lanes"
        or (p[cache_] != NONE and p[loads] in _STEP_WIDTHS.get(p["tile"], "")),
    )
    yield Rule(
        "a wide fragment reads neighbours from a shared tile",
        frozenset((reads, cache_, micro, order)),
        lambda p: p[reads] == "1"
        or (p[cache_] != NONE and p[micro] != NONE and last_shared(p, name) == free),
    )
    yield Rule(
        "a pad keeps rows aligned",
        frozenset((f"pad {name}", cache_, loads, reads, "tensor")),
        lambda p: p[f"pad {name}"] == NONE
        or (p[cache_] != NONE and p[f"pad {name}"] in _PADS[widest(p, name)]),
    )
    swizzle = f"swizzle {name}"
    yield Rule(
        "a tile in shared memory is swizzled or padded",
        frozenset((swizzle, f"pad {name}", cache_)),
        lambda p: p[swizzle] == NONE or (p[cache_] != NONE and p[f"pad {name}"] == NONE),
    )
    yield Rule(
        "chunks change places within a row",
        frozenset((swizzle, cache_, order, "tile", loads, reads, "tensor")),
        lambda p: last_shared(p, name) != "k" or permuted(p, name) <= _STEPS_OF.get(p["tile"], 1),
    )
    yield from _read_ahead(name)


def _read_ahead(name: str) -> Iterator[Rule]:
    """Stages of one operand's tiles, and its fragments."""
    free = "m" if name == "A" else "n"
    cache_, micro, reads = f"cache {name}", f"register {free}", f"{name}.shared"
    yield _implies(
        "stages need a shared tile",
        f"stages {name}",
        cache_,
        lambda stages, kept: stages == "1" or kept != NONE,
    )
    yield Rule(
        "fragments need a micro-tile, or tensor cores",
        frozenset((f"ahead {name}", micro, "tensor")),
        lambda p: p[f"ahead {name}"] == NONE or (p[micro], p["tensor"]) != (NONE, NONE),
    )
    yield Rule(
        "a thread's neighbours are whole accesses",
        frozenset((micro, "tensor", "interleave", reads, "order C", "C.global")),
        lambda p: whole_runs(p, free, reads),
    )
    yield Rule(
        "a store is no wider than the pieces that the fragment's reads make",
        frozenset(("interleave", reads, micro, "order C", "C.global")),
        lambda p: p["interleave"] != NONE
        or p["order C"][1] != free
        or p[reads] == "1"
        or int(p["C.global"]) <= int(p[reads]),
    )


def _copied(name: str) -> Iterator[Rule]:
    """Tiles of one operand that ``cp.async`` copies."""
    cache_, loads = f"cache {name}", f"{name}.global"
    yield Rule(
        "an asynchronous copy has four bytes at the least",
        frozenset(("copies", cache_, loads, "types")),
        lambda p: NONE in (p["copies"], p[cache_])
        or int(p[loads]) * _size(p["types"], name) >= _COPY,
    )
    yield Rule(
        "asynchronous copies are under way while another stage is used",
        frozenset(("copies", cache_, f"stages {name}")),
        lambda p: p["copies"] == NONE or p[cache_] == NONE or p[f"stages {name}"] != "1",
    )
    yield Rule(
        "asynchronous copies do not scatter what they read wide",
        frozenset(("copies", cache_, loads)),
        lambda p: p["copies"] == NONE or p[cache_] != "turned" or p[loads] == "1",
    )


_TENSOR = {
    "types": ("f16", "bf16", "halves to f32"),
    "tile": ("fours",),
    "cache A": ("kept", "turned"),
    "cache B": ("kept", "turned"),
    "warp": (NONE, "fragments"),
    "register m": (NONE,),
    "register n": (NONE,),
    "swizzle A": (NONE,),
    "swizzle B": (NONE,),
    "unroll": (NONE, "whole"),
}
"""What goes together with tensor cores."""


def _on_tensor_cores() -> Iterator[Rule]:
    for factor, classes in _TENSOR.items():
        yield _implies(
            f"tensor cores go with {' or '.join(classes)} as {factor}",
            "tensor",
            factor,
            lambda tensor, chosen, classes=classes: tensor == NONE or chosen in classes,
        )
    yield _implies(
        "a warp's fragments are those of tensor cores",
        "tensor",
        "warp",
        lambda tensor, warp: tensor != NONE or warp != "fragments",
    )


_LANES = {
    "tile": ("fours",),
    "cache A": (NONE,),
    "cache B": (NONE,),
    "warp": (NONE,),
    "tensor": (NONE,),
    "ahead A": (NONE,),
    "ahead B": (NONE,),
    "unroll": (NONE,),
}
"""What goes together with lanes that share sums."""


def _of_lanes() -> Iterator[Rule]:
    for factor, classes in _LANES.items():
        yield _implies(
            f"lanes share sums with {' or '.join(classes)} as {factor}",
            "parts",
            factor,
            lambda parts, chosen, classes=classes: parts != "lanes" or chosen in classes,
        )


_AHEAD = {
    "tile": ("1", "odd", "even", "fours"),
    "cache A": ("kept", "turned"),
    "cache B": ("kept", "turned"),
    "stages A": ("2", "3", "4"),
    "stages B": ("2", "3", "4"),
    "parts": (NONE,),
}
"""What goes together with a ragged first tile."""


def _of_a_ragged_first_tile() -> Iterator[Rule]:
    for factor, classes in _AHEAD.items():
        yield _implies(
            f"a ragged first tile goes with {' or '.join(classes)} as {factor}",
            "residue",
            factor,
            lambda residue, chosen, classes=classes: residue == NONE or chosen in classes,
        )
    for name in "AB":
        order, loads = f"order {name}", f"{name}.global"
        yield Rule(
            "a ragged first tile is read wide along k where the extent is known to allow it",
            frozenset(("residue", order, loads, "assume")),
            lambda p, order=order, loads=loads: p["residue"] == NONE
            or p[order][1] != "k"
            or p[loads] == "1"
            or p["assume"] in ("terms", "whole", "all")
            or (p["assume"] == "fours" and int(p[loads]) <= 4),
        )


_GRID = (
    (
        "tensor",
        "parts",
        "tile",
        "bind",
        "order A",
        "order B",
        "order C",
        "cache A",
        "cache B",
        "warp",
        "threads",
    ),
    ("register m", "register n", "interleave", "A.global", "A.shared", "B.global", "B.shared"),
    ("C.global", "swizzle A", "swizzle B"),
)

RULES: tuple[Rule, ...] = (
    _implies(
        "a micro-tile has both sizes",
        "register m",
        "register n",
        lambda m, n: (m == NONE) == (n == NONE),
    ),
    _implies(
        "a warp's tile needs a micro-tile",
        "warp",
        "register m",
        lambda warp, m: warp == NONE or m != NONE,
    ),
    _implies(
        "pieces are pieces of a micro-tile",
        "interleave",
        "register m",
        lambda piece, m: piece == NONE or m != NONE,
    ),
    _implies(
        "an order is that of a micro-tile",
        "order",
        "register m",
        lambda o, m: o == "rows" or m != NONE,
    ),
    _implies(
        "zigzag takes rows in pairs",
        "order",
        "register m",
        lambda o, m: o != "zigzag" or m in ("even", "fours"),
    ),
    _implies(
        "steps are unrolled in equal parts",
        "unroll",
        "tile",
        lambda unroll, tile: unroll in (NONE, "1")
        or (
            tile in ("odd", "even", "fours")
            if unroll == "whole"
            else tile in (NONE, "no step", "fours")
        ),
    ),
    Rule(
        "fragments read ahead alternate",
        frozenset(("unroll", "tile", "ahead A", "ahead B")),
        lambda p: p["unroll"] != "1"
        or p["tile"] in (NONE, "no step", "1")
        or p["ahead A"] == p["ahead B"] == NONE,
    ),
    _implies(
        "rounds are of tiles of k",
        "rounds",
        "tile",
        lambda rounds, tile: rounds == NONE or tile not in (NONE, "no step"),
    ),
    _implies(
        "parts are of steps of k",
        "parts",
        "tile",
        lambda parts, tile: parts == NONE or tile not in (NONE, "no step"),
    ),
    _implies(
        "several blocks are small ones",
        "blocks",
        "threads",
        lambda blocks, threads: blocks != "more" or threads != "many",
    ),
    Rule(
        "wide stores need a micro-tile, or tensor cores",
        frozenset(("C.global", "register m", "tensor")),
        lambda p: p["C.global"] == "1" or (p["register m"], p["tensor"]) != (NONE, NONE),
    ),
    *_on_tensor_cores(),
    *_of_lanes(),
    *_of_a_ragged_first_tile(),
    _implies(
        "what an epilogue reads needs an epilogue",
        "epilogue",
        "reads",
        lambda epilogue, reads: epilogue != NONE or reads == NONE,
    ),
    *_of_operand("A"),
    *_of_operand("B"),
    Rule(
        "asynchronous copies fill shared tiles",
        frozenset(("copies", "cache A", "cache B")),
        lambda p: p["copies"] == NONE or (p["cache A"], p["cache B"]) != (NONE, NONE),
    ),
    Rule(
        "asynchronous copies are the same number of tiles ahead",
        frozenset(("copies", "cache A", "cache B", "stages A", "stages B")),
        lambda p: NONE in (p["copies"], p["cache A"], p["cache B"])
        or p["stages A"] == p["stages B"],
    ),
    *_copied("A"),
    *_copied("B"),
    *_accesses("A", ("global", "shared")),
    *_accesses("B", ("global", "shared")),
    *_accesses("C", ("global",)),
    Rule(
        "there are sizes for this block",
        frozenset(factor for group in _GRID for factor in group),
        lambda p: bool(grids(wish(dict(p)))),
        of_sizes=True,
    ),
    Rule(
        "there are sizes for this micro-tile",
        frozenset((*_GRID[1][:3], "tensor", "parts", "tile", "warp", "threads", "bind", "order C")),
        lambda p: bool(grids(wish(_narrow(p)))),
        of_sizes=True,
    ),
)


_FIRST: Plan = {factor: classes[0] for factor, classes in FACTORS.items()}


def _narrow(chosen: Chosen) -> Plan:
    """A plan with nothing wide in it."""
    return _FIRST | dict(chosen)
