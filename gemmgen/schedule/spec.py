"""The specification of a directive: declared once in its pass, read by all tools.

The checker, ``fmt``, ``help``, the builder, the reference and the fuzzer are written over these
records alone, so that a new directive needs nothing from them.
"""

from __future__ import annotations

from typing import Literal

from gemmgen.base.record import record

Role = Literal["a", "b", "c"]


@record
class Elsewhere:
    """A statement's names in other languages: the words, separated by spaces, that get a hint, and
    the best known of them with their languages, for that hint."""

    known_as: str
    words: str


@record
class ArgumentSpec:
    """One ``name=value`` of a directive.

    ``name`` is a word, or contains one of the roles ``<m>``, ``<n>``, ``<k>``: the row, column and
    contracted letter of this schedule's ``gemm`` line.  ``identity`` is the value that equals the
    argument's absence (a directive whose every argument is at its identity is not a directive).
    Integers lie in ``minimum..maximum``; words are one of ``choices`` (the roles are letters
    there too); ``formerly`` has the names that some of them had in the version before, which still
    parse.  ``elsewhere`` are the words of other languages for it, separated by spaces.

    ``usual`` pairs each value of the word ``follows``, another argument of the directive, with the
    value that equals the argument's absence beside it.

    ``fuzz`` are the values of an integer that the fuzzer draws, in classes whose values are
    equally good.  ``times`` names directives: if a schedule has one of them, the values of
    ``fuzz`` are multiples of its argument of the same name.
    """

    name: str
    kind: Literal["int", "word"] = "int"
    minimum: int = 1
    maximum: int = 1 << 16
    choices: tuple[str, ...] = ()
    required: bool = False
    default: int | str | None = None
    identity: int | str | None = None
    formerly: tuple[tuple[str, str], ...] = ()
    elsewhere: str = ""
    follows: str = ""
    usual: tuple[tuple[str, int], ...] = ()
    fuzz: tuple[tuple[int, ...], ...] = ()
    times: tuple[str, ...] = ()


@record
class DirectiveSpec:
    """The shape of a directive: which operands, hops and arguments it takes.

    ``example`` is a whole statement, for hints, ``help`` and the reference.  ``operands`` are roles
    (the tensors of the ``gemm`` line in the positions a, b, c); empty if the directive takes none,
    otherwise at least one must be named.  ``hops`` are those an operand may name per role; ``bare``
    is the hop that an operand without one means, None for every hop there is.  ``layout`` allows
    ``A[k, m]``.  ``sizes`` marks those that share out the tile of a block: the fuzzer draws all of
    their values together.
    """

    name: str
    example: str
    operands: tuple[Role, ...] = ()
    hops: tuple[tuple[Role, tuple[str, ...]], ...] = ()
    bare: str | None = None
    layout: bool = False
    arguments: tuple[ArgumentSpec, ...] = ()
    sizes: bool = False
    elsewhere: Elsewhere | None = None
