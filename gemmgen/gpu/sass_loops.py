"""The loops of machine code, and which of them is the main one.

Not each branch to a lower address closes a loop: ptxas places what it expects to run rarely, such
as another try at a barrier, after the kernel's end, and a branch leads back from there into the
middle of the text.  Natural loops tell the two apart.
"""

from __future__ import annotations

from itertools import pairwise

from gemmgen.gpu.natural_loops import natural_loops
from gemmgen.gpu.sass import ARITHMETIC, Code, SassInstruction, count

FETCHES = ("LDG", "LDGSTS", "UTMALDG", "UBLKCP", "SYNCS.PHASECHK")
"""Loads from global memory, and looks at a barrier: whether a tile is there that others copy."""


def loops(code: Code) -> tuple[Code, ...]:
    """The body of each loop, by the order of where they begin.

    What of it lies after the kernel's next end is left out: ptxas expects it to run rarely.
    """
    blocks = _blocks(code)
    successors = _successors(code, blocks)
    bodies: list[Code] = []
    for header, starts in sorted(natural_loops(successors, entry=0).items()):
        end = next((at for at in range(header, len(code)) if _ends(code[at])), len(code))
        inside = (at for start in sorted(starts) if start < end for at in blocks[start])
        bodies.append(tuple(code[at] for at in inside))
    return tuple(bodies)


def main_loop(code: Code) -> Code | None:
    """The loop over k tiles: of the innermost loops that compute and fetch what they compute with,
    the one with the most arithmetic; if there is none, of those that compute."""
    computing = [body for body in loops(code) if count(body, *ARITHMETIC)]
    fetching = [body for body in computing if count(body, *FETCHES)]
    candidates = fetching or computing
    innermost = [
        body for body in candidates if not any(_inside(other, body) for other in candidates)
    ]
    return max(innermost, key=lambda body: count(body, *ARITHMETIC), default=None)


def loop_around(code: Code, inner: Code) -> Code | None:
    """The smallest loop of ``code`` that contains the loop ``inner``."""
    around = [body for body in loops(code) if _inside(inner, body)]
    return min(around, key=len, default=None)


def _inside(inner: Code, outer: Code) -> bool:
    """Whether ``inner`` is a smaller part of ``outer``."""
    return len(inner) < len(outer) and set(inner) <= set(outer)


def _blocks(code: Code) -> dict[int, range]:
    """Positions between which nothing branches away or to; by the first of them."""
    targets = {instruction.target for instruction in code}
    starts = {0, len(code)}
    for at, instruction in enumerate(code):
        if instruction.address in targets:
            starts.add(at)
        if instruction.target is not None or _ends(instruction):
            starts.add(at + 1)
    return {begin: range(begin, end) for begin, end in pairwise(sorted(starts))}


def _successors(code: Code, blocks: dict[int, range]) -> dict[int, list[int]]:
    """Which blocks may run after each; of a call both what it calls and what comes after it."""
    positions = {instruction.address: at for at, instruction in enumerate(code)}
    found: dict[int, list[int]] = {}
    for start, block in blocks.items():
        last = code[block[-1]]
        goes_on = block.stop in blocks and not _ends(last) and not _always_branches(last)
        branches = [positions[last.target]] if last.target in positions else []
        found[start] = [block.stop] * goes_on + branches
    return found


def _always_branches(instruction: SassInstruction) -> bool:
    """A condition is a guard, or an operand before the target (``BRA.U UP0, `(.L_x_3)``)."""
    conditional = instruction.guard or "," in instruction.operands
    return instruction.is_a("BRA", "JMP") and not conditional


def _ends(instruction: SassInstruction) -> bool:
    """Whether nothing runs after it."""
    return instruction.is_a("EXIT", "RET") and not instruction.guard
