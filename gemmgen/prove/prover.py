"""The facts of one kernel: the kernel is walked for all sizes, and what the walk found is decided.

What stays open is looked at again with the contracted extent fixed: then every loop has a known
length, and a violation is one of the kernel, not of an invariant that says too little.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gemmgen.ir.lowered import LoweredKernel
from gemmgen.ir.param import Param
from gemmgen.ir.problem import Problem
from gemmgen.prove import block_end, coverage, own_sum, part_accesses, split_parts
from gemmgen.prove.discharge import Discharge, FactOutcome
from gemmgen.prove.goals import FACTS, Fact, Goal
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.questions import OutOfTime, Questions
from gemmgen.prove.solver import Status
from gemmgen.prove.state import WalkState
from gemmgen.prove.symbolic_walk import run
from gemmgen.prove.walk_context import OutputStore, WalkContext

QUERY_SECONDS = 10.0
"""The most for one question to the solver."""
REACH_SECONDS = 3.0
"""The most for the question which statements are reached."""


@dataclass
class Proof:
    """What is known of a kernel; ``assumed`` are the requirements of its calls, ``statements`` how
    many have claims for the solver, ``unreached`` no thread reaches; of the ``undecided``
    neither a sampled call nor the solver says whether one does.  What was
    ``not_covered`` ended the walk; ``late`` says that there was not enough time."""

    outcomes: list[FactOutcome]
    assumed: tuple[str, ...]
    statements: int = 0
    unreached: list[str] = field(default_factory=list[str])
    undecided: list[str] = field(default_factory=list[str])
    satisfiable: bool = True
    seconds: float = 0.0
    not_covered: str = ""
    late: str = ""

    @property
    def status(self) -> Status:
        found = {outcome.status for outcome in self.outcomes}
        if "refuted" in found:
            return "refuted"
        held = found == {"proved"} and self.satisfiable and not self.late
        return "proved" if held else "unknown"


def prove(
    kernel: LoweredKernel,
    problem: Problem,
    seconds: float = 60.0,
    facts: tuple[Fact, ...] = tuple(FACTS),
    questions: Questions | None = None,
) -> Proof:
    """The ``facts`` of ``kernel`` for all sizes, each in at most ``seconds``, and all of them in
    the time of ``questions``."""
    questions = questions or Questions()
    begin = time.perf_counter()
    terms = tuple(
        f"{param.name} has the {what} of {source}, as its pre-pass leaves them"
        for param in kernel.interface.prepared
        for what, source in (_prepared(param),)
    )
    assumed = (*(rule.text() for rule in kernel.interface.requirements), *terms)
    context, outcomes = examined(kernel, problem, seconds, {}, facts, questions)
    proof = Proof(outcomes, (*assumed, *(context.assumed if context is not None else ())))
    if context is None:
        proof.not_covered = "" if outcomes[0].late else outcomes[0].reason
    else:
        proof.not_covered = context.stopped
        questions.log = None
        try:
            reached = bool(context.periods) or not context.stopped
            if reached and not any(outcome.status == "refuted" for outcome in outcomes):
                _search(context, problem, proof, seconds, begin)
            _check_reached(context, proof)
        except OutOfTime as reason:
            proof.late = str(reason)
    proof.late = proof.late or next((x.reason for x in outcomes if x.late), "")
    proof.seconds = time.perf_counter() - begin
    return proof


def _prepared(param: Param) -> tuple[str, str]:
    """What a pre-pass leaves in a workspace, and the tensor that it has read."""
    if param.planes is not None:
        return ("scaled terms" if param.planes.scaled_by else "terms"), param.planes.source
    assert param.scales is not None
    return "inverse scales", param.scales.source


def examined(
    kernel: LoweredKernel,
    problem: Problem,
    seconds: float,
    given: Mapping[str, int],
    facts: tuple[Fact, ...],
    questions: Questions,
) -> tuple[WalkContext | None, list[FactOutcome]]:
    """The facts of a kernel, for these extents."""
    try:
        context = WalkContext(kernel, min(seconds, QUERY_SECONDS), given, questions)
    except Unsupported as reason:
        return None, [FactOutcome(fact, "unknown", str(reason)) for fact in facts]
    except OutOfTime as reason:
        return None, [FactOutcome(fact, "unknown", str(reason), late=True) for fact in facts]
    stopped, late = "", ""
    try:
        _walk(context, problem)
    except Unsupported as reason:
        statement = context.where.statement
        stopped = f"{reason}{f', in `{statement}`' if statement else ''}"
    except OutOfTime as reason:
        late = str(reason)
    context.stopped = stopped
    discharge = Discharge(context, seconds)
    outcomes: list[FactOutcome] = []
    for fact in facts:
        try:
            outcome = discharge.fact(fact)
        except OutOfTime as reason:
            outcome = FactOutcome(fact, "unknown", str(reason), late=True)
        if late:
            outcome = FactOutcome(fact, "unknown", late, late=True)
        elif stopped:
            outcome.worse("unknown", stopped)
        outcomes.append(outcome)
    return context, outcomes


def _walk(context: WalkContext, problem: Problem) -> None:
    """Walks the kernel, and adds to the ledger what its end shows."""
    walks: list[list[OutputStore]] = []
    for states in _final_states(context):
        for state in states:
            block_end.check(context, state)
            part_accesses.check_left(context, state)
        walks.append(context.stores)
        context.stores = []
    context.stores = [store for stores in walks for store in stores]
    context.theory.questions.about = "the facts products and formula"
    own_sum.check(context, problem)
    context.theory.questions.about = "the fact coverage"
    for number, context.stores in enumerate(walks):
        if not any(coverage.is_alike(context.stores, other) for other in walks[:number]):
            coverage.check(context)


def _final_states(context: WalkContext) -> Iterator[list[WalkState]]:
    """The states at the end of the kernel, of the last block of a tile; again for each block that
    may be the last one."""
    body, partials = context.kernel.body, context.partials
    if partials is None:
        yield run(context, body, [context.state()], context.scope())
        return
    for *others, last in split_parts.orders(partials):
        partials.restart(last)
        for part in others:
            split_parts.begin(context, partials, part)
            if run(context, body, [context.state()], context.scope()):
                raise Unsupported("a part's block that does not count")
        split_parts.begin(context, partials, last)
        yield run(context, body, [context.state()], context.scope())


def _search(
    context: WalkContext, problem: Problem, proof: Proof, seconds: float, begin: float
) -> None:
    """Looks for violations of what is unknown at single values of the contracted extent."""
    kernel = context.kernel
    for given in _extents(context):
        left: tuple[Fact, ...] = tuple(
            one.fact for one in proof.outcomes if one.status == "unknown"
        )
        if not left or time.perf_counter() - begin > 4 * seconds:
            return
        _, found = examined(kernel, problem, seconds, given, left, context.theory.questions)
        for outcome in found:
            if outcome.status == "refuted" and outcome.finding is not None:
                outcome.finding.values = {**outcome.finding.values, **given}
                own = next(one for one in proof.outcomes if one.fact == outcome.fact)
                own.worse("refuted", outcome.reason, outcome.finding)
        if any(outcome.status == "refuted" for outcome in found):
            return


def _extents(context: WalkContext) -> Iterator[dict[str, int]]:
    """Values of the contracted extent that make loops end early, at a border, and after each of
    their stages was used, in each part."""
    if len(context.contracted) != 1:
        return
    name = context.interface.extent(context.contracted[0])
    pitches = {
        step for tensor in context.interface.tensors for step in context.interface.steps(tensor)
    }
    if name in pitches:
        return  # where it is a number, an address does not show its row
    if name in map(context.interface.extent, context.output.indices):
        return  # where it is a number, it decides which elements of a tile C has
    step, period = max(context.periods, default=(8, 2))
    rules = context.interface.requirements
    long = (period + 2) * step * context.interface.parts
    for value in (1, step, step + 1, long + 1, long):
        own = [rule for rule in rules if getattr(rule, "name", "") == name]
        if all(rule.holds({name: value}) for rule in own if not hasattr(rule, "bound")):
            yield {name: value}


def _check_reached(context: WalkContext, proof: Proof) -> None:
    """That nothing was proved of nothing: the assumptions, and each statement with a
    claim, can be reached."""
    theory = context.theory
    theory.symbol("launch", [fact for name in theory.sizes for fact in theory.facts[name]])
    proof.satisfiable = bool(theory.can_hold(tuple(theory.facts["launch"]), QUERY_SECONDS))
    statements: dict[int, list[Goal]] = {}
    for goal in context.ledger.goals.values():
        statements.setdefault(id(goal.where.node), []).append(goal)
    proof.statements = len(statements)
    end = time.perf_counter() + REACH_SECONDS
    for goals in statements.values():
        if any(theory.is_reached(goal.path, goal.mask) for goal in goals):
            continue
        can: set[bool | None] = set()
        for goal in goals:
            left = max(0.01, end - time.perf_counter())
            can.add(theory.can_hold(goal.path, min(0.3, left)))
        if True not in can:
            kind = proof.undecided if None in can else proof.unreached
            kind.append(goals[0].where.statement)
