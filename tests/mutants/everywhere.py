"""Mutants of a whole text: of functions, the kernel, declarations and the launcher."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, zip_longest

from gemmgen.sim.unit import BEGIN

from . import asynchronous, outside
from .mutants import KINDS as OF_KERNELS
from .mutants import Mutant, closing, mutants, number_changes, operator_changes
from .planted import Change

_LAUNCHER = re.compile(r"cudaError_t (?:gg_encode_map|launch_\w+)\(")


def everywhere(text: str) -> tuple[Mutant, ...]:
    """All of them, in the order of the text; what two rules change alike is one mutant."""
    code = re.sub(r"//[^\n]*", lambda found: " " * len(found[0]), text)
    begin, launcher = text.index(BEGIN), _first(code)
    parts = (
        (_FUNCTIONS, 0, begin),
        (_LAUNCHER_RULES, launcher, len(text)),
        ({"declaration": asynchronous.declarations}, 0, len(text)),
    )
    found: dict[Change, str] = {
        (mutant.start, mutant.before, mutant.after): mutant.kind for mutant in mutants(text)
    }
    for rules, first, last in parts:
        for kind, rule in rules.items():
            for at, before, after in rule(code[first:last]):
                if before != after:
                    found.setdefault((first + at, before, after), kind)
    return tuple(Mutant(text, *change, kind) for change, kind in sorted(found.items()))


def sampled(found: Sequence[Mutant], count: int, seed: int) -> tuple[Mutant, ...]:
    """``count`` of the mutants, as many of each kind as there are, in the order of the text."""
    dice = random.Random(f"{seed} {len(found)}")  # not the same kinds of each kernel
    kinds: dict[str, list[Mutant]] = {}
    for mutant in found:
        kinds.setdefault(mutant.kind, []).append(mutant)
    each = [*kinds.values()]
    dice.shuffle(each)
    for of_kind in each:
        dice.shuffle(of_kind)
    rounds = zip_longest(*each)
    chosen = [mutant for round_ in rounds for mutant in round_ if mutant is not None][:count]
    return tuple(sorted(chosen, key=lambda mutant: (mutant.start, mutant.after)))


def is_of_launcher(mutant: Mutant) -> bool:
    return mutant.start >= _first(mutant.original)


def _first(code: str) -> int:
    """Where the first function of the launcher begins."""
    found = _LAUNCHER.search(code)
    assert found is not None
    return found.start()


# Functions.

_MODIFIERS = {
    "aligned": "",
    "release": "relaxed",
    "acquire": "relaxed",
    "cluster": "cta",
    "cta": "cluster",
    "inc": "dec",
    "dec": "inc",
    "trans": "",
    "read": "",
    "x4": "x2",
    "x2": "x1",
    "expect_tx": "",
    "evict_last": "evict_first",
    "satfinite": "",
    "try_wait": "test_wait",
}
"""Without an instruction of the same shape, as those of ``outside``."""


def _modifiers(code: str) -> Iterator[Change]:
    for template in re.finditer(r'"[^"\n]*"', code):
        for found in re.finditer(r"\.(\w+)", template[0]):
            if found[1] in _MODIFIERS:
                other = _MODIFIERS[found[1]]
                yield template.start() + found.start(), found[0], f".{other}" if other else ""


def _convergence(code: str) -> Iterator[Change]:
    for found in re.finditer(r"__syncwarp\(\);", code):
        yield found.start(), found[0], ";"


def _computed(code: str) -> Iterator[Change]:
    """Numbers and operators of C++."""
    blanked = re.sub(r'"[^"\n]*"|\basm\b[^;]*;', lambda found: " " * len(found[0]), code)
    for found in re.finditer(r"return [^;]*;|(?<== )[^;]*;", blanked):
        for at, before, after in (
            *operator_changes(found[0], 0),
            *number_changes(found[0], 0),
        ):
            yield found.start() + at, before, after
    for found in re.finditer(r"(?<![\w.])(\d+)ULL << (\d+)", blanked):
        yield found.start(1), found[1], str(int(found[1]) + 1)
        yield found.start(2), found[2], str(int(found[2]) - 1)


# Launchers.


def _chained(code: str) -> Iterator[Change]:
    """A call of the runtime left out."""
    for found in re.finditer(r"if \(error == cudaSuccess\)\s+error =[^;]*;", code):
        yield found.start(), found[0], ";"
    for found in re.finditer(r"if \([^()]*\)\s+\w+<<<[^;]*;", code):
        yield found.start(), found[0], ";"
        end = found.start() + closing(found[0], 3)
        yield found.start() + 4, code[found.start() + 4 : end], "true"


def _maps(code: str) -> Iterator[Change]:
    """Another field of a tensor map, or a map that is kept although it should not be."""
    for call in re.finditer(r"gg_encode_map\(\w+_map, [^;]*;", code):
        at = call.start()
        for found in re.finditer(r"\{([^{}]*)\}", call[0]):
            entries = [each.strip() for each in found[1].split(",")]
            if len(entries) > 1:
                backwards = ", ".join(reversed(entries))
                yield at + found.start(1), found[1], backwards
            for entry in entries:
                where = at + found.start(1) + found[1].index(entry)
                yield where, entry, f"{entry} + 1"
                yield where, entry, f"2 * ({entry})"
        for found in re.finditer(r", (\d+)(?=[,)])", call[0]):
            yield at + found.start(1), found[1], str((int(found[1]) + 1) % 4)
    for found in re.finditer(r"steps, 0, swizzle, 2, 0", code):
        for other in ("steps, 1, swizzle, 2, 0", "steps, 0, 0, 2, 0", "steps, 0, swizzle, 2, 1"):
            yield found.start(), found[0], other
    for found in re.finditer(r"(?<=bool same = )[^;]*(?=;)|(?<= same &= )[^;]*(?=;)", code):
        yield found.start(), found[0], "true"
    for found in re.finditer(r"if \(error == 0\) (?=kept = )", code):
        yield found.start(), found[0], ""


def _launches(code: str) -> Iterator[Change]:
    """The configurations of all launches, and their arguments."""
    for found in re.finditer(r"<<<([^;]*?), (\w+), (\w+), stream>>>\(([^;]*)\);", code):
        yield found.start(2), found[2], f"{found[2]} / 2"
        yield found.start(3), found[3], f"{found[3]} + 16"
        yield found.end(3) + 2, "stream", "nullptr"
        words = [*re.finditer(r"[\w.]+", found[4])]
        for one, other in pairwise(words):
            yield found.start(4) + one.start(), one[0], other[0]
    for found in re.finditer(r"(?<=blocks = )tiles < [^;]*;", code):
        yield found.start(), found[0], "tiles;"
        yield found.start(), found[0], "1;"


_FUNCTIONS: dict[str, Callable[[str], Iterator[Change]]] = {
    "asm modifier": _modifiers,
    "convergence": _convergence,
    "function": _computed,
    **outside.FUNCTION_KINDS,
}
_LAUNCHER_RULES: dict[str, Callable[[str], Iterator[Change]]] = {
    "launcher call": _chained,
    "tensor map": _maps,
    "launch": _launches,
    **outside.LAUNCHER_KINDS,
}
KINDS = (*OF_KERNELS, *_FUNCTIONS, *_LAUNCHER_RULES, "declaration")
