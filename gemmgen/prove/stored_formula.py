"""What is stored is the schedule's formula of the sum, in real arithmetic: rounding aside.

Functions of the C library are compared by name: what is proved holds whatever they compute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gemmgen.ir.epilogue_arithmetic import (
    CUBIC,
    HALF_ROOT,
    LIBRARY,
    ROOT_2_PI,
    reads_unscaled,
)
from gemmgen.ir.expr import Binary, Call, Element, Expr, Float, Int, Select, Unary, Var, Wide
from gemmgen.ir.problem import Problem
from gemmgen.prove import data, picked_values, solver
from gemmgen.prove.data import Apply, Data, Number, ScalarArgument, TensorElement, TermTotals, Total
from gemmgen.prove.goals import KnownViolation
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.solver import Term
from gemmgen.prove.walk_context import OutputStore, WalkContext

CONVERSIONS = ("float", "double", "int")
FUNCTIONS = {own: name for name in LIBRARY for own in (name, f"{name}_f64")}
"""Functions of the C library, in f32 and in f64: a schedule has one name for both."""
COMPARISONS: dict[str, Callable[[Term, Term], Term]] = {
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
    "&&": lambda x, y: solver.all_of((x, y)),
    "||": lambda x, y: solver.any_of((x, y)),
}
ARITHMETIC: dict[str, Callable[[Term, Term], Term]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y,
    **COMPARISONS,
}


class EpilogueFormula:
    """The epilogue of a problem, as a term of the solver."""

    def __init__(self, context: WalkContext, problem: Problem):
        self.context, self.problem = context, problem
        self.wanted = _term(problem.epilogue)
        output = context.output.name
        self.hides_old = not reads_unscaled(problem.epilogue, output)
        self._known: dict[object, solver.Answer] = {}

    def check(
        self, store: OutputStore, value: Data, flags: Mapping[str, bool], empty: bool = False
    ) -> None:
        """Adds to the fact ``formula`` what is stored in calls with these ``flags``; ``empty``: the
        sum has no product."""
        ledger = self.context.ledger
        ledger.count("formula")
        try:
            found = _of_data(value)
        except Unsupported as problem:
            about = str(problem)
            ledger.violated(KnownViolation("formula", about, store.path, 0, store.where, False))
            return
        given = [_flag(name, side) for name, side in flags.items()]
        if empty:
            given.append(solver.real("acc") == solver.real_number(0.0))
        key = (found, *given)
        if key not in self._known:
            theory = self.context.theory
            apart = solver.negated(found == self.wanted)
            self._known[key] = theory.questions.satisfiable([apart, *given], theory.seconds)
        answer = self._known[key]
        if answer.status != "unsat":
            known = answer.status == "sat"
            about = "what is stored differs from the formula" if known else "the formula"
            self._violate(store, about, known)
        elif self.hides_old and flags.get("beta == 0.0") is not False and self._reads_old(value):
            self._violate(store, "where beta is 0, C is read, so that its NaNs spread", True)

    def _violate(self, store: OutputStore, about: str, certain: bool) -> None:
        own = KnownViolation("formula", about, store.path, 0, store.where, certain)
        self.context.ledger.violated(own)

    def _reads_old(self, value: Data) -> bool:
        name = self.context.output.name
        return any(
            isinstance(x, TensorElement) and x.tensor == name for x in picked_values.inside(value)
        )


def _flag(name: str, side: bool) -> Term:
    """A comparison of a scalar with a number, as the walk names it."""
    left, op, right = name.split(" ")
    term = COMPARISONS[op](*(_operand(each) for each in (left, right)))
    return term if side else solver.negated(term)


def _operand(word: str) -> Term:
    try:
        return solver.real_number(float(word))
    except ValueError:
        return solver.real(word)


def _of_data(value: Data) -> Term:
    match value:
        case Number(literal):
            return solver.real_number(literal)
        case ScalarArgument(name):
            return solver.real(name)
        case TensorElement(tensor, _, None):
            return solver.real(f"an element of {tensor}")
        case Total() | TermTotals():
            return solver.real("acc")
        case Apply("fmaf" | "fma" | "mad", (a, b, c)):
            return _of_data(a) * _of_data(b) + _of_data(c)
        case Apply("where", (test, yes, no)):
            return solver.either(_of_data(test), _of_data(yes), _of_data(no))
        case Apply("!", (x,)):
            return solver.negated(_of_data(x))
        case Apply("-", (x,)):
            return -_of_data(x)
        case Apply(name, (x,)) if name in FUNCTIONS:
            return solver.function(FUNCTIONS[name], _of_data(x))
        case Apply(name, (x,)) if name in CONVERSIONS or name.startswith(("to_", "from_")):
            return _of_data(x)
        case Apply(op, (x, y)) if op in ARITHMETIC:
            return ARITHMETIC[op](_of_data(x), _of_data(y))
        case Apply(name, _):
            raise Unsupported(f"the operation {name} of the epilogue")
        case _:
            raise Unsupported(f"{data.shown(value, 0)} in the epilogue")


def _term(expr: Expr) -> Term:
    """A schedule's formula: the accumulator is ``acc``, a tensor's element named after it."""
    match expr:
        case Int(literal):
            return solver.real_number(float(literal))
        case Float(literal):
            return solver.real_number(literal)
        case Var(name):
            return solver.real(name)
        case Element(tensor, _):
            return solver.real(f"an element of {tensor}")
        case Unary(op, x):
            return -_term(x) if op == "-" else solver.negated(_term(x))
        case Select(test, yes, no):
            return solver.either(_term(test), _term(yes), _term(no))
        case Binary(op, x, y):
            if op not in ARITHMETIC:
                raise Unsupported(f"the operator {op} of the epilogue")
            return ARITHMETIC[op](_term(x), _term(y))
        case Call(name, arguments):
            return _function(name, [_term(each) for each in arguments])
        case Wide(x):
            return _term(x)


def _function(name: str, x: list[Term]) -> Term:
    zero, one = solver.real_number(0.0), solver.real_number(1.0)
    half, exp = solver.real_number(0.5), "exp"
    match name:
        case "relu":
            return solver.either(x[0] < zero, zero, x[0])
        case "min":
            return solver.either(x[0] < x[1], x[0], x[1])
        case "max":
            return solver.either(x[0] > x[1], x[0], x[1])
        case "clamp":
            return _function("min", [_function("max", x[:2]), x[2]])
        case "where":
            return solver.either(*x)
        case "sigmoid":
            return one / (one + solver.function(exp, -x[0]))
        case "silu":
            return x[0] / (one + solver.function(exp, -x[0]))
        case "gelu":
            bell = one + solver.function("erf", x[0] * solver.real_number(HALF_ROOT))
            return half * x[0] * bell
        case "gelu_tanh":
            cube = solver.real_number(CUBIC) * x[0] * x[0] * x[0]
            inner = solver.real_number(ROOT_2_PI) * (x[0] + cube)
            return half * x[0] * (one + solver.function("tanh", inner))
        case _:
            return solver.function(name, *x)
