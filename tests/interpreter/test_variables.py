"""Variables that change, and those that a function gives to its caller."""

from __future__ import annotations

from gemmgen.emit.statement_text import function_text, statements
from gemmgen.ir.control import AdvanceRing, Assign, Define, For
from gemmgen.ir.expr import Call, Expr, Int, Var
from gemmgen.ir.thread_code import Function, Invoke, Node, Parameter

from .kernels import of
from .test_interpret import ME, out, run

STAGE, PHASE = Var("stage"), Var("phase")
HALVES = Function(
    "halves",
    "a number's halves",
    (),
    (Parameter("number"),),
    (
        Define("half", of("/", "number", 2)),
        Define("low", Var("half")),
        Define("high", of("-", "number", "half")),
    ),
    ("low", "high"),
)
"""Two results, and a variable of its own."""


def stored(number: Expr) -> Node:
    return Assign(out(), Call("float", (number,)))


def after(steps: int, stages: int) -> list[float]:
    """``10 * phase + stage`` after this many steps, from stage 0 of phase 0 on."""
    ring = AdvanceRing("stage", "phase", Int(stages))
    begin = (Define(name, Int(0), mutable=True) for name in ("stage", "phase"))
    both = of("+", of("*", 10, PHASE), STAGE)
    return run(*begin, For("step", Int(0), Int(steps), Int(1), (ring,)), stored(both), size=4)


def test_a_ring_turns_its_phase_after_its_last_stage() -> None:
    found = [after(steps, 3)[0] for steps in range(8)]
    assert found == [0, 1, 2, 10, 11, 12, 0, 1]


def test_a_ring_of_two_stages() -> None:
    assert [after(steps, 2)[0] for steps in range(5)] == [0, 1, 10, 11, 0]


def test_a_caller_has_the_results_of_a_function_by_their_names() -> None:
    call = Invoke(HALVES, (of("+", ME, 5),))
    assert run(call, stored(of("-", of("*", 10, "high"), "low")), size=4) == [28, 27, 37, 36]


def test_each_call_has_results_of_its_own() -> None:
    first, second = Invoke(HALVES, (Int(9),)), Invoke(HALVES, (Int(4),))
    loop = For("step", Int(0), Int(2), Int(1), (second, stored(Var("high"))))
    assert run(first, loop, size=4) == [2] * 4
    assert run(first, loop, stored(Var("high")), size=4) == [5] * 4


def test_the_text_of_a_function_assigns_its_results() -> None:
    text = function_text(HALVES)
    assert "int number" in text and "int &low" in text and "int &high" in text
    assert "const int half = " in text
    assert "    low = " in text and "    high = " in text
    (call,) = statements((Invoke(HALVES, (Var("m"),)),))
    assert call.split("\n")[0] == "int low, high;"
    assert call.split("\n")[1].replace("↵", "") == "halves(m, low, high);"
