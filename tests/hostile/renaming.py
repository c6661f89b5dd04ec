"""Schedules whose names are changed to identifiers of emitted texts, and what becomes of them.

A trial puts one identifier of a kernel's text, or of the program around it, in the place of one
name of its schedule.  The schedule is refused, and then the hint, followed, gives a kernel; or the
text is the same as before but for names, each identifier replaced by one other everywhere.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gemmgen.base.errors import ScheduleError, UsageError
from gemmgen.base.source import Source
from gemmgen.calling.dimensions import solve
from gemmgen.emit.scopes import KEYWORDS, TYPES, names_of
from gemmgen.fuzz.random_schedules import schedule_at
from gemmgen.host_texts import host_program
from gemmgen.ir.dtypes import DTYPES
from gemmgen.ir.expr import FUNCTIONS, Element, Var, walk
from gemmgen.ir.identifiers import language_word
from gemmgen.ir.parameters import ld_name
from gemmgen.language import VOCABULARY
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.schedule.epilogue_names import BUILT_IN
from gemmgen.schedule.formatting import format_schedule
from gemmgen.schedule.model import Access, Gemm, Schedule
from gemmgen.schedule.roles import extents, strides

from .hints import followed

ROOT = Path(__file__).parents[2]
STATEMENTS = ("kernel", "gemm", "dtype", "target", "assume", "require", "let")
FOLDERS = ("examples", "tests/golden", "tests/cases")
ARGUMENTS = {*STATEMENTS, *(spec.name for spec in VOCABULARY.specs)} | {
    argument.name for spec in VOCABULARY.specs for argument in spec.arguments
}
ARGUMENTS |= {*DTYPES, *FUNCTIONS}
"""Words that a text may have in addition to names: who follows a hint tells them apart."""
ROUNDS = 4
"""Hints that are followed, one after another, until a schedule is taken."""
_SKIPPED = re.compile(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"|^[ \t]*#[^\n]*', re.MULTILINE)
_TOKEN = re.compile(r"\.?\d[\w.]*|[A-Za-z_]\w*|\S")
_NAME = re.compile(r"[A-Za-z_]\w*")
_DECLARES = re.compile(
    rf";\s*(?:alignas\(\d+\)\s+)?(?:const(?:expr)?\s+)?(?:(?:{'|'.join(sorted(TYPES))})\s+)+"
)


@dataclass(frozen=True)
class Base:
    """A schedule with a scalar in its epilogue, and its kernel."""

    name: str
    text: str
    emitted: Emitted
    program: str

    @property
    def schedule(self) -> Schedule:
        return self.emitted.schedule

    def identifiers(self) -> list[str]:
        """Those of the kernel's file and of the program."""
        found = {*_NAME.findall(_SKIPPED.sub("", self.program))} - KEYWORDS
        return sorted(name for name in found if len(name) < 60)

    def places(self) -> dict[str, str]:
        """The names that the schedule chooses, each with its kind."""
        gemm, found = self.schedule.gemm, {self.schedule.kernel: "kernel"}
        for role, access in (("output", gemm.c), ("input", gemm.a), ("input", gemm.b)):
            found[access.tensor] = role
            found |= dict.fromkeys(access.indices, "letter")
        assert self.schedule.epilogue is not None
        for part in walk(self.schedule.epilogue.expression):
            if isinstance(part, Element) and part.buffer not in found:
                found[part.buffer] = "vector" if len(part.indices) == 1 else "matrix"
            elif isinstance(part, Var) and part.name not in (*BUILT_IN, *found):
                found[part.name] = "scalar"
        return found


def bases(random_ones: int, seed: int) -> Iterator[Base]:
    """The schedules of the project, and random ones."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.sched")):
            yield from base(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    for index in range(random_ones):
        yield from base(f"fuzz {seed}:{index}", schedule_at(seed, index))


def base(name: str, text: str) -> Iterator[Base]:
    """The schedule in its canonical form; nothing where it is a space, or refused on purpose."""
    try:
        schedule = compile_source(Source(text)).schedule
        stated = format_schedule(schedule)
        if schedule.kernel == Schedule(schedule.gemm).kernel:
            stated += f"kernel {schedule.kernel}\n"
        head, found, tail = stated.partition("fuse_epilogue ")
        factor = "own_scale * " if found else "fuse_epilogue own_scale * acc\n"
        bracketed = f"{factor}({tail.splitlines()[0]})\n" if found else factor
        rest = "\n".join(tail.splitlines()[1:])
        stated = f"{head}{found}{bracketed}{rest}".rstrip() + "\n"
        emitted = compile_source(Source(stated))
    except ScheduleError:
        return
    yield Base(name, stated, emitted, program_of(emitted))


def program_of(emitted: Emitted) -> str:
    """The file with a host program, or without one where none can be written."""
    interface = emitted.interface
    named = extents(emitted.schedule.gemm)
    sizes = {interface.extent(letter): 256 for letter in named}
    try:
        return host_program(emitted, solve(interface, sizes, 0), "x.cu")
    except UsageError:
        return emitted.text


def renamed(base: Base, old: str, new: str) -> str:
    """The text of the schedule with a name changed, and those that its lines derive from it."""
    gemm = base.schedule.gemm
    other = Gemm(*(_access(access, old, new) for access in (gemm.c, gemm.a, gemm.b)))
    changed = {old: new, f"tile_{old}": f"tile_{new}"}
    if base.places()[old] != "letter":
        changed[ld_name(old)] = ld_name(new)
    try:
        changed |= dict(zip(extents(gemm).values(), extents(other).values(), strict=True))
        for mine, its in zip((gemm.c, gemm.a, gemm.b), (other.c, other.a, other.b), strict=True):
            changed |= dict(
                zip(strides(mine, gemm).values(), strides(its, other).values(), strict=True)
            )
    except ValueError:
        pass  # two letters are one now, and the schedule is refused
    pattern = re.compile(rf"(?<=[\s=(\[*,+/-])({'|'.join(map(re.escape, changed))})\b")
    return pattern.sub(lambda found: changed[found[0]], base.text)


def _access(access: Access, old: str, new: str) -> Access:
    def change(name: str) -> str:
        return new if name == old else name

    return Access(change(access.tensor), tuple(map(change, access.indices)))


def outcome(base: Base, old: str, new: str) -> tuple[str, Emitted | None]:
    """``same``, ``taken`` or ``refused``, and the kernel where it was taken; raises
    AssertionError for any other outcome."""
    text = renamed(base, old, new)
    if text == base.text:
        return "same", None
    try:
        emitted = compile_source(Source(text))
        program = program_of(emitted)
    except ScheduleError as error:
        derived = {ld_name(name) for name in base.places()} | {f"tile_{n}" for n in base.places()}
        others = {*base.places(), *BUILT_IN, *ARGUMENTS, *derived}
        if new in others or ld_name(new) in derived:
            assert all(m.span is not None and m.hint for m in error.mistakes)
            return "refused as another thing", None
        _follow(text, error)
        return "refused", None
    if new in (*base.places(), *BUILT_IN):
        return "taken as another thing", None
    if _order(base, old, old) == _order(base, old, new):
        _compare(base.emitted.text, emitted.text, {old, new})
    names = names_of(program)
    assert not names.repeated, names.repeated
    unknown = {name for name in names.loose if not language_word(name)}
    assert unknown <= {"send", "bytes"}, unknown  # members of a struct, used before they come
    return "taken", emitted


def _order(base: Base, old: str, new: str) -> list[str]:
    """The tensors in the order of their names, in which some lines of a text are sorted."""
    kinds = ("output", "input", "vector", "matrix")
    tensors = [name for name, kind in base.places().items() if kind in kinds]
    return sorted(tensors, key=lambda name: new if name == old else name)


def _follow(text: str, error: ScheduleError) -> None:
    """Takes hints until the schedule is taken."""
    said: list[str] = []
    for _ in range(ROUNDS):
        first = error.mistakes[0]
        assert first.span is not None and first.hint, first
        said.append(f"{first.message}; {first.hint}")
        changed = followed(error.source.text, first)
        assert changed not in (None, text), said
        text = changed or ""
        try:
            program_of(compile_source(Source(text)))
            return
        except ScheduleError as again:
            error = again
    raise AssertionError(said)


def _compare(one: str, other: str, changed: set[str]) -> None:
    """Asserts that each token of a function has one counterpart in the other text's.  A name that
    was ``changed`` may also be a variable of the text's own, in another scope."""
    first, second = map(_functions, (one, other))
    assert len(first) == len(second), f"{len(first)} functions, {len(second)} after the change"
    for these, those in zip(first, second, strict=True):
        assert len(these) == len(those), f"{these[:9]}: {len(these)} tokens, {len(those)} later"
        counterpart: dict[str, str] = {}
        for mine, its in zip(these, those, strict=True):
            known = counterpart.setdefault(mine, its)
            assert known == its or {known, its} == changed, f"{mine} is {known} and {its}"
            assert mine == its or _NAME.fullmatch(mine), f"{mine} has become {its}"


def _functions(text: str) -> list[list[str]]:
    """The tokens of each function, alike however its lines are broken: without braces, and with
    neighbouring declarations in one."""
    code = re.sub(r"^(\S.*)?}$", r"\1\f", _SKIPPED.sub("", text), flags=re.MULTILINE)
    code = _DECLARES.sub(", ", re.sub(r"[{}]", " ", code))
    return [_TOKEN.findall(function) for function in code.split("\f")]


def trials(found: Sequence[Base], seed: int) -> Iterator[tuple[Base, str, str, str]]:
    """A kernel, the kind of a name, the name, an identifier in its place: in random order."""
    rng, every = random.Random(seed), [(each, each.identifiers()) for each in found]
    while True:
        each, identifiers = rng.choice(every)
        old, kind = rng.choice(sorted(each.places().items()))
        word = rng.choice(identifiers)
        yield each, kind, old, word.lower() if kind == "letter" else word
