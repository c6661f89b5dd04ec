"""A schedule as a value: the facts of a ``.sched`` file, statement by statement.

Spans are for errors only and are not compared, so that the same facts are equal values, in
whatever order they were written.
"""

from __future__ import annotations

from dataclasses import field, replace

from gemmgen.base.record import record
from gemmgen.base.source import Blame, Source, Span
from gemmgen.ir.dtypes import DType
from gemmgen.ir.expr import Expr
from gemmgen.ir.target import DEFAULT_TARGET

NOWHERE = Span(0, 0)


@record
class Access:
    """``A[m, k]``: a tensor and its letters, in storage order, the last one contiguous."""

    tensor: str
    indices: tuple[str, ...]
    span: Span = field(default=NOWHERE, compare=False)


@record
class Scale:
    """``SA[k/128, m]``: the factors of a tensor's blocks, one of 128 elements along k in each row
    m, in the storage order of ``indices``.  ``of`` is the operand's name."""

    tensor: str
    indices: tuple[str, ...]
    of: str
    span: Span = field(default=NOWHERE, compare=False)


@record
class Gemm:
    """``gemm C[m, n] = A[m, k] * B[k, n]``; ``scales`` are those of a and of b, if they have
    any."""

    c: Access
    a: Access
    b: Access
    scales: tuple[Scale, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)


DEFAULT_GEMM = Gemm(Access("C", ("m", "n")), Access("A", ("m", "k")), Access("B", ("k", "n")))
Dtypes = tuple[tuple[str, DType], ...]
DEFAULT_DTYPES: Dtypes = (("A", "f32"), ("B", "f32"), ("C", "f32"), ("acc", "f32"))


@record
class Operand:
    """``A``, ``A.shared`` or ``A[k, m]`` in a directive.

    ``hop`` is None for an operand without a hop: every hop that the directive has, or the one that
    its specification names.  Only directives that state a layout have ``indices``, and always.
    """

    tensor: str
    hop: str | None = None
    indices: tuple[str, ...] | None = None
    span: Span = field(default=NOWHERE, compare=False)
    value_span: Span = field(default=NOWHERE, compare=False)
    """The first argument written with this operand; else the operand."""


@record
class Choice:
    """``{64, 128}``: a set of values; a search chooses one of them.  A canonical schedule has no
    sets."""

    values: tuple[int | str, ...]


Value = int | str


@record
class Argument:
    """``name=value``; ``span`` covers it whole, name and value."""

    name: str
    value: Value
    span: Span = field(default=NOWHERE, compare=False)


@record
class Directive:
    """``vectorize A B C width=4``: one rung of the ladder.

    Operands are in the order a, b, c; arguments in the specification's, without those at their
    default.
    """

    name: str
    operands: tuple[Operand, ...] = ()
    arguments: tuple[Argument, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)

    def argument(self, name: str) -> Argument | None:
        """The argument ``name``; None if it is left out."""
        return next((a for a in self.arguments if a.name == name), None)


@record
class Epilogue:
    """``fuse_epilogue relu(acc + bias[n])``."""

    expression: Expr
    span: Span = field(default=NOWHERE, compare=False)


@record
class Assume:
    """``assume N % 4 == 0`` (``divisor`` 4, ``equals`` None) or ``assume lda == K``."""

    name: str
    divisor: int | None
    equals: str | None
    span: Span = field(default=NOWHERE, compare=False)


@record
class Require:
    """``require shared <= 48KiB``: ``quantity`` is shared (bytes), threads, registers or spills."""

    quantity: str
    op: str
    limit: int
    span: Span = field(default=NOWHERE, compare=False)


@record
class SameBits:
    """``require same_bits over m``: the bits of an element of C do not depend on the extents of
    these ``letters``."""

    letters: tuple[str, ...]
    span: Span = field(default=NOWHERE, compare=False)


@record
class Schedule:
    """A whole, canonical schedule: directives in the passes' order, one value per set of facts.

    ``dtypes`` maps the tensors (in the order a, b, c) and ``acc`` to their types, and the
    epilogue's tensors whose type is not c's.  Spans are positions in ``source``.
    """

    gemm: Gemm = DEFAULT_GEMM
    kernel: str = "gemm"
    dtypes: Dtypes = DEFAULT_DTYPES
    target: str = DEFAULT_TARGET
    assumes: tuple[Assume, ...] = ()
    requires: tuple[Require, ...] = ()
    directives: tuple[Directive, ...] = ()
    epilogue: Epilogue | None = None
    same_bits: SameBits | None = None
    dtype_span: Span = field(default=NOWHERE, compare=False)
    source: Source = field(default=Source(""), compare=False)

    def __repr__(self) -> str:
        from gemmgen.schedule.formatting import format_gemm

        count = len(self.directives)
        directives = f"{count} directive{'' if count == 1 else 's'}"
        return f"<Schedule {self.kernel}: {format_gemm(self.gemm)}, {directives}>"

    def __str__(self) -> str:
        """``text`` without the last line end."""
        return self.text.removesuffix("\n")

    @property
    def text(self) -> str:
        """The canonical text, as ``gemmgen fmt`` aligns it."""
        from gemmgen.schedule.formatting import format_schedule

        return format_schedule(self)

    def span_of(self, place: Blame) -> Span | None:
        """Where a place is in the text; None if the schedule has no such statement."""
        said = [d for d in self.directives if d.name == place.directive]
        for operand in (o for d in said for o in d.operands if o.tensor == place.operand):
            if operand.hop in (None, place.hop or operand.hop):
                stated = operand.value_span
                return stated if stated != NOWHERE else operand.span
        found = said[0].argument(place.argument) if said else None
        return found.span if found else said[0].span if said else None

    @property
    def problem_alone(self) -> Schedule:
        """The problem: without directives, assumptions and bounds of ``require``.  ``require
        same_bits`` stays: it is about results."""
        return replace(self, assumes=(), requires=(), directives=())
