"""``python -m tests.prove.campaign``: prove random schedules for all sizes, and count what is
proved, refuted and unknown.

No random schedule is wrong that the other layers of the proof hold right, so each refutation is a
mistake of the prover, or one that they miss.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from statistics import median

from gemmgen.base.errors import ScheduleError
from gemmgen.base.processes import interrupts_held, serve_quietly, worker_pool
from gemmgen.base.record import record
from gemmgen.base.source import Source
from gemmgen.fuzz.random_schedules import schedule_at
from gemmgen.pipeline import compile_source
from gemmgen.prove.prover import prove


@record
class Tried:
    """A schedule: ``status`` is that of its proof, or ``refused`` if it does not compile."""

    index: int
    status: str
    reason: str
    seconds: float


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if no schedule is refuted, else 1."""
    asked = _parser().parse_args(arguments)
    tried: list[Tried] = []
    end = time.monotonic() + asked.budget
    with worker_pool(asked.jobs, serve_quietly) as pool:
        with interrupts_held():
            futures = [
                pool.submit(attempt, asked.seed, index, asked.seconds)
                for index in range(asked.first, asked.first + asked.count)
            ]
        for future in futures:
            left = end - time.monotonic()
            try:
                one = future.result(max(left, 0.0))
            except TimeoutError:
                for each in futures:
                    each.cancel()
                break
            tried.append(one)
            print(f"{one.index} {one.status} {one.seconds:.1f} s  {one.reason}", flush=True)
    print(summary(tried))
    return int(any(one.status == "refuted" for one in tried))


def attempt(seed: int, index: int, seconds: float) -> Tried:
    """The proof of one random schedule, with at most ``seconds`` for each fact."""
    begin = time.perf_counter()
    try:
        kernel = compile_source(Source(schedule_at(seed, index)))
    except ScheduleError as mistake:
        return Tried(index, "refused", str(mistake).splitlines()[0], 0.0)
    proof = prove(kernel.lowered.kernels[0], kernel.program.problem, seconds)
    reasons = [f"{one.fact}: {one.reason}" for one in proof.outcomes if one.status == proof.status]
    spent = time.perf_counter() - begin
    return Tried(index, proof.status, reasons[0] if proof.status != "proved" else "", spent)


def summary(tried: Sequence[Tried]) -> str:
    """Counts and times, then the reasons of what is unknown, the most frequent first."""
    found = Counter(one.status for one in tried)
    legal = [one for one in tried if one.status != "refused"]
    if not legal:
        return "no schedule was tried"
    times = [one.seconds for one in legal]
    lines = [
        f"{len(legal)} schedules: {found['proved']} proved, {found['refuted']} refuted, "
        f"{found['unknown']} unknown; median {median(times):.1f} s, longest {max(times):.1f} s"
    ]
    reasons = Counter(one.reason.split(", in `")[0] for one in legal if one.status == "unknown")
    lines += [f"{count:5} {reason}" for reason, count in reasons.most_common()]
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.prove.campaign", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="index of the first schedule")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each fact")
    parser.add_argument("--budget", type=float, default=3600.0, help="seconds for all")
    return parser


if __name__ == "__main__":
    sys.exit(main())
