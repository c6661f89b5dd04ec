"""What a directive may say: declared once per pass; read by the checker, help and fuzz."""

from __future__ import annotations

from typing import Literal

from gemmgen.base.record import record

Role = Literal["a", "b", "c"]


@record
class ArgumentSpec:
    """One ``name=value`` of a directive.

    ``name`` is a word, or has one of the roles ``<m>``, ``<n>``, ``<k>`` in it: the row, column and
    contracted letter of this schedule's ``gemm`` line.  ``identity`` is the value that equals the
    argument's absence (a directive whose every argument is at its identity is no directive).
    Integers lie in ``minimum..maximum``; words are one of ``choices`` (the roles stand for letters
    there too).
    """

    name: str
    kind: Literal["int", "word"] = "int"
    minimum: int = 1
    maximum: int = 1 << 16
    choices: tuple[str, ...] = ()
    required: bool = False
    default: int | str | None = None
    identity: int | str | None = None


@record
class DirectiveSpec:
    """The shape of a directive: which operands, hops and arguments it takes.

    ``operands`` are roles (the tensors of the ``gemm`` line in the places a, b, c); empty where the
    directive takes none, otherwise at least one must be named.  ``hops`` are those an operand may
    name per role; ``bare`` is the hop that a bare operand stands for, None for every hop there is.
    ``layout`` allows ``A[k, m]``.
    """

    name: str
    operands: tuple[Role, ...] = ()
    hops: tuple[tuple[Role, tuple[str, ...]], ...] = ()
    bare: str | None = None
    layout: bool = False
    arguments: tuple[ArgumentSpec, ...] = ()
