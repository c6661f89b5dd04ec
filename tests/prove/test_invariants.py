"""What an invariant claims of variables and of the order of accesses, where states meet."""

from __future__ import annotations

import numpy as np
import pytest

from gemmgen.ir.barriers import BarrierArray
from gemmgen.ir.traversal import inside
from gemmgen.prove import equal_orders, invariants, polynomials
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.polynomials import Polynomial
from gemmgen.prove.questions import Questions
from gemmgen.prove.state import WalkState
from gemmgen.prove.walk_context import WalkContext
from gemmgen.prove.warp_clocks import SEVERAL_LANES
from tests.prove import needs_z3  # noqa: F401  # skips the file without the solver

from .planting import emitted

ONE = polynomials.fixed(1)


def context_of(name: str) -> WalkContext:
    return WalkContext(emitted(name).lowered.kernels[0], 10.0, {}, Questions())


def state_of(context: WalkContext, **slots: Polynomial) -> WalkState:
    state = context.state()
    state.slots.update(slots)
    return state


def weaken(context: WalkContext, known: WalkState, other: WalkState) -> bool:
    return invariants.weaken(context, known, other, lambda form: form)


def freed(context: WalkContext) -> tuple[WalkState, Polynomial]:
    """A state that knows nothing of ``i``, and its symbol."""
    known = state_of(context, i=polynomials.fixed(0), j=polynomials.fixed(0))
    k = context.extent("k")
    assert weaken(context, known, state_of(context, i=k, j=polynomials.fixed(0)))
    value = known.slots["i"]
    assert isinstance(value, Polynomial) and known.freed == {next(iter(value.symbols)): "i"}
    return known, value


def test_a_freed_variable_may_have_any_value() -> None:
    context = context_of("naive")
    known, own = freed(context)
    after = state_of(context, i=polynomials.add(own, ONE), j=polynomials.fixed(0))
    assert not weaken(context, known, after)


def test_two_variables_with_one_symbol_are_not_claimed_to_be_equal() -> None:
    """Where a loop inside begins with ``j = i``, and adds to ``i``."""
    context = context_of("naive")
    _, own = freed(context)
    inner = state_of(context, i=own, j=own)
    assert weaken(context, inner, state_of(context, i=polynomials.add(own, ONE), j=own))
    assert not polynomials.same(inner.slots["i"], own)  # type: ignore[arg-type]  # a polynomial


def test_what_depends_on_a_freed_variable_is_claimed_of_its_value() -> None:
    context = context_of("naive")
    known, own = freed(context)
    known.slots["j"] = polynomials.add(own, ONE)
    two = polynomials.fixed(2)
    assert not weaken(context, known, state_of(context, i=two, j=polynomials.fixed(3)))
    assert weaken(context, known, state_of(context, i=two, j=two))


def test_a_freed_variable_keeps_its_range() -> None:
    context = context_of("naive")
    known = state_of(context, i=polynomials.fixed(0))
    assert weaken(context, known, state_of(context, i=ONE))
    assert not weaken(context, known, state_of(context, i=ONE))
    assert weaken(context, known, state_of(context, i=polynomials.fixed(2)))


def test_two_states_that_exchange_two_freed_variables() -> None:
    """The value of each has the symbol of the other one."""
    context = context_of("naive")
    known, own = freed(context)
    k = context.extent("k")
    assert weaken(context, known, state_of(context, i=own, j=k))
    other = known.slots["j"]
    assert isinstance(other, Polynomial)
    assert not weaken(context, known, state_of(context, i=other, j=own))


def written_by(context: WalkContext, warp: int) -> WalkState:
    """A state in which this warp has written the first element of the first array."""
    state = context.state()
    assert state.barriers is not None
    for part in inside(context.kernel.body):
        if isinstance(part, BarrierArray):
            state.barriers.declare(part)
    trace = state.traces[0]
    trace.write_agent[0], trace.write_epoch[0], trace.write_lane[0] = warp, 1, 0
    return state


def test_an_element_that_one_warp_or_another_wrote_is_not_covered() -> None:
    """A barrier of the first warp would not order the second one's write."""
    context = context_of("tma")
    states = [written_by(context, 0), written_by(context, 1)]
    with pytest.raises(Unsupported, match="one warp or another has written last"):
        equal_orders.joined_order(states)


def test_an_element_that_lanes_of_one_warp_wrote_is_known_to_none() -> None:
    context = context_of("tma")
    states = [written_by(context, 0), written_by(context, 0)]
    states[1].traces[0].write_lane[0] = 5
    equal_orders.joined_order(states)
    clocks, trace = states[0].clocks, states[0].traces[0]
    assert clocks is not None and trace.write_lane[0] == SEVERAL_LANES
    assert (clocks.known[:, 0] < trace.write_epoch[0]).all() and np.all(trace.write_agent[0] == 0)
