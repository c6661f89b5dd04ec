"""``python -m tests.hostile.names``: give schedules names that their texts use, and report."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from gemmgen.pipeline import Emitted
from gemmgen.proof import cpu
from gemmgen.proof.outcome import Subject

from .compiling import refused_by_compiler
from .renaming import bases, outcome, trials


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if every schedule was refused with a hint that works, or gave a text that is right."""
    asked = _parser().parse_args(arguments)
    found = list(bases(asked.random, asked.seed))
    count, wrong, taken = Counter[str](), list[str](), list[tuple[str, Emitted]]()
    for each, kind, old, word in islice(trials(found, asked.seed), asked.count):
        where = f"{each.name}: {kind} {old} -> {word}"
        try:
            what, emitted = outcome(each, old, word)
        except Exception as error:
            wrong.append(f"{where}: {type(error).__name__}: {str(error)[:400]}")
            continue
        count[f"{kind} {what}"] += 1
        if emitted is not None:
            taken.append((where, emitted))
    with tempfile.TemporaryDirectory() as folder:
        for at in range(0, min(asked.compile, len(taken)), 50):
            some = dict(taken[at : min(at + 50, asked.compile)])
            wrong += refused_by_compiler(some, Path(folder))
    for where, emitted in taken[: asked.run]:
        ran = cpu.check(Subject(emitted))
        wrong += [] if ran.status == "passed" else [f"{where}: C2 {ran.status}: {ran.detail[:300]}"]
    for line in wrong:
        print(line)
    for key, number in sorted(count.items()):
        print(f"{key}: {number}")
    print(f"{len(found)} schedules, {sum(count.values())} changed names, {len(wrong)} wrong")
    return 1 if wrong else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.names", description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="names to change")
    parser.add_argument("--random", type=int, default=50, help="random schedules among the others")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compile", type=int, default=200, help="texts that g++ reads")
    parser.add_argument("--run", type=int, default=5, help="texts that run on the CPU")
    return parser


if __name__ == "__main__":
    sys.exit(main())
