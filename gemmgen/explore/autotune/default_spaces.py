"""The default search spaces: schedules with sets, shipped as data, written for ``C = A * B``.

A space is used with a schedule of the same mechanism, a suggested one say: its sets take the place
of the schedule's values, and all else stays as the schedule has it: the gemm line and its names,
types, layouts, vector widths and the epilogue.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files

from gemmgen.base.errors import Mistakes, ScheduleError
from gemmgen.base.record import record
from gemmgen.base.source import Source
from gemmgen.explore.autotune.edits import SPECS, Place, Value, changed, value_at, without
from gemmgen.ir.dtypes import BYTES
from gemmgen.language import VOCABULARY, fmt_source, parse_schedule
from gemmgen.pipeline import compile_schedule
from gemmgen.schedule.contents import Contents, read_contents
from gemmgen.schedule.formatting import aligned, format_schedule
from gemmgen.schedule.model import Schedule
from gemmgen.schedule.raw import RawDirective, RawSet
from gemmgen.schedule.roles import extents, tensors

NAMES = ("wgmma", "wgmma_split_k", "mma", "cuda_cores", "lanes")


@record
class SearchKnob:
    """A set of a space: its values, and the arguments that they go to.

    ``let`` is the name of the ``let`` statement if the set is one's.
    """

    values: tuple[Value, ...]
    places: tuple[Place, ...]
    let: str | None = None

    @property
    def is_stages(self) -> bool:
        """Whether it is the number of stages in shared memory, which the other sizes limit."""
        return self.places[0].argument == "stages"

    @property
    def is_size(self) -> bool:
        """Whether it is a size that others must divide."""
        return any(SPECS[place.directive].sizes for place in self.places)


@record
class DefaultSpace:
    """A shipped space; ``about`` is its first comment, ``item`` the bytes of an element of A that
    its steps along k are written for."""

    name: str
    about: str
    knobs: tuple[SearchKnob, ...]
    item: int

    def knobs_for(self, schedule: Schedule) -> tuple[SearchKnob, ...]:
        """The knobs with a tile's k for the types of ``schedule``: as many bytes."""
        item = BYTES[dict(schedule.dtypes)[schedule.gemm.a.tensor]]

        def scaled(knob: SearchKnob) -> SearchKnob:
            if knob.places[0].directive != "tile" or knob.places[0].argument != "k":
                return knob
            values = (value * self.item // item for value in knob.values if isinstance(value, int))
            return replace(knob, values=tuple(max(8, value) for value in values))

        return tuple(map(scaled, self.knobs))


@cache
def default_space(name: str) -> DefaultSpace:
    """The shipped space ``name``, one of ``NAMES``."""
    path = files("gemmgen.explore.autotune") / "spaces" / f"{name}.sched"
    text = path.read_text(encoding="utf-8")
    mistakes = Mistakes(Source(text, f"{name}.sched"))
    contents = read_contents(VOCABULARY, mistakes)
    mistakes.check()
    first = {key: str(values[0]) for key, (values, _) in _sets(contents).items()}
    schedule = parse_schedule(mistakes.source, tuple(first.items()))
    item = BYTES[dict(schedule.dtypes)[schedule.gemm.a.tensor]]
    about = text.partition("\n")[0].removeprefix("#").strip()
    lets = {let.name.text for let in contents.lets}
    knobs = tuple(
        SearchKnob(values, places, key if key in lets else None)
        for key, (values, places) in _sets(contents).items()
    )
    return DefaultSpace(name, about, knobs, item)


def space_of(schedule: Schedule) -> DefaultSpace:
    """The default space whose mechanism the schedule has."""
    names = {directive.name for directive in schedule.directives}
    if value_at(schedule, Place("tensor_core", (), "via")) == "wgmma":
        return default_space("wgmma_split_k" if "split_k" in names else "wgmma")
    if "tensor_core" in names:
        return default_space("mma")
    within_warps = value_at(schedule, Place("split_k", (), "within")) == "warp"
    return default_space("lanes" if within_warps else "cuda_cores")


def space_text(schedule: Schedule) -> str:
    """The default space for the problem of ``schedule``, as a file that can be edited and passed.

    It assumes nothing of the extents if the kernel allows that, so that it can be passed with
    another shape.
    """
    space, base = space_of(schedule), schedule
    free = replace(schedule, assumes=(), requires=())
    try:
        compile_schedule(free)
        base = free
    except ScheduleError:  # accesses that need a divisor
        pass
    found, lets = without(base, "warp_specialize", "consumers"), list[str]()
    taken = {*extents(base.gemm), *tensors(base.gemm).values()}
    for knob in space.knobs_for(base):
        values: Value = "{" + ", ".join(map(str, knob.values)) + "}"
        if knob.let is not None:
            name = _unused(knob.let, taken)
            lets.append(aligned("let", f"{name} = {values}"))
            values = name
        for place in knob.places:
            found = changed(found, place, values)
    head, *lines = format_schedule(found).splitlines()
    text = "".join(f"{line}\n" for line in (head, *lets, *lines))
    return f"# {space.about}\n" + fmt_source(Source(text, f"{space.name}.sched"))


def _unused(name: str, taken: Iterable[str]) -> str:
    known = set(taken)
    while name in known:
        name += "_"
    return name


_Sets = dict[str, tuple[tuple[Value, ...], tuple[Place, ...]]]


def _sets(contents: Contents) -> _Sets:
    """The values and the places of each set, by key, in the text's order."""
    found: _Sets = {}
    for let in contents.lets:
        if isinstance(let.value, RawSet):
            found[let.name.text] = _values(let.value), ()
    for directive in contents.directives:
        for argument in directive.arguments:
            place = _place(directive, argument.name.text)
            if isinstance(argument.value, RawSet):
                key = f"{place.directive}.{place.argument}"
                assert key not in found, "the shipped spaces have one set for an argument"
                found[key] = _values(argument.value), (place,)
            elif argument.value.text in found:
                values, places = found[argument.value.text]
                found[argument.value.text] = values, (*places, place)
    return found


def _values(written: RawSet) -> tuple[Value, ...]:
    texts: Sequence[str] = [item.text for item in written.items]
    return tuple(int(text) if text.isdecimal() else text for text in texts)


def _place(directive: RawDirective, argument: str) -> Place:
    operands = tuple(
        (operand.tensor.text.lower(), operand.hop.text if operand.hop else None)
        for operand in directive.operands
    )
    return Place(directive.word.text, operands, argument)
