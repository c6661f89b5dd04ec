"""P, a layer of ``gemmgen verify``: the facts of ``gemmgen prove``, within a time.

Only what is proved counts as passed.  What is not covered, takes too long or needs a solver that
is not installed is a check that was not made: it is skipped, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable

from gemmgen.base.errors import UsageError
from gemmgen.base.source import counted
from gemmgen.base.units import numeral
from gemmgen.proof import verdicts
from gemmgen.proof.layers import PROVED
from gemmgen.proof.outcome import Outcome, Subject, failed, passed, skipped
from gemmgen.prove import solver
from gemmgen.prove.goals import FACTS
from gemmgen.prove.proof_report import ProofReport, examine, kept_key, place

SECONDS = 20.0
"""What ``gemmgen verify`` gives a kernel that is not proved yet."""
FACT_SECONDS = 60.0


def layer(seconds: float | None) -> Callable[[Subject], Outcome]:
    """The layer, for at most ``seconds``; None: as long as the proof takes."""
    return lambda subject: check(subject, seconds)


def left_out(why: str) -> Callable[[Subject], Outcome]:
    """The layer where it is not asked for."""
    return lambda subject: skipped(PROVED, f"not asked for: {why}")


def check(subject: Subject, seconds: float | None) -> Outcome:
    """Proves the kernel that the schedule gives, for all sizes."""
    try:
        version = solver.version()
    except UsageError as missing:
        return skipped(PROVED, str(missing))
    made: list[ProofReport] = []

    def prove() -> str | None:
        made.append(examine(subject.emitted, FACT_SECONDS, within=seconds))
        return None if made[0].proof.status == "proved" else made[0].proof.status

    if verdicts.complaint_of(prove, PROVED, *kept_key(subject.emitted)) is None:
        facts = counted(len(FACTS), "fact")
        return passed(PROVED, f"{facts} proved for all sizes that the kernel accepts, by {version}")
    return _refuted(made[0]) or _unknown(made[0], seconds)


def _refuted(report: ProofReport) -> Outcome | None:
    for outcome in report.proof.outcomes:
        if outcome.status == "refuted" and outcome.finding is not None:
            where = place(report, outcome.finding)
            return failed(PROVED, f"{outcome.fact}: {outcome.reason}, at {where}")
    return None


def _unknown(report: ProofReport, seconds: float | None) -> Outcome:
    proof = report.proof
    if proof.not_covered:
        return skipped(PROVED, f"not covered: {proof.not_covered}")
    if proof.late and seconds is not None:
        return skipped(
            PROVED,
            f"unknown: not proved within {numeral(seconds)} s; verify --prove, or gemmgen prove, "
            "takes as long as it needs",
        )
    unknown = [one for one in proof.outcomes if one.status == "unknown"]
    reason = unknown[0].reason if unknown else "the assumptions were not shown to be satisfiable"
    return skipped(PROVED, f"unknown: {reason}")
