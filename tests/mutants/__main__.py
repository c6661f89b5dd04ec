"""``python -m tests.mutants``: plant mistakes in emitted texts, and report those that C2 and C3
do not detect."""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gemmgen.base.errors import CannotCheck, GemmgenError
from gemmgen.pipeline import compile_source
from gemmgen.proof import cpu
from gemmgen.proof.outcome import Subject
from gemmgen.schedule import examples
from gemmgen.schedule.read import read_source

from .allowed import Allowed, read_allowed
from .catching import STILLBORN, Trials
from .everywhere import everywhere, sampled
from .mutants import Mutant
from .tally import Tried, is_equivalent, table, tallies, write_table

FOLDER = Path(__file__).parent
EQUIVALENT = FOLDER / "equivalent.txt"
EXAMPLES = (
    "naive",
    "tiled",
    "double_buffered",
    "vectorized",
    "warp_tiled",
    "async_copy",
    "odd_extents",
    "split_k",
    "matvec",
)
"""Mutated in addition to the schedules in the folder ``kernels``: a kernel for each mechanism."""


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if every mutant tried is detected or known to be equivalent, 1 if one is neither, 2 for a
    wrong argument, 3 if this machine cannot run kernels."""
    asked = _parser().parse_args(arguments)
    try:
        allowed = read_allowed(asked.allow) if asked.allow.exists() else ()
        end = time.monotonic() + asked.budget
        tried: list[Tried] = []
        for each in _tried(_tasks(asked), end):
            tried.append(each)
            if asked.verbose:
                print(f"{_where(each)}: {each.found or 'survives'}", flush=True)
        if asked.update and time.monotonic() < end:
            write_table(asked.update, tallies(tried, allowed))
        return _report(tried, allowed)
    except CannotCheck as missing:
        print(missing, file=sys.stderr)
        return 3
    except GemmgenError as wrong:
        print(wrong, file=sys.stderr)
        return 2


def kernels() -> list[str]:
    """The schedules whose kernels are mutated by default."""
    own = sorted(str(path) for path in (FOLDER / "kernels").glob("*.sched"))
    return [*(str(examples.path_of(name)) for name in EXAMPLES), *own]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("files", nargs="*", help="schedules (default: one for each mechanism)")
    parser.add_argument("--seed", type=int, default=0, help="which are tried, in which order")
    parser.add_argument(
        "--budget", type=float, default=float("inf"), help="seconds to try them for"
    )
    parser.add_argument("--each", type=int, help="mutants of each kernel, of all kinds")
    parser.add_argument("--most", type=int, help="mutants to try at most (default: all)")
    parser.add_argument("--allow", type=Path, default=EQUIVALENT, help="mutants known equivalent")
    parser.add_argument(
        "--update",
        type=Path,
        help="a document whose table is rewritten, if all mutants were tried",
    )
    parser.add_argument("--verbose", action="store_true", help="print how each was detected")
    return parser


Task = tuple[str, Trials, Mutant]


def _tasks(asked: argparse.Namespace) -> list[Task]:
    """The mutants of all kernels in a random order."""
    tasks: list[Task] = []
    for path in asked.files or kernels():
        emitted = compile_source(read_source(path))
        trials = Trials(emitted)
        right = cpu.check(Subject(emitted))
        assert right.status == "passed", f"{path} itself fails: {right.detail}"
        chosen = everywhere(emitted.text)
        if asked.each is not None:
            chosen = sampled(chosen, asked.each, asked.seed)
        tasks += [(Path(path).stem, trials, mutant) for mutant in chosen]
    random.Random(asked.seed).shuffle(tasks)
    return tasks[: asked.most]


def _tried(tasks: list[Task], end: float) -> Iterator[Tried]:
    """The results until the time is over; mutants that g++ refuses are left out."""

    def try_one(task: Task) -> Tried | None:
        name, trials, mutant = task
        if time.monotonic() > end:
            return None
        found = trials.verdict(mutant)
        if found == STILLBORN:
            return None
        same = found is None and trials.is_same_program(mutant)
        if found is None and not same:
            found = trials.by_compiler(mutant)
        return Tried(name, mutant, found, same)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from (tried for tried in pool.map(try_one, tasks) if tried is not None)


def _report(tried: list[Tried], allowed: Sequence[Allowed]) -> int:
    survivors = [each for each in tried if each.found is None]
    unknown = [each for each in survivors if not is_equivalent(each, allowed)]
    for each in sorted(unknown, key=lambda each: (each.name, each.mutant.line)):
        old, new = each.mutant.difference()
        print(each.name, *(f"- {line}" for line in old), *(f"+ {line}" for line in new), sep="\n")
        print(f"survives in line {each.mutant.line}\n")
    print(table(tallies(tried, allowed)))
    print(
        f"{len(tried)} mutants: {len(tried) - len(survivors)} found out, "
        f"{len(survivors) - len(unknown)} equivalent, {len(unknown)} survive"
    )
    return 1 if unknown else 0


def _where(tried: Tried) -> str:
    mutant = tried.mutant
    change = f"`{mutant.before}` -> `{mutant.after}`"
    if "\n" in change:
        change = mutant.kind
    return f"{tried.name}:{mutant.line}: {change} in `{mutant.difference()[0][0]}`"


if __name__ == "__main__":
    sys.exit(main())
