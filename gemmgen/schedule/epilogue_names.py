"""The names of an epilogue: existing ones, and new parameters."""

from __future__ import annotations

from gemmgen.base.errors import Mistakes, Refusal
from gemmgen.base.source import Source, Span, indexed, listed, shown
from gemmgen.ir.dtypes import DType
from gemmgen.schedule.epilogue_expressions import Parsed, Use
from gemmgen.schedule.formatting import format_access
from gemmgen.schedule.gemm_line import GemmScope, check_name, check_storage
from gemmgen.schedule.model import Access, Epilogue
from gemmgen.schedule.raw import RawOperand, Word
from gemmgen.schedule.reserved import kernel_names, stride_names, taken, tensor_names, vector_names
from gemmgen.schedule.roles import roles
from gemmgen.schedule.words import close

BUILT_IN = ("acc", "alpha", "beta")
_RANGES: dict[DType, tuple[float, float]] = {
    "f32": (1.4e-45, 3.4028235e38),
    "f64": (4.9e-324, 1.7976931348623157e308),
    "i32": (0.0, 2147483647.0),
}
"""The least and the greatest positive number."""


def check_epilogue(
    parsed: Parsed, span: Span, scope: GemmScope, kernel: str, numbers: DType, mistakes: Mistakes
) -> Epilogue:
    """The epilogue, computed in ``numbers``; records all of its mistakes."""
    for number in parsed.numbers:
        with mistakes.caught():
            _check_range(number, numbers)
    names = _Names(scope, kernel, mistakes.source)
    for use in parsed.uses:
        with mistakes.caught():
            names.check(use)
    return Epilogue(parsed.expression, span)


def _check_range(number: Word, acc: DType) -> None:
    """Refuses a number that is infinite, or zero, in the type of the epilogue."""
    value, (smallest, largest) = float(number.text), _RANGES[acc]
    if value > largest:
        raise Refusal(
            f"{shown(number.text)} is too large for {acc}, in which the epilogue computes",
            at=number.span,
            hint=f"{acc} ends at {largest}",
        )
    digits = number.text.lower().partition("e")[0]
    if value < smallest and digits.strip("0."):
        raise Refusal(
            f"{shown(number.text)} is zero in {acc}, in which the epilogue computes",
            at=number.span,
            hint=f"write 0, or at least {smallest}",
        )


class _Names:
    def __init__(self, scope: GemmScope, kernel: str, source: Source):
        self.gemm, self.sure, self.source = scope.gemm, scope.sure, source
        self.letters = scope.gemm.c.indices
        self.taken = (taken(scope.gemm) if scope.sure else {}) | kernel_names(kernel)
        self.new: dict[str, Use] = {}

    def check(self, use: Use) -> None:
        if use.name in BUILT_IN:
            self._check_built_in(use)
        elif self.sure and use.name in (self.gemm.a.tensor, self.gemm.b.tensor):
            raise Refusal(
                f"an epilogue can't read {use.name}",
                at=use.span,
                hint="it reads acc, the output's old values, and its own tensors",
            )
        elif self.sure and use.name == self.gemm.c.tensor:
            self._check_output(use)
        elif self.sure and use.name in self.letters and use.indices is None:
            return
        elif self.sure and use.name in roles(self.gemm):
            raise Refusal(
                f"{use.name} is summed over, so it has no value in the epilogue",
                at=use.span,
                hint=f"an epilogue's letters are {listed(self.letters)}",
            )
        else:
            self._check_indices(use)
            self._check_new(use)

    def _check_built_in(self, use: Use) -> None:
        if use.indices is not None:
            raise Refusal(
                f"{use.name} is one number, it has no indices",
                at=use.span,
                hint=f"write `{use.name}` alone",
            )

    def _check_output(self, use: Use) -> None:
        there = tuple(word.text for word in use.indices or ())
        if there != self.letters:
            right = format_access(self.gemm.c)
            raise Refusal(
                f"{use.name} is read at the element that is written, as `{right}`",
                at=use.span,
                hint=f"write `{right}`",
            )

    def _check_indices(self, use: Use) -> None:
        letters = use.indices
        if letters is None or not self.sure:
            return
        known = listed(self.letters)
        if not letters:
            raise Refusal(
                f"{use.name}[] has no index", at=use.span, hint=f"its letters are {known}"
            )
        for at, letter in enumerate(letters):
            if letter.text not in self.letters:
                output = format_access(self.gemm.c)
                near = close(letter.text, self.letters)
                raise Refusal(
                    f"`{shown(letter.text)}` is not a letter of the output {output}",
                    at=letter.span,
                    hint=(
                        f"did you mean `{near}`?" if near else f"an epilogue's letters are {known}"
                    ),
                )
            if letter.text in {other.text for other in letters[:at]}:
                raise Refusal(
                    f"{letter.text} occurs twice in {use.name}",
                    at=letter.span,
                    hint="each letter occurs at most once in a tensor",
                )
        start = use.span.start
        name = Word(use.name, Span(start, start + len(use.name)))
        check_storage(RawOperand(name, None, letters, use.span), self.gemm)

    def _check_new(self, use: Use) -> None:
        kind = "parameter" if use.indices is None else "tensor"
        start = use.span.start
        check_name(Word(use.name, Span(start, start + len(use.name))), kind)
        first = self.new.setdefault(use.name, use)
        if _shape(first) != _shape(use):
            line, column = self.source.position(first.span.start)
            raise Refusal(
                f"{use.name} is used as {_shape(use)} here, and as {_shape(first)} before",
                at=use.span,
                notes=(f"first used on line {line}, column {column}",),
                hint="two things need two names",
            )
        if first is not use:
            return
        own = self._follow(use)
        for name in (use.name, *own):
            if name in self.taken:
                why = self.taken[name]
                what = "it is" if name == use.name else f"its {name} is"
                hint = f"any other name will do, such as `my_{use.name}`"
                if why.startswith("the extent"):
                    hint = f"pass the number by its own name, such as `my_{use.name}`"
                raise Refusal(
                    f"`{use.name}` can't be a {kind}'s name here: {what} {why}",
                    at=use.span,
                    hint=hint,
                )
        self.taken |= own | {use.name: f"a {kind}"}

    def _follow(self, use: Use) -> dict[str, str]:
        """The names that are derived from a tensor of the epilogue."""
        if use.indices is None:
            return {}
        if len(use.indices) < 2:
            return vector_names(use.name)
        letters = tuple(word.text for word in use.indices)
        strides = stride_names(Access(use.name, letters), self.gemm) if self.sure else {}
        return tensor_names(use.name) | strides


def _shape(use: Use) -> str:
    if use.indices is None:
        return f"the number {use.name}"
    return indexed(use.name, (word.text for word in use.indices))
