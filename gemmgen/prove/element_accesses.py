"""Accesses of memory: which element it is, whether it is inside, and what it holds."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import cast

import numpy as np

from gemmgen.ir.blocked_letters import block, plain
from gemmgen.prove import (
    conditions,
    data,
    part_accesses,
    polynomials,
    shared_accesses,
    shared_state,
)
from gemmgen.prove.conditions import Condition
from gemmgen.prove.data import Data, Place, TensorElement, UnknownData
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.polynomials import Polynomial
from gemmgen.prove.settled_values import settled
from gemmgen.prove.state import (
    Binding,
    GlobalPlace,
    RegisterPlace,
    SharedPlace,
    WalkState,
    under,
)
from gemmgen.prove.walk_context import OutputStore, WalkContext


def load(
    context: WalkContext,
    state: WalkState,
    place: Binding,
    width: int,
    valid: Sequence[Condition] = (),
) -> list[Data]:
    """``width`` neighbors; of global memory only those whose ``valid`` holds, if it is given."""
    match place:
        case GlobalPlace(param, offset):
            return load_global(context, state, GlobalPlace(param, offset), width, valid)
        case SharedPlace():
            return shared_accesses.load(context, state, place, width)
        case RegisterPlace():
            return [load_register(context, state, place, e) for e in range(width)]
        case _:
            raise Unsupported("a read of what is no memory")


def save(context: WalkContext, state: WalkState, place: Binding, values: Sequence[Data]) -> None:
    match place:
        case GlobalPlace():
            _save_global(context, state, place, values)
        case SharedPlace():
            shared_accesses.save(context, state, place, values)
        case RegisterPlace():
            for e, value in enumerate(values):
                save_register(context, state, place, e, value)
        case _:
            raise Unsupported("a write of what is no memory")


# ---- global memory ----


def coordinates(context: WalkContext, tensor: GlobalPlace) -> Place:
    """The index of an element by letter, from its flat one: what each leading dimension is
    multiplied by, and the rest."""
    left, found = tensor.offset, list[Polynomial]()
    for step in context.interface.steps(tensor.param)[:-1]:
        if step is None:
            raise Unsupported(f"{tensor.param.name} without a leading dimension")
        (name,) = context.sizes[step].symbols or {""}
        row: dict[polynomials.Monomial, polynomials.Coefficient] = {}
        rest: dict[polynomials.Monomial, polynomials.Coefficient] = {}
        for monomial, value in left.terms.items():
            if name in monomial:
                without = list(monomial)
                without.remove(name)
                row[tuple(without)] = value
            else:
                rest[monomial] = value
        found.append(Polynomial(row))
        left = Polynomial(rest)
    return tuple(zip(tensor.param.indices, (*found, left), strict=True))


def neighbor(at: Place, by: int) -> Place:
    """The place ``by`` elements on, in the same row."""
    if not at or by == 0:
        return at
    *first, (letter, form) = at
    return (*first, (letter, polynomials.add(form, polynomials.fixed(by))))


def check_global(
    context: WalkContext,
    state: WalkState,
    tensor: GlobalPlace,
    at: Place,
    width: int,
    *path: Condition,
) -> None:
    """That ``width`` elements from ``at`` on are inside their row and their tensor."""
    parts: list[Condition] = []
    for i, (letter, form) in enumerate(at):
        last = polynomials.add(form, polynomials.fixed(width - 1 if i == len(at) - 1 else 0))
        parts += [conditions.not_negative(form), conditions.less(last, context.extent(letter))]
    name = tensor.param.name
    address = (name, tuple(form for _, form in at))
    about = f"{name} is accessed outside"
    for part in parts:
        context.claim(state, "global bounds", part, about, address, path)
    check_pitch(context, state, tensor)


def check_pitch(context: WalkContext, state: WalkState, tensor: GlobalPlace) -> None:
    """That rows do not overlap: an element inside its row is then no other row's."""
    steps = context.interface.steps(tensor.param)
    pitch = dict(context.interface.pitch).get(tensor.param.name)
    if pitch is None or pitch not in steps or pitch not in context.sizes:
        return
    last = tensor.param.indices[-1]
    spanned = polynomials.scale(context.sizes[pitch], block(last))
    spans = conditions.at_least(spanned, context.extent(last))
    base = state.branch()
    base.path, base.mask = (), None
    about = f"a row of {tensor.param.name} is longer than its leading dimension"
    context.claim(base, "global bounds", spans, about)


def check_alignment(
    context: WalkContext, state: WalkState, tensor: GlobalPlace, width: int
) -> None:
    """That a vector of ``width`` elements begins at a multiple of its bytes."""
    if width == 1:
        return
    name, item = tensor.param.name, tensor.param.item
    base = context.aligned.get(name, item)
    context.check(
        state, "alignment", base % (width * item) != 0, f"{name} is aligned to {base} bytes only"
    )
    left: dict[polynomials.Monomial, polynomials.Coefficient] = {}
    for monomial, value in tensor.offset.terms.items():
        factor = prod(context.theory.multiples.get(symbol, 1) for symbol in monomial)
        if np.any(np.asarray(value) * factor % width != 0):
            left[monomial] = value
    rest = Polynomial(left)
    about = f"{name} is accessed at no multiple of {width} elements"
    address = (name, tuple(form for _, form in coordinates(context, tensor)))
    if rest.concrete:
        context.check(state, "alignment", _bools(rest.constant, width), about)
    else:
        context.claim(state, "alignment", conditions.Multiple(rest, width), about, address)


def _bools(constant: polynomials.Coefficient, width: int) -> bool | shared_state.Bools:
    wrong = np.asarray(constant) % width != 0
    return bool(wrong) if wrong.ndim == 0 else cast(shared_state.Bools, wrong)


def load_global(
    context: WalkContext,
    state: WalkState,
    tensor: GlobalPlace,
    width: int,
    valid: Sequence[Condition] = (),
) -> list[Data]:
    if tensor.param.kind != "tensor" and tensor.param.scales is None:
        return part_accesses.load(context, state, tensor, width)
    at = coordinates(context, tensor)
    check_alignment(context, state, tensor, width)
    if not valid:
        check_global(context, state, tensor, at, width)
        return [element(context, tensor.param.name, neighbor(at, e)) for e in range(width)]
    found: list[Data] = []
    for e, test in enumerate(valid):
        own = neighbor(at, e)
        if not (isinstance(test, conditions.Truth) and test.value is False):
            check_global(context, under(state, test), tensor, own, 1)
        found.append(data.pick(test, element(context, tensor.param.name, own), data.ZERO))
    return found


def element(context: WalkContext, tensor: str, at: Place) -> Data:
    """An element of a tensor; two, if the contracted index is one of two that are a number apart
    (that of a later tile, if there is one): where the element is used, it is known which."""
    for letter in (own for own, _ in at if plain(own) in context.contracted):
        form = data.form_at(at, letter)
        for name in () if form is None else sorted(form.symbols & context.theory.choices.keys()):
            assert form is not None
            if any(len(monomial) > 1 and name in monomial for monomial in form.terms):
                continue
            condition, *sides = context.theory.choices[name]
            if polynomials.subtract(*sides).number() is None:
                continue
            yes, no = (
                element(
                    context,
                    tensor,
                    tuple(
                        (own, polynomials.substituted(each, name, side) if own == letter else each)
                        for own, each in at
                    ),
                )
                for side in sides
            )
            return data.pick(condition, yes, no)
    return TensorElement(tensor, at)


def _save_global(
    context: WalkContext, state: WalkState, tensor: GlobalPlace, values: Sequence[Data]
) -> None:
    if tensor.param.kind == "workspace":
        part_accesses.save(context, state, tensor, [*values])
        return
    if tensor.param.name != context.output.name:
        raise Unsupported(f"a store to the {tensor.param.kind} {tensor.param.name}")
    at = coordinates(context, tensor)
    check_alignment(context, state, tensor, len(values))
    check_global(context, state, tensor, at, len(values))
    if not context.ledger.quiet:
        for e, value in enumerate(values):
            own = neighbor(at, e)
            context.stores.append(OutputStore(own, value, state.path, state.mask, context.where))


# ---- registers ----


def register_number(
    context: WalkContext, state: WalkState, place: RegisterPlace, e: int
) -> int | None:
    """The flat index of an element; None if it is outside."""
    if len(place.first) != len(place.sizes):
        raise Unsupported(f"{len(place.first)} indices of {place.key}")
    flat, last = 0, len(place.sizes) - 1
    for i, (form, size) in enumerate(zip(place.first, place.sizes, strict=True)):
        own = form.plain
        if own is None:
            raise Unsupported(
                f"the index {polynomials.text(form)} of registers is not the same for all"
            )
        own += e if i == last else 0
        if 0 <= own < size:
            context.ledger.count("register bounds")
            flat = flat * size + own
            continue
        name = place.key.partition("@")[0]
        context.check(state, "register bounds", True, f"index {i} of {name} is {own}, of {size}")
        return None
    return flat


def load_register(context: WalkContext, state: WalkState, place: RegisterPlace, e: int) -> Data:
    at = register_number(context, state, place, e)
    _check_free(context, state, place)
    if at is None:
        return UnknownData("a register outside its array", certain=True)
    return state.registers.get(
        (place.key, at), UnknownData("a register that was never set", certain=True)
    )


def save_register(
    context: WalkContext, state: WalkState, place: RegisterPlace, e: int, value: Data
) -> None:
    at = register_number(context, state, place, e)
    _check_free(context, state, place)
    if at is not None:
        keep_register(context, state, place, at, value)


def _check_free(context: WalkContext, state: WalkState, place: RegisterPlace) -> None:
    """That no wgmma has an array for its accumulators."""
    if state.multiplying:
        about = f"{place.key.partition('@')[0]} is accessed while wgmma accumulates in it"
        context.check(state, "races", place.key in state.multiplying, about)


def keep_register(
    context: WalkContext, state: WalkState, place: RegisterPlace, number: int, value: Data
) -> None:
    """Each thread's register, by its number in the array, holds ``value`` from here on."""
    state.registers[place.key, number] = settled(context, state, value)
