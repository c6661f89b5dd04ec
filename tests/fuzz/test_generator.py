"""What is drawn: the same everywhere, legal, and all that the language has."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from gemmgen.base.source import Source
from gemmgen.fuzz import random_schedules
from gemmgen.fuzz.dice import Dice
from gemmgen.fuzz.factors import FACTORS, Pair, groups, pairs, plan_of
from gemmgen.fuzz.heads import DrawnHead
from gemmgen.fuzz.plans import Epoch, is_wild
from gemmgen.fuzz.random_schedules import schedule_at
from gemmgen.fuzz.seeds import multiplied
from gemmgen.fuzz.trial import compile_text
from gemmgen.ir.atoms import ATOMS, VIA
from gemmgen.language import VOCABULARY, parse_schedule
from gemmgen.passes.raster import Raster
from gemmgen.schedule.model import Schedule
from gemmgen.schedule.roles import letters, spelt, tensors

Said = tuple[str, ...]
SEED, SOME, FEW = 1, range(200), 20
"""One seed: what is drawn of it once serves all tests of a process."""
ORDERS = ("order A", "order B", "order C")

CHECKED: Said = ("warp_specialize", "consumers", "")
"""A count that follows from the tile and is only checked: what is drawn of it is refused mostly."""
OFTEN, SOMETIMES = 8, 3
"""Of 200 schedules at least this many have each way of tensor cores, and what few of these have."""


def wanted() -> set[Said]:
    """Each (directive), (directive, argument, word), (directive, role, hop) of the language."""
    found: set[Said] = set()
    for spec in VOCABULARY.specs:
        found.add((spec.name,))
        for argument in spec.arguments:
            follows = {value for _, value in argument.usual}  # no canonical schedule has these
            if argument.follows and {x for group in groups(argument) for x in group} <= follows:
                continue
            for word in argument.choices or ("",):
                if word != argument.identity and groups(argument) != ((argument.identity,),):
                    found.add((spec.name, argument.name, word))
        for role, hops in spec.hops:
            for hop in hops:
                bare = "" if hop == spec.bare or len(hops) == 1 else hop
                found.add((spec.name, role, bare))
    return found


def said(schedule: Schedule) -> Iterator[Said]:
    """What of that a schedule says."""
    role_of = {tensor: role for role, tensor in tensors(schedule.gemm).items()}
    spelt_as = letters(schedule.gemm)
    name_of = {letter: role for role, letter in spelt_as.items()}
    name_of |= {
        spelt(a.name, spelt_as): a.name for spec in VOCABULARY.specs for a in spec.arguments
    }
    for directive in schedule.directives:
        yield (directive.name,)
        for a in directive.arguments:
            value = str(a.value) if isinstance(a.value, str) else ""
            yield directive.name, name_of.get(a.name, a.name), name_of.get(value, value)
        for o in directive.operands:
            yield directive.name, role_of[o.tensor], o.hop or ""


NEW = ("persistent", "warp_specialize", "cluster", "overlap_launch", "l2", "tma", "hilbert")


@pytest.mark.proof
def test_schedules_without_some_words_differ_as_much() -> None:
    """What is left out is neither wanted nor drawn, so that all else is covered."""
    texts = [schedule_at(SEED, index, NEW) for index in range(40)]
    assert len({*texts}) == len(texts)
    assert all({*NEW}.isdisjoint(re.findall(r"\w+", text)) for text in texts)
    assert any("double_buffer" in text for text in texts)


@pytest.mark.proof
def test_every_directive_argument_word_and_hop_is_drawn() -> None:
    missing = wanted() - {CHECKED}
    for index in SOME:
        emitted = compile_text(schedule_at(SEED, index))
        missing -= set(said(emitted.schedule)) if emitted else set()
        if not missing:
            return
    raise AssertionError(f"fuzzing never draws {sorted(missing)}")


@pytest.mark.proof
def test_tensor_cores_are_drawn_often() -> None:
    """Each instruction, each storage order of what is read in place, and C by stmatrix."""
    drawn = [e for index in SOME if (e := compile_text(schedule_at(SEED, index)))]
    atoms = Counter(e.program.main.spread.atom for e in drawn)
    for via, of_way in VIA.items():
        assert sum(atoms[atom] for atom in of_way) >= OFTEN, (via, atoms)
    assert sum(atoms[atom] for atom in ATOMS if ATOMS[atom].splits) >= OFTEN, atoms
    # A way's atoms are drawn equally often, and those of f64 are four of mma.sync's.
    assert sum(atoms[atom] for atom in ATOMS if "f64" in ATOMS[atom].types) >= SOMETIMES, atoms
    in_place = [e for e in drawn if ATOMS[e.program.main.spread.atom].in_place]
    orders = Counter(plan_of(e.schedule, 1)[name] for e in in_place for name in ORDERS)
    assert all(orders[order] >= SOMETIMES for name in ORDERS for order in FACTORS[name]), orders
    assert any("stmatrix" in e.text for e in in_place)


@pytest.mark.proof
def test_scales_of_blocks_are_drawn_often() -> None:
    """On tensor cores, too, where promotion must fit them."""
    drawn = [e for index in SOME if (e := compile_text(schedule_at(SEED, index)))]
    scaled = [e for e in drawn if e.program.problem.scales]
    on_tensor_cores = [e for e in scaled if e.program.main.spread.atom != "fma"]
    assert len(scaled) >= OFTEN and len(on_tensor_cores) >= SOMETIMES
    assert {plan_of(e.schedule, 1)["scales"] for e in scaled} == {*FACTORS["scales"]} - {"-"}


@pytest.mark.proof
def test_each_atom_has_a_seed() -> None:
    seeds = map(compile_text, multiplied())
    assert {e.program.main.spread.atom for e in seeds if e} == {*ATOMS} - {"fma"}


@pytest.mark.proof
def test_only_those_that_are_meant_to_be_are_refused(proof: bool) -> None:
    texts = [schedule_at(SEED, index) for index in range(100 if proof else FEW)]
    refused = {index for index, text in enumerate(texts) if compile_text(text) is None}
    assert all(map(is_wild, refused))


@pytest.mark.proof
@pytest.mark.parametrize(("count", "seen"), [(FEW, 5000), (len(SOME), 13500)])
def test_schedules_have_many_pairs_of_classes(count: int, seen: int) -> None:
    """What a pass refuses without need shows here, as nothing else knows what is legal."""
    found: set[Pair] = set()
    for index in range(count):
        emitted = compile_text(schedule_at(SEED, index))
        if emitted is not None:
            x, y = emitted.interface.block
            found.update(pairs(plan_of(emitted.schedule, x * y)))
    assert len(found) > seen


@pytest.mark.proof
def test_what_was_drawn_is_kept_for_the_next_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(random_schedules, "_STORED", 2)
    texts = [random_schedules._Drawn(7, 0).text(place) for place in (1, 0)]
    drawn = random_schedules._Drawn(7, 0)
    monkeypatch.setattr(random_schedules, "Epoch", None)
    assert [drawn.text(1), drawn.text(0)] == texts


@pytest.mark.proof
def test_a_pass_that_raises_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(said: object, schedule: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Raster, "read", staticmethod(broken))
    schedules = Epoch(3, 0).schedules()
    assert any("raster" in next(schedules).text for _ in range(3))


@pytest.mark.proof
def test_the_same_seed_draws_the_same_in_every_process() -> None:
    code = "from gemmgen.fuzz.random_schedules import schedule_at; print(schedule_at(9, 3), end='')"
    environment = dict(os.environ, PYTHONHASHSEED="1")
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert done.stdout == schedule_at(9, 3)


@pytest.mark.proof
def test_texts_parse_or_are_refused_with_a_place() -> None:
    texts = [schedule_at(SEED, index) for index in SOME]
    assert len(set(texts)) == len(texts)
    have = [bool(parse_schedule(Source(text)).epilogue) for text in texts]
    parts = [have[start : start + 100] for start in range(0, len(have), 100)]
    assert all(sum(part) > len(part) / 2 for part in parts), list(map(sum, parts))


def test_a_schedule_has_the_classes_that_it_was_drawn_for() -> None:
    """Else climbing keeps to pairs that no text can have: a read of an epilogue without one."""
    head = DrawnHead(Dice(1), plan_of(parse_schedule(Source("tile m=8 n=8 k=8\n")), 64))
    for kind, reads in product(FACTORS["epilogue"], FACTORS["reads"]):
        drawn = DrawnHead(Dice(kind, reads), {**head.plan, "epilogue": kind, "reads": reads})
        text = "\n".join((*drawn.problem, *drawn.epilogue(), ""))
        found = plan_of(parse_schedule(Source(text)), 64)
        assert {name: found[name] for name in ("epilogue", "reads")} == {
            name: drawn.plan[name] for name in ("epilogue", "reads")
        }, text
