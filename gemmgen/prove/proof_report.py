"""A proof as a person and as a program read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gemmgen.base.source import counted
from gemmgen.ir.interface import Interface
from gemmgen.ir.lowered import LoweredProgram
from gemmgen.ir.problem import Problem
from gemmgen.pipeline import Emitted
from gemmgen.proof import verdicts
from gemmgen.proof.layers import PROVED
from gemmgen.prove import replay, second_opinion, solver
from gemmgen.prove.discharge import Counterexample, FactOutcome
from gemmgen.prove.goals import FACTS, Fact
from gemmgen.prove.launch_grid import BLOCK, CLUSTER
from gemmgen.prove.prover import Proof, prove
from gemmgen.prove.questions import Questions
from gemmgen.prove.second_opinion import QueryLog, SecondOpinion

LIMITS = (
    "real arithmetic: rounding is not modeled",
    "the lowered program, not the compiler that translates its text",
    "the solver's answers",
)
"""What a proof does not cover."""


@dataclass
class ProofReport:
    """A kernel's proof, with what a run shows of each refuted fact."""

    interface: Interface
    proof: Proof
    runs: dict[Fact, tuple[bool, str]]
    second: SecondOpinion | None = None


def examine(
    emitted: Emitted, seconds: float, both: bool = False, within: float | None = None
) -> ProofReport:
    """Proves an emitted kernel, and runs what is refuted; asks ``both`` solvers.

    Each fact takes at most ``seconds``, the proof ``within``.  What is proved is kept, for
    ``gemmgen verify``.  Raises ``SolversDisagree``.
    """
    report = examine_program(emitted.lowered, emitted.program.problem, seconds, both, within)
    keep_proof(report, emitted)
    return report


def keep_proof(report: ProofReport, emitted: Emitted) -> None:
    """Keeps on this machine that the kernel is proved, if it is."""
    if report.proof.status == "proved":
        verdicts.keep(PROVED, *kept_key(emitted))


def kept_key(emitted: Emitted) -> tuple[object, ...]:
    """All that a proof depends on, besides gemmgen's sources."""
    return solver.version(), emitted.lowered, emitted.program.problem


def examine_program(
    lowered: LoweredProgram,
    problem: Problem,
    seconds: float,
    both: bool = False,
    within: float | None = None,
) -> ProofReport:
    """The same for any lowered program of a problem."""
    solver.version()
    kernel, log = lowered.kernels[0], QueryLog() if both else None
    proof = prove(kernel, problem, seconds, questions=Questions(within, log))
    second = None if log is None else second_opinion.reviewed(log)
    runs: dict[Fact, tuple[bool, str]] = {
        one.fact: replay.confirmed(lowered, problem, one.finding)
        for one in proof.outcomes
        if one.status == "refuted" and one.finding is not None
    }
    return ProofReport(kernel.interface, proof, runs, second)


def summary(report: ProofReport) -> str:
    """The last line of a report."""
    proof = report.proof
    by = f"in {proof.seconds:.1f} s by {solver.version()}"
    if report.second is not None:
        by += f"; {report.second.text()} ({report.second.seconds:.1f} s)"
    match proof.status:
        case "proved":
            return f"proved for all sizes that the kernel accepts, {by}"
        case "refuted":
            return f"refuted, {by}"
        case _:
            left = sum(one.status == "unknown" for one in proof.outcomes)
            reason = (
                "" if proof.satisfiable else "; the assumptions were not shown to be satisfiable"
            )
            return f"{counted(left, 'fact')} unknown, {by}{reason}"


def detail(outcome: FactOutcome) -> str:
    """What is printed beside a fact and its status."""
    if outcome.status != "proved":
        return outcome.reason
    if not outcome.checks:
        return f"{FACTS[outcome.fact]} (there is none)"
    spent = f"{counted(outcome.checks, 'check')}, {counted(outcome.queries, 'question')}"
    return f"{FACTS[outcome.fact]} ({spent}, {outcome.seconds:.1f} s)"


def evidence(report: ProofReport, outcome: FactOutcome) -> list[str]:
    """The lines below a fact that is not proved: sizes, thread, statement, directives, run."""
    finding = outcome.finding
    if finding is None:
        return []
    lines = [f"at {place(report, finding)}"] if outcome.status == "refuted" else []
    if finding.address:
        lines.append(f"address: {finding.address}")
    if finding.where.statement:
        lines.append(f"statement: {finding.where.statement}")
    if finding.where.origins:
        lines.append(f"from: {'; '.join(finding.where.origins)}")
    if outcome.fact in report.runs:
        shown, text = report.runs[outcome.fact]
        lines.append(f"run: {text}" if shown else f"refuted by the solver, not by a run: {text}")
    return lines


def place(report: ProofReport, finding: Counterexample) -> str:
    """``M = 33, K = 1, block 1, thread (5, 0)``."""
    sizes = [f"{name} = {value}" for name, value in sizes_of(report, finding).items()]
    x, _ = report.interface.block
    block, own = block_and_thread(report, finding)
    return ", ".join([*sizes, f"block {block}", f"thread ({own % x}, {own // x})"])


def block_and_thread(report: ProofReport, finding: Counterexample) -> tuple[int, int]:
    """Their numbers; the threads of a cluster's blocks are walked together."""
    rank, own = divmod(finding.thread, report.interface.threads)
    if not report.interface.cluster:
        return finding.values.get(BLOCK, 0), finding.thread
    return finding.values.get(CLUSTER, 0) * report.interface.cluster_blocks + rank, own


def sizes_of(report: ProofReport, finding: Counterexample) -> dict[str, int]:
    """The arguments of the call that matter, by name."""
    names = [p.name for p in report.interface.params if p.kind in ("extent", "ld", "stride")]
    return {name: finding.values[name] for name in names if name in finding.values}


def as_json(report: ProofReport) -> dict[str, Any]:
    """All of a report, for programs."""
    proof = report.proof
    return {
        "status": proof.status,
        "solver": solver.version(),
        "seconds": round(proof.seconds, 3),
        "second_opinion": _second(report.second),
        "assumed": list(proof.assumed),
        "satisfiable": proof.satisfiable,
        "statements": proof.statements,
        "unreached": proof.unreached,
        "undecided": proof.undecided,
        "not_covered": list(LIMITS),
        "facts": [_fact(report, outcome) for outcome in proof.outcomes],
    }


def _second(found: SecondOpinion | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "solver": found.solver,
        "queries": found.queries,
        "confirmed": found.confirmed,
        "unknown": found.unknown,
        "seconds": found.seconds,
    }


def _fact(report: ProofReport, outcome: FactOutcome) -> dict[str, Any]:
    found: dict[str, Any] = {
        "fact": outcome.fact,
        "claim": FACTS[outcome.fact],
        "status": outcome.status,
        "checks": outcome.checks,
        "queries": outcome.queries,
        "seconds": round(outcome.seconds, 3),
    }
    if outcome.status != "proved":
        found["reason"] = outcome.reason
    finding = outcome.finding
    if finding is not None and outcome.status == "refuted":
        shown, text = report.runs[outcome.fact]
        block, thread = block_and_thread(report, finding)
        found["counterexample"] = {
            "sizes": sizes_of(report, finding),
            "block": block,
            "thread": thread,
            "address": finding.address,
            "statement": finding.where.statement,
            "directives": list(finding.where.origins),
            "confirmed": shown,
            "run": text,
        }
    return found
