"""The gradients of an operator's arguments, as schedules of further kernels.

For C = f(acc, t, ..) with acc = A * B, and G the gradient of C:

- D = G * df/dacc, by a kernel that recomputes acc and has the derivative in its epilogue; if the
  factor doesn't depend on acc, by tensor operations; if it is a number, D is G, and the number is
  the alpha of the next two;
- dA = D * B and dB = A * D, each its own gemm line in the given storage orders;
- for a tensor t of the epilogue G * df/dt in the same ways, summed over the letters that t lacks.
"""

from __future__ import annotations

from dataclasses import replace

from gemmgen.base.record import record
from gemmgen.base.source import Source
from gemmgen.ir.dtypes import DType
from gemmgen.ir.expr import Binary, Element, Expr, Float, Var, transform, walk
from gemmgen.ir.problem import Problem
from gemmgen.language import parse_schedule
from gemmgen.schedule.formatting import format_schedule
from gemmgen.schedule.model import Access, Dtypes, Epilogue, Gemm, SameBits, Schedule
from gemmgen.torch.derivative import adjoints, is_zero


@record
class Zero:
    """The gradient is 0."""


@record
class Scaled:
    """G times a number, an expression of the scalars."""

    number: Expr


@record
class Pointwise:
    """An expression of ``gradient`` (G), the epilogue's tensors and the letters, without acc."""

    expression: Expr
    gradient: str


@record
class Recomputed:
    """The output of a schedule's kernel, which recomputes acc and reads ``gradient``; the old C is
    its tensor ``old``."""

    schedule: Schedule
    gradient: str
    old: str


Partial = Zero | Scaled | Pointwise | Recomputed


def partials(schedule: Schedule, problem: Problem, with_old: bool) -> dict[str, Partial]:
    """The gradient of acc and of each tensor of the epilogue, before sums over missing letters.

    ``with_old`` is False if C is left out: ``beta * C`` is then 0.  Raises ``NoDerivative``, and
    ``ScheduleError`` if a derivative is too large an expression.
    """
    c = problem.c
    expression = problem.epilogue if with_old else _without(problem.epilogue, c.name)
    used = {part.buffer for part in walk(expression) if isinstance(part, Element)}
    taken = used | {problem.a.name, problem.b.name, c.name}
    gradient = fresh(f"grad_{c.name}", taken)
    old = fresh(f"old_{c.name}", taken | {gradient})
    letters = tuple(Var(letter) for letter in c.letters)
    slopes = adjoints(expression, Float(1.0))
    whole = adjoints(expression, Element(gradient, letters))
    found: dict[str, Partial] = {}
    for name in ("acc", *sorted(used)):
        slope = slopes.get(name, Float(0.0))
        names = {part.name for part in walk(slope) if isinstance(part, Var)}
        reads = any(isinstance(part, Element) for part in walk(slope))
        if is_zero(slope):
            found[name] = Zero()
        elif "acc" in names:
            text = _recomputing(schedule, whole[name], c.name, old)
            found[name] = Recomputed(text, gradient, old)
        elif reads or names & set(c.letters):
            found[name] = Pointwise(whole[name], gradient)
        else:
            found[name] = Scaled(slope)
    return found


def _without(expression: Expr, c: str) -> Expr:
    """The epilogue for beta = 0, without C."""

    def rule(part: Expr) -> Expr | None:
        match part:
            case Binary("+", left, right) if _reads_only(right, c):
                return transform(left, rule)
            case Element(buffer, _) if buffer == c:
                return Float(0.0)
            case _:
                return None

    return transform(expression, rule)


def _reads_only(expr: Expr, c: str) -> bool:
    """Whether it is ``beta * C[m, n]``."""
    return (
        isinstance(expr, Binary)
        and expr.op == "*"
        and any(isinstance(part, Element) and part.buffer == c for part in (expr.left, expr.right))
        and Var("beta") in (expr.left, expr.right)
    )


def _recomputing(schedule: Schedule, expression: Expr, c: str, old: str) -> Schedule:
    """``schedule`` with another epilogue, in which the old C is its own tensor."""

    def rename(part: Expr) -> Expr | None:
        if isinstance(part, Element) and part.buffer == c:
            return Element(old, part.indices)
        return None

    expression = transform(expression, rename)
    read = {part.buffer for part in walk(expression) if isinstance(part, Element)}
    gemm = schedule.gemm
    kept = read | {gemm.a.tensor, gemm.b.tensor, gemm.c.tensor, "acc"}
    dtypes = tuple((name, dtype) for name, dtype in schedule.dtypes if name in kept)
    found = replace(schedule, epilogue=Epilogue(expression), dtypes=dtypes)
    return parse_schedule(Source(format_schedule(found)))


@record
class ProductOperand:
    """The view of an operand that a product's kernel takes: dimensions permuted by ``order``, then
    each of ``groups``, a range of the permuted dimensions, merged into one."""

    order: tuple[int, ...]
    groups: tuple[tuple[int, int], ...]

    @property
    def as_it_is(self) -> bool:
        ones = all(end - start == 1 for start, end in self.groups)
        return ones and self.order == tuple(range(len(self.order)))


@record
class Product:
    """The gradient of an input: a schedule without directives, and its operands in order."""

    schedule: Schedule
    left: ProductOperand
    right: ProductOperand


def product(schedule: Schedule, problem: Problem, role: str) -> Product:
    """The gradient of ``a`` (D * B) or ``b`` (A * D), D being the gradient of acc, times alpha.

    It is summed over the letters of C that the input lacks.  Several are merged into one, without
    a copy if they are adjacent in both operands.
    """
    a, b, c = problem.a, problem.b, problem.c
    out = a if role == "a" else b
    taken = {a.name, b.name, c.name}
    gradient = fresh(f"grad_{c.name}", taken)
    result = fresh(f"grad_{out.name}", taken | {gradient})
    summed = tuple(letter for letter in c.letters if letter not in out.letters)
    d = Access(gradient, c.letters)
    left, right = (d, Access(b.name, b.letters)) if role == "a" else (Access(a.name, a.letters), d)
    rows = [x for x in out.letters if x in left.indices and x not in right.indices]
    columns = [x for x in out.letters if x in right.indices and x not in left.indices]
    tiled = {rows[-1], columns[-1], *summed}
    arranged = [_arranged(x.indices, summed, tiled) for x in (left, right)]
    one = next(letter for letter in summed if letter in (problem.m, problem.n))
    extents = {letter.upper() for letter in (*out.letters, one)}
    first, second = (
        Access(_apart(x.tensor, extents), _letters(x.indices, operand, summed, one))
        for x, operand in zip((left, right), arranged, strict=True)
    )
    types = dict(schedule.dtypes)
    stored: dict[str, DType] = {gradient: types[c.name], **types}
    dtypes: Dtypes = (
        (first.tensor, stored[left.tensor]),
        (second.tensor, stored[right.tensor]),
        (result, types[out.name]),
        ("acc", types["acc"]),
    )
    scaled = Var("alpha") * Var("acc")
    found = Schedule(
        Gemm(Access(result, out.letters), first, second),
        schedule.kernel,
        dtypes,
        schedule.target,
        epilogue=Epilogue(scaled),
        same_bits=_kept(schedule, out.letters),
    )
    return Product(parse_schedule(Source(format_schedule(found))), *arranged)


def _kept(schedule: Schedule, letters: tuple[str, ...]) -> SameBits | None:
    """``require same_bits`` over those of its letters that the gradient has."""
    asked = schedule.same_bits
    kept = tuple(x for x in asked.letters if x in letters) if asked else ()
    return SameBits(kept) if kept else None


def _arranged(letters: tuple[str, ...], summed: tuple[str, ...], tiled: set[str]) -> ProductOperand:
    """An operand with the ``summed`` letters as one, and one of ``tiled`` contiguous."""
    at = [letters.index(letter) for letter in summed]
    neighbours = at == list(range(at[0], at[0] + len(at)))
    order = tuple(range(len(letters)))
    if not neighbours or letters[-1] not in tiled:
        batches = [i for i in order if letters[i] not in tiled]
        others = [i for i in order if letters[i] in tiled and i not in at]
        order = (*batches, *at, *others)
        at = [order.index(i) for i in at]
    groups = [(i, i + 1) for i in range(len(order)) if i not in at] + [(at[0], at[-1] + 1)]
    return ProductOperand(order, tuple(sorted(groups)))


def _letters(
    letters: tuple[str, ...], operand: ProductOperand, summed: tuple[str, ...], one: str
) -> tuple[str, ...]:
    """The operand's letters in the kernel: ``one`` replaces all summed letters."""
    permuted = [letters[i] for i in operand.order]
    firsts = [permuted[start] for start, _ in operand.groups]
    return tuple(one if letter in summed else letter for letter in firsts)


def _apart(name: str, extents: set[str]) -> str:
    """A tensor's name that is not an extent's: a batch of the forward pass may be tiled here."""
    return f"{name}_in" if name in extents else name


def fresh(name: str, taken: set[str]) -> str:
    """``name``, with a number appended if it is in ``taken``."""
    number, found = 1, name
    while found in taken:
        number, found = number + 1, f"{name}_{number + 1}"
    return found
