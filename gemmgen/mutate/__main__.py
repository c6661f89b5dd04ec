"""``python -m gemmgen.mutate``: plant a mistake at every place of emitted kernels, and see whether
the checked run finds it."""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from gemmgen import examples
from gemmgen.errors import CannotCheck, GemmgenError
from gemmgen.mutate.allowed import Allowed, read_allowed
from gemmgen.mutate.mutants import Mutant, mutants
from gemmgen.mutate.trial import Trials
from gemmgen.pipeline import compile_source
from gemmgen.schedule.read import read_source

EQUIVALENT = Path("tests/mutants/equivalent.txt")


@dataclass(frozen=True)
class Tried:
    """A mutant of the kernel ``name``; ``found`` says how it was found out, None that it wasn't.

    ``same``: it compiles to the same machine code, as where two constants have one value.
    """

    name: str
    mutant: Mutant
    found: str | None
    same: bool


def main(arguments: Sequence[str] | None = None) -> int:
    """0 where every mutant tried is found out or known to be equivalent, 1 where one is neither, 2
    for a wrong argument, 3 where this machine cannot run kernels."""
    asked = _parser().parse_args(arguments)
    try:
        allowed = read_allowed(asked.allow) if asked.allow.exists() else ()
        paths = asked.files or [str(examples.path_of(name)) for name in examples.LADDER]
        tried = list(_tried(paths, asked.seed, asked.budget, asked.most))
        return _report(tried, allowed, asked.verbose)
    except CannotCheck as missing:
        print(missing, file=sys.stderr)
        return 3
    except GemmgenError as wrong:
        print(wrong, file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m gemmgen.mutate", description=__doc__)
    parser.add_argument("files", nargs="*", help="schedules (default: the ladder)")
    parser.add_argument("--seed", type=int, default=0, help="in which order mutants are tried")
    parser.add_argument(
        "--budget", type=float, default=float("inf"), help="seconds to try them for"
    )
    parser.add_argument("--most", type=int, help="mutants to try at most (default: all)")
    parser.add_argument("--allow", type=Path, default=EQUIVALENT, help="mutants known equivalent")
    parser.add_argument("--verbose", action="store_true", help="print how each was found out")
    return parser


def _tried(paths: Sequence[str], seed: int, budget: float, most: int | None) -> Iterator[Tried]:
    """The mutants of all kernels in a random order, until the time is over."""
    end = time.monotonic() + budget
    tasks: list[tuple[str, Trials, Mutant]] = []
    for path in paths:
        emitted = compile_source(read_source(path))
        trials = Trials(emitted)
        complaint = trials.verdict(emitted.text)
        assert complaint is None, f"{path} itself fails: {complaint}"
        tasks += [(Path(path).stem, trials, mutant) for mutant in mutants(emitted.text)]
    random.Random(seed).shuffle(tasks)

    def try_one(task: tuple[str, Trials, Mutant]) -> Tried | None:
        name, trials, mutant = task
        if time.monotonic() > end:
            return None
        found = trials.verdict(mutant.text)
        same = found is None and trials.is_same_program(mutant.text)
        return Tried(name, mutant, found, same)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from (tried for tried in pool.map(try_one, tasks[:most]) if tried is not None)


def _report(tried: list[Tried], allowed: Sequence[Allowed], verbose: bool) -> int:
    survivors = [each for each in tried if each.found is None]
    same = [each for each in survivors if each.same]
    other = [each for each in survivors if not each.same]
    known = [s for s in other if any(entry.covers(s.name, s.mutant) for entry in allowed)]
    unknown = [each for each in other if each not in known]
    for each in tried if verbose else ():
        print(f"{_where(each)}: {each.found or 'survives'}")
    for each in sorted(unknown, key=lambda each: (each.name, each.mutant.line)):
        old, new = each.mutant.difference()
        print(each.name, *(f"- {line}" for line in old), *(f"+ {line}" for line in new), sep="\n")
        print(f"survives in line {each.mutant.line}\n")
    print(
        f"{len(tried)} mutants: {len(tried) - len(survivors)} found out, "
        f"{len(same)} the same machine code, "
        f"{len(known)} known to be equivalent, {len(unknown)} survive"
    )
    return 1 if unknown else 0


def _where(tried: Tried) -> str:
    mutant = tried.mutant
    change = f"`{mutant.before}` -> `{mutant.after}`"
    return f"{tried.name}:{mutant.line}: {change} in `{mutant.difference()[0][0]}`"


if __name__ == "__main__":
    sys.exit(main())
