"""What is drawn: the same everywhere, legal, and all that the language has."""

from __future__ import annotations

import os
import subprocess
import sys

from gemmgen.fuzz.draw import schedule_at
from gemmgen.fuzz.factors import FACTORS, pairs, plan_of
from gemmgen.fuzz.plans import is_wild, plan_at, possible_pairs
from gemmgen.fuzz.rules import broken
from gemmgen.fuzz.trial import compile_text
from gemmgen.passes.specs import SPECS
from gemmgen.schedule.parse import parse_schedule
from gemmgen.schedule.roles import letters, spelt, tensors
from gemmgen.source import Source

SOME = range(300)


def said() -> set[tuple[str, ...]]:
    """Each (directive), (directive, argument, word), (directive, role, hop) of the schedules."""
    found: set[tuple[str, ...]] = set()
    for index in SOME:
        emitted = compile_text(schedule_at(1, index))
        if emitted is None:
            continue
        schedule = emitted.schedule
        role_of = {tensor: role for role, tensor in tensors(schedule.gemm).items()}
        spelt_as = letters(schedule.gemm)
        name_of = {letter: role for role, letter in spelt_as.items()}
        name_of |= {spelt(a.name, spelt_as): a.name for spec in SPECS for a in spec.arguments}
        for directive in schedule.directives:
            found.add((directive.name,))
            for a in directive.arguments:
                value = str(a.value) if isinstance(a.value, str) else ""
                found.add((directive.name, name_of.get(a.name, a.name), name_of.get(value, value)))
            for o in directive.operands:
                found.add((directive.name, role_of[o.tensor], o.hop or ""))
    return found


def test_every_directive_argument_word_and_hop_is_drawn() -> None:
    drawn = said()
    for spec in SPECS:
        assert (spec.name,) in drawn, f"fuzzing never draws {spec.name}"
        for argument in spec.arguments:
            for word in argument.choices or ("",):
                if word != argument.identity:
                    assert (spec.name, argument.name, word) in drawn, (spec.name, argument.name)
        for role, hops in spec.hops:
            for hop in hops:
                bare = "" if hop == spec.bare or len(hops) == 1 else hop
                assert (spec.name, role, bare) in drawn, (spec.name, role, hop)


def test_a_schedule_has_the_classes_of_its_plan() -> None:
    for index in range(100):
        emitted = compile_text(schedule_at(2, index))
        if emitted is not None and not is_wild(index):
            x, y = emitted.interface.block
            assert plan_of(emitted.schedule, x * y) == plan_at(2, index), schedule_at(2, index)


def test_plans_are_legal_and_meet_in_pairs() -> None:
    unseen = set(possible_pairs())
    for index in range(400):
        plan = plan_at(5, index)
        assert is_wild(index) or broken(plan) is None
        assert set(plan) == set(FACTORS)
        unseen.difference_update(pairs(plan))
    assert not unseen


def test_the_same_seed_draws_the_same_in_every_process() -> None:
    code = "from gemmgen.fuzz.draw import schedule_at; print(schedule_at(9, 30), end='')"
    for salt in ("1", "2"):
        environment = dict(os.environ, PYTHONHASHSEED=salt)
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=environment
        )
        assert done.stdout == schedule_at(9, 30)


def test_texts_parse_or_are_refused_with_a_place() -> None:
    texts = {schedule_at(4, index) for index in SOME}
    assert len(texts) == len(SOME)
    assert sum(bool(parse_schedule(Source(text)).epilogue) for text in list(texts)[:50]) > 10
