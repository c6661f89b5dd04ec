"""A plan made a schedule: numbers, names, and the text's own freedoms."""

from __future__ import annotations

from math import lcm

from gemmgen.base.record import record
from gemmgen.fuzz.dice import Dice
from gemmgen.fuzz.epilogues import Names, epilogue
from gemmgen.fuzz.factors import NONE, SIZES, Plan
from gemmgen.fuzz.grids import NAIVE, WARP, Grid, grids, wish
from gemmgen.fuzz.plans import plan_at
from gemmgen.fuzz.rules import last_shared, widest

STEPS = {"1": (1,), "odd": (3, 5, 7, 9, 13), "even": (2, 6, 10, 14), "fours": (4, 8, 12, 16, 32)}
PARTS = {
    "2": ("parts=2",),
    "more": ("parts=3", "parts=4", "parts=7"),
    "groups": ("parts=4 groups=2", "parts=6 groups=3", "parts=6 groups=2"),
    "atomic": ("parts=2 reduce=atomic", "parts=3 reduce=atomic"),
    "lanes": ("within=warp",),
}
PADS = {"odd": (1, 3, 5, 33), "even": (2, 6, 10), "fours": (4, 8, 16)}
_FRAGMENTS = (16, 32, 48, 64)
"""Steps that tensor cores take."""
_LANES, _MOST_TERMS = (32, 64, 96, 128, 256), 64
"""Steps that lanes share out, and 32-bit registers of a lane's terms."""
_LETTERS = (("row", "col", "d"), ("i", "j", "d"), ("r", "s", "t"), ("u", "v", "w"))
_TENSORS = (("left", "right", "result"), ("X", "Y", "Z"), ("q0", "keys", "scores"), ("P", "Q", "L"))
_BATCHES = (("p", "q"), ("batch", "head"), ("g", "z1"))
_KERNELS = ("gemm", "gemm", "my_gemm", "fused_layer", "f")
_TARGETS = ("sm_80", "sm_80", "sm_80", "sm_75", "sm_86", "sm_90", "sm_120")
_OLD = ("sm_75",)
"""Targets without asynchronous copies."""
_SMALL = ("sm_75",)
"""Targets whose shared memory is too small for two blocks of the most that is drawn."""
_MOST_STAGED, _MOST_SHARED = 64, 48 * 1024


def schedule_at(seed: int, index: int) -> str:
    """The text of the ``index``-th random schedule of a seed."""
    return Draw(Dice(seed, index, "text"), plan_at(seed, index)).text()


@record
class Letters:
    m: str
    n: str
    k: str

    def order(self, code: str) -> list[str]:
        """``["m", "k"]`` of ``mk``, in the schedule's own letters."""
        return [{"m": self.m, "n": self.n, "k": self.k}[letter] for letter in code]


class Draw:
    """Chooses what a plan leaves open, and writes it down."""

    def __init__(self, dice: Dice, plan: Plan):
        self.dice, self.plan = dice, plan
        usual = plan["names"] == "usual"
        self.letters = Letters(*(("m", "n", "k") if usual else dice.pick(_LETTERS)))
        tensors = ("A", "B", "C") if usual else dice.pick(_TENSORS)
        self.tensors = dict(zip("ABC", tensors, strict=True))
        self.batches = self._batches(usual)
        self.indices = {name: self._indices(name) for name in "CAB"}
        self.grid = self._grid()
        self.step = self._step()

    def text(self) -> str:
        """The schedule, one statement a line; the lines stand in any order now and then."""
        head = [self._gemm()] if self._says_gemm() else []
        lines = [*self._heads(), *self._assumes(), *self._blocks(), *self._hops(), *self._late()]
        lines = [line for line in lines if line]
        if self.dice.chance(0.25):
            lines = self.dice.shuffled(lines)
        return "".join(f"{line}\n" for line in (*head, *lines))

    def _batches(self, usual: bool) -> dict[str, str]:
        """The letters that number matrices, and the inputs that have each: ``A``, ``B``, ``AB``."""
        kind = self.plan["batch"]
        one, other = ("b", "h") if usual else self.dice.pick(_BATCHES)
        found = {NONE: {}, "both": {one: "AB"}, "A": {one: "A"}, "B": {one: "B"}}.get(kind)
        if found is None:
            found = {one: "AB", other: self.dice.pick(("AB", "A", "B"))}
        return found

    def _indices(self, name: str) -> list[str]:
        """A tensor's letters.  Batches stand anywhere but last; in C a row's or a column's stands
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

    def _grid(self) -> Grid:
        """Sizes that the plan allows; any, where it allows none."""
        found = grids(wish(self.plan))
        if found:
            return self.dice.pick(found)
        return Grid((1, 1), 0, self.dice.pick((NAIVE, (16, 16), (4, 8))))

    def _step(self) -> int:
        """A step whose tiles are no larger than they need be."""
        steps = STEPS.get(self.plan["tile"], (0,))
        if self.plan["tensor"] != NONE:
            steps = _FRAGMENTS
        if self.plan["parts"] == "lanes":
            return self._step_of_lanes()
        m, n = self.grid.tile
        threads = self.grid.count
        stages = max(int(self.plan["stages A"]), int(self.plan["stages B"]))
        size = max(SIZES[self.plan["types"]][:2])
        along = [
            int(self.plan[f"{name}.global"])
            for name in "AB"
            if self.plan[f"order {name}"][1] == "k" and self.plan[f"cache {name}"] != NONE
        ]
        fitting = [
            step
            for step in steps
            if step * (m + n) <= _MOST_STAGED * threads
            and size * stages * (step * (m + n) + 16 * step) <= _MOST_SHARED
            and all(step % width == 0 for width in along)
        ]
        if not fitting or (self.dice.chance(0.03) and max(along, default=1) < 8):
            return steps[0] if not fitting else steps[-1]
        return self.dice.pick(fitting)

    def _step_of_lanes(self) -> int:
        """A step that lanes can share out, and not too many terms of."""
        wide = [
            int(self.plan[f"{name}.global"])
            for name in "AB"
            if self.plan[f"order {name}"][1] == "k"
        ]
        least = WARP * max(wide, default=1)
        size = max(SIZES[self.plan["types"]][:2])
        fitting = [
            step
            for step in _LANES
            if step % least == 0 and sum(self.grid.micro) * step * size <= _MOST_TERMS * WARP * 4
        ]
        return self.dice.pick(fitting) if fitting else least

    def _access(self, name: str) -> str:
        return f"{self.tensors[name]}[{', '.join(self.indices[name])}]"

    def _gemm(self) -> str:
        return f"gemm {self._access('C')} = {self._access('A')} * {self._access('B')}"

    def _says_gemm(self) -> bool:
        plan = self.plan
        orders = plan["order A"], plan["order B"], plan["order C"], plan["names"]
        unusual = orders != ("mk", "kn", "mn", "usual") or bool(self.batches)
        return unusual or self.dice.chance(0.7)

    def _heads(self) -> list[str]:
        kernel, target = self.dice.pick(_KERNELS), self.dice.pick(_TARGETS)
        if target in _OLD and self.plan["copies"] != NONE and not self.dice.chance(0.1):
            target = "sm_80"
        types = self._types()
        if target in _OLD and "bf16" in types and not self.dice.chance(0.1):
            target = "sm_80"
        if target in _SMALL and self.plan["blocks"] == "more":
            target = "sm_80"
        lines = [f"kernel {kernel}"] if kernel != "gemm" else []
        lines += [f"target {target}"] if target != "sm_80" else []
        lines += [f"dtype {types}"] if types else []
        if self.dice.chance(0.1):
            lines.append(self.dice.pick(("require threads <= 1024", "require shared <= 160KiB")))
        return lines

    def _types(self) -> str:
        """What a ``dtype`` line says; nothing but f32 is said now and then."""
        plan, names = self.plan["types"], [self.tensors[name] for name in "ABC"]
        halves = ("f16", "bf16")
        if plan == "halves to f32":
            one, other = self.dice.pick(halves), self.dice.pick(halves)
            other = other if self.plan["tensor"] == NONE else one
            return f"{names[0]}={one} {names[1]}={other}"
        if plan == "f32 to halves":
            return f"{names[2]}={self.dice.pick(halves)}"
        if plan == "f32":
            return f"{self.dice.pick(names)}=f32" if self.dice.chance(0.1) else ""
        said = [f"{name}={plan}" for name in names]
        return " ".join([*said, "acc=f64"] if plan == "f64" else said)

    def _assumes(self) -> list[str]:
        letters, (m, n) = self.letters, self.grid.tile
        whole = [
            f"assume {letter.upper()} % {max(size, 2)} == 0"
            for letter, size in ((letters.m, m), (letters.n, n), (letters.k, self.step or 8))
        ]
        lds = [
            f"assume ld{self.tensors[name].lower()} == "
            + letters.order(self.plan[f"order {name}"])[1].upper()
            for name in "ABC"
        ]
        fours = [f"assume {x.upper()} % 4 == 0" for x in (letters.m, letters.n, letters.k)]
        pair = self.dice.shuffled((letters.m, letters.n, letters.k))[:2]
        known = {
            "rows": whole[:1],
            "columns": whole[1:2],
            "terms": whole[2:],
            "whole": whole,
            "fours": fours,
            "lds": lds[self.dice.below(3) :],
            "all": [*whole, *lds],
            "equal": [f"assume {pair[0].upper()} == {pair[1].upper()}"],
        }
        return known.get(self.plan["assume"], [])

    def _blocks(self) -> list[str]:
        """bind, tile, cache_shared, warp_tile, register_block."""
        plan, grid = self.plan, self.grid
        m, n, k = self.letters.m, self.letters.n, self.letters.k
        lines: list[str] = []
        if plan["bind"] != NONE:
            x, y = self.letters.order("mn" if plan["bind"] == "m" else "nm")
            lines.append(f"bind x={x}" + (f" y={y}" if self.dice.chance(0.5) else ""))
        if plan["tile"] != NONE:
            step = f" {k}={self.step}" if self.step else ""
            lines.append(f"tile {m}={grid.tile[0]} {n}={grid.tile[1]}{step}")
        cached = [self._cached(name) for name in "AB" if plan[f"cache {name}"] != NONE]
        lines += self._together("cache_shared", cached)
        if plan["warp"] != NONE:
            lanes = [1, 1]
            if plan["warp"] != "fragments":
                lanes = [int(size) for size in plan["warp"].split("x")]
            lines.append(f"warp_tile {m}={lanes[0] * grid.micro[0]} {n}={lanes[1] * grid.micro[1]}")
        if plan["tensor"] != NONE:
            lines.append(f"tensor_core via={plan['tensor']}")
        if plan["register m"] != NONE or plan["register n"] != NONE:
            block = f"register_block {m}={grid.micro[0]} {n}={grid.micro[1]}"
            block += f" interleave={grid.interleave}" if grid.interleave else ""
            said = plan["order"] != "rows" or self.dice.chance(0.1)
            lines.append(block + (f" order={plan['order']}" if said else ""))
        return lines

    def _cached(self, name: str) -> str:
        kept = self.plan[f"cache {name}"] == "kept"
        if kept and self.dice.chance(0.5):
            return self.tensors[name]
        order = self.letters.order(self.plan[f"order {name}"])
        return f"{self.tensors[name]}[{', '.join(order if kept else order[::-1])}]"

    def _together(self, word: str, operands: list[str], rest: str = "") -> list[str]:
        """One statement for all operands, or one each."""
        if len(operands) > 1 and self.dice.chance(0.3):
            return [f"{word} {operand}{rest}" for operand in operands]
        return [f"{word} {' '.join(operands)}{rest}"] if operands else []

    def _hops(self) -> list[str]:
        """vectorize, pad, swizzle, double_buffer, async_copy."""
        plan, lines = self.plan, list[str]()
        widths: dict[str, list[str]] = {}
        for operand, width in (hop for name in "ABC" for hop in self._widths(name)):
            if width != "1" or self.dice.chance(0.03):
                widths.setdefault(width, []).append(operand)
        for width, operands in widths.items():
            lines += self._together("vectorize", operands, f" width={width}")
        for name in "AB":
            if plan[f"pad {name}"] != NONE:
                lines.append(f"pad {self.tensors[name]} by={self._pad(name)}")
            if plan[f"swizzle {name}"] != NONE:
                lines.append(f"swizzle {self.tensors[name]} {self._swizzle(name)}")
        stages: dict[str, list[str]] = {}
        for name in "AB":
            if plan[f"stages {name}"] != "1":
                operand = self.tensors[name] + (".shared" if self.dice.chance(0.2) else "")
                stages.setdefault(plan[f"stages {name}"], []).append(operand)
            if plan[f"ahead {name}"] != NONE:
                stages.setdefault("2", []).append(f"{self.tensors[name]}.register")
        for count, operands in stages.items():
            said = "" if count == "2" and self.dice.chance(0.7) else f" stages={count}"
            lines += self._together("double_buffer", operands, said)
        if plan["copies"] != NONE:
            copied = [self.tensors[name] for name in "AB" if plan[f"cache {name}"] != NONE]
            lines += self._together("async_copy", copied, f" via={plan['copies']}")
        if plan["residue"] != NONE:
            lines.append(f"residue {self.letters.k}={plan['residue']}")
        return lines

    def _widths(self, name: str) -> list[tuple[str, str]]:
        """Operands and their widths: bare where every hop has the same one."""
        plan, tensor = self.plan, self.tensors[name]
        loads, reads = plan[f"{name}.global"], plan.get(f"{name}.shared")
        cached = plan.get(f"cache {name}") not in (None, NONE)
        micro = plan["register m"] != NONE
        if name == "C" or (cached and (loads == reads or not micro)):
            bare = name == "C" or (loads == reads and micro) or reads == "1"
            if bare and self.dice.chance(0.7):
                return [(tensor, loads)]
        hops = [(f"{tensor}.global", loads)]
        return hops if reads is None else [*hops, (f"{tensor}.shared", reads)]

    def _pad(self, name: str) -> int:
        pads = PADS[self.plan[f"pad {name}"]]
        small = last_shared(self.plan, name) != "k" or self.step > 8
        fitting = [pad for pad in pads if pad % widest(self.plan, name) == 0] or pads
        return self.dice.pick(fitting if small else fitting[:3])

    def _swizzle(self, name: str) -> str:
        """The rows of the pattern; the rest now and then, where it is right in any case."""
        free = self.grid.tile["AB".index(name)]
        rows = free if last_shared(self.plan, name) == "k" else self.step
        said = f"by={self.plan[f'swizzle {name}']}"
        if rows > 4 and self.dice.chance(0.4):
            said += f" every={self.dice.pick((1, 2, 4))}"
        if self.dice.chance(0.3):
            said += f" chunk={widest(self.plan, name)}"
        return said

    def _unroll(self) -> str:
        plan, k = self.plan, self.letters.k
        parts: list[str] = []
        if plan["unroll"] != NONE:
            part = self.dice.pick((2, 3, 8)) if not self.step else 2
            steps = {"1": 1, "part": part, "whole": self.step}[plan["unroll"]]
            parts.append(f"{k}={steps}")
        if plan["rounds"] != NONE:
            stages = lcm(int(plan["stages A"]), int(plan["stages B"]))
            parts.append(f"tile_{k}={stages if stages > 1 else self.dice.pick((2, 3))}")
        return f"unroll {' '.join(parts)}" if parts else ""

    def _late(self) -> list[str]:
        """unroll, launch_bounds, raster, split_k, fuse_epilogue."""
        plan, letters = self.plan, self.letters
        lines = [self._unroll()]
        if plan["blocks"] != NONE:
            lines.append(f"launch_bounds blocks={1 if plan['blocks'] == '1' else 2}")
        if plan["raster"] != NONE:
            group = 2 if plan["raster"] == "2" else self.dice.pick((3, 4, 5, 8, 64))
            lines.append(f"raster group={group}")
        if plan["parts"] != NONE:
            lines.append(f"split_k {self.dice.pick(PARTS[plan['parts']])}")
        if plan["epilogue"] != NONE:
            kept = ", ".join(letters.order(plan["order C"]))
            turned = ", ".join(letters.order(plan["order C"][::-1]))
            batches = tuple(x for x in self.indices["C"] if x in self.batches)
            names = Names(letters.m, letters.n, self._access("C"), turned, kept, batches)
            told = epilogue(self.dice, plan["epilogue"], plan["reads"], names)
            lines.append(f"fuse_epilogue {told}")
        return lines
