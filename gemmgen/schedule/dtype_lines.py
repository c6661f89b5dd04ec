"""``dtype``: the element types of tensors and of the accumulator."""

from __future__ import annotations

from gemmgen.base.errors import Mistakes, Refusal
from gemmgen.base.source import Span, shown
from gemmgen.ir.dtypes import DTYPES, INTEGERS, ROUNDED, DType, sums_of, unstated
from gemmgen.schedule.epilogue_expressions import Use
from gemmgen.schedule.gemm_line import GemmScope
from gemmgen.schedule.model import Dtypes
from gemmgen.schedule.raw import RawArgument, RawDirective, Word
from gemmgen.schedule.roles import tensors
from gemmgen.schedule.words import DTYPES_ELSEWHERE, DTYPES_LATER

ACCUMULATORS: tuple[DType, ...] = ("f32", "f64", "i32")
"""The types of accumulators."""
ACC = "acc"


def check_dtypes(
    raws: list[RawDirective], scope: GemmScope, uses: tuple[Use, ...] | None, mistakes: Mistakes
) -> Dtypes:
    """The types of the tensors and of ``acc``; ``uses`` are the epilogue's names (None: unknown).

    A tensor of the epilogue has c's type if none is stated.
    """
    checker = _DtypeChecker(scope, uses, mistakes)
    for raw in raws:
        with mistakes.caught():
            checker.add_common(raw)
        for argument in raw.arguments:
            with mistakes.caught():
                checker.add(argument)
    with mistakes.caught():
        checker.check_scales()
        checker.check_double()
        checker.check_integers()
    return checker.dtypes()


class _DtypeChecker:
    """Collects the types of the ``dtype`` statements by name."""

    def __init__(self, scope: GemmScope, uses: tuple[Use, ...] | None, mistakes: Mistakes):
        self.scope, self.mistakes = scope, mistakes
        self.names = (*tensors(scope.gemm).values(), ACC)
        self.scales = tuple(scale.tensor for scale in scope.gemm.scales)
        known = (*self.names, *self.scales)
        own = () if uses is None else (use for use in uses if use.name not in known)
        self.own = {use.name: use.indices is not None for use in own}
        """The epilogue's own names, and whether each is a tensor."""
        self.sure = scope.sure and uses is not None
        self.stated: dict[str, tuple[DType, Span]] = {}
        self.seen: dict[str, Span] = {}
        self.common: tuple[DType, Span] | None = None
        """``dtype f16``: the type of a, b and c unless they have their own."""

    def add_common(self, raw: RawDirective) -> None:
        """A type without a name: ``dtype f16`` is the type of a, b and c."""
        if not raw.operands and not raw.arguments:
            raise Refusal(
                "dtype names no tensor", at=raw.span, hint="dtype A=f16 B=f16 C=f32 acc=f32"
            )
        for operand in raw.operands:
            name, span = operand.text, operand.span
            if name in self.names or self.own.get(name):
                raise Refusal(
                    f"dtype: {shown(name)} has no type",
                    at=span,
                    hint=f"a type is given by name: dtype {shown(name)}=f32",
                )
            dtype = _known(name)
            if dtype is None or operand.indices is not None:
                raise _unknown(name, span)
            if self.common is not None:
                raise Refusal(
                    "dtype gives a type for all tensors twice",
                    at=span,
                    notes=(self.mistakes.first_given(self.common[1]),),
                    hint="keep one of them",
                )
            self.common = dtype, span

    def add(self, argument: RawArgument) -> None:
        name, value = argument.name.text, argument.value
        if name in self.seen:
            raise Refusal(
                f"the type of {name} is given twice",
                at=argument.span,
                notes=(self.mistakes.first_given(self.seen[name]),),
                hint="keep one of them",
            )
        self._check_name(argument.name)
        self.seen[name] = argument.span
        dtype = _known(value.text) if isinstance(value, Word) else None
        if dtype is None:
            raise _unknown(value.text if isinstance(value, Word) else "a set", value.span)
        if name in self.scales and dtype != "f32":
            raise Refusal(
                f"{name} has the scales of an operand, which are f32",
                at=argument.span,
                hint=f"{name}=f32, or leave it out",
            )
        if name == ACC and dtype not in ACCUMULATORS:
            raise Refusal(
                f"accumulators in {dtype} are not in this version",
                at=argument.span,
                hint=f"acc=f32; C={dtype} rounds each sum once, at the end",
            )
        if dtype in ROUNDED and name not in self.names[:2] and self.scope.sure:
            raise Refusal(
                f"{name} is not an operand of the product, and {dtype} is a type of operands",
                at=argument.span,
                notes=(f"{dtype} is stored as f32, and rounded when it is read to be multiplied",),
                hint=f"{name}=f32",
            )
        self.stated[name] = dtype, argument.span

    def _check_name(self, word: Word) -> None:
        name = word.text
        if not self.sure or name in (*self.names, *self.scales) or self.own.get(name):
            return
        if name in self.own:
            raise Refusal(
                f"{name} is a number of the epilogue, and has the type of acc",
                at=word.span,
                hint="leave it out: numbers are float, or double if acc=f64",
            )
        tensors_ = [own for own, is_tensor in self.own.items() if is_tensor]
        raise Refusal(
            f"there is no tensor {shown(name)}",
            at=word.span,
            hint=f"dtype names {', '.join((*self.names, *self.scales, *tensors_))}",
        )

    def dtype(self, name: str) -> DType:
        """The type of a name, stated or by default."""
        if name in self.stated:
            return self.stated[name][0]
        common = self.common[0] if self.common is not None else None
        a, b, c, _ = self.names
        if name == ACC:
            return "f64" if common == "f64" else sums_of(self.dtype(a), self.dtype(b))
        if name in self.names:
            return (DTYPES[common].results or common if name == c else common) if common else "f32"
        if name in self.scales:
            return "f32"
        return unstated(self.dtype(c))

    def check_scales(self) -> None:
        """Scales of blocks are f32, and so are the accumulators that they multiply."""
        scales = self.scope.gemm.scales
        if scales and self.dtype(ACC) != "f32":
            raise Refusal(
                f"{scales[0].tensor} scales accumulators in f32, and acc is {self.dtype(ACC)}",
                at=scales[0].span,
                hint="operands of f32, f16, bf16, tf32 or FP8; or no scales",
            )

    def check_double(self) -> None:
        """If one type is f64, all must be."""
        if not self.scope.sure or set(self.seen) - set(self.stated):
            return
        names = [*self.names, *(name for name in self.stated if name not in self.names)]
        double = [name for name in names if self.dtype(name) == "f64"]
        others = [name for name in names if self.dtype(name) != "f64"]
        if not double or not others:
            return
        spans = [self.stated[n][1] for n in double if n in self.stated]
        if self.common is not None:
            spans.append(self.common[1])
        first = min(spans, key=lambda s: s.start)
        said = " and ".join(f"{name}={self.dtype(name)}" for name in others)
        raise Refusal(
            f"f64 is all or nothing, and {', '.join(double)} would meet {said}",
            at=first,
            notes=("f64 products accumulate in f64, and no other type holds their result",),
            hint=f"dtype {' '.join(f'{name}=f64' for name in names)}",
        )

    def check_integers(self) -> None:
        """Integers are summed as integers if both operands are i8, and i32 is such accumulators'
        type."""
        if not self.scope.sure or set(self.seen) - set(self.stated):
            return
        a, b, c, _ = self.names
        types = {name: self.dtype(name) for name in self.names}
        for name in (a, b):
            if types[name] == "i32":
                raise Refusal(
                    f"{name} is an operand, and i32 is an accumulator's type",
                    at=self._said(name),
                    notes=("products of two i32 do not fit i32, and no sum of them does",),
                    hint=f"dtype {name}=i8",
                )
        if types[ACC] == "i32" and (types[a], types[b]) != ("i8", "i8"):
            raise Refusal(
                f"acc=i32 sums products of integers, and {a}={types[a]}, {b}={types[b]}",
                at=self._said(ACC),
                hint=f"dtype {a}=i8 {b}=i8, or acc=f32",
            )
        if (types[a], types[b]) == ("i8", "i8") and types[ACC] != "i32":
            raise Refusal(
                f"products of i8 accumulate in i32, not {types[ACC]}",
                at=self._said(ACC),
                notes=("that is exact, and f32 holds integers up to 16,777,216",),
                hint=(
                    "acc=i32, or leave it out; the epilogue converts the accumulators where C is "
                    "f32"
                ),
            )
        if types[c] == "i32" and types[ACC] != "i32":
            raise Refusal(
                f"{c}=i32 stores i32 accumulators, and acc={types[ACC]}",
                at=self._said(c),
                hint=f"{c}=f32; or dtype {a}=i8 {b}=i8, which accumulate in i32",
            )
        others = [n for n in self.own if n in self.stated and self.dtype(n) not in INTEGERS]
        if types[c] == "i32" and others:
            raise Refusal(
                f"{c}=i32 makes the epilogue one of integers, and {others[0]} is "
                f"{self.dtype(others[0])}",
                at=self._said(others[0]),
                hint=f"{others[0]}=i32; or {c}=f32, with which it computes in f32",
            )

    def _said(self, name: str) -> Span:
        """Where a name's type is stated, or what it follows from."""
        if name in self.stated:
            return self.stated[name][1]
        if self.common is not None:
            return self.common[1]
        return next(iter(self.stated.values()))[1]

    def dtypes(self) -> Dtypes:
        usual = unstated(self.dtype(self.scope.gemm.c.tensor))
        own = [name for name in self.own if name in self.stated and self.dtype(name) != usual]
        return tuple([(name, self.dtype(name)) for name in (*self.names, *own)])


def _known(text: str) -> DType | None:
    return next((dtype for dtype in DTYPES if dtype == text), None)


def _unknown(text: str, span: Span) -> Refusal:
    small = text.lower()
    meant = small if small in DTYPES else DTYPES_ELSEWHERE.get(small)
    listed = f"the types are {', '.join(DTYPES)}"
    later = next((why for names, why in DTYPES_LATER if small in names.split()), None)
    message = (
        f"the type {shown(text)} is not in this version"
        if later
        else f"there is no type {shown(text)}"
    )
    return Refusal(message, at=span, hint=f"did you mean {meant}?" if meant else later or listed)
