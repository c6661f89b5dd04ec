"""Parses a schedule's text to its canonical value, or reports all of its mistakes at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from gemmgen.base.errors import Mistakes
from gemmgen.base.source import Source, Span
from gemmgen.ir.dtypes import DType, computed_in
from gemmgen.ir.target import default_target
from gemmgen.schedule.assume_lines import assume_key, check_assume
from gemmgen.schedule.canonical import canonical
from gemmgen.schedule.contents import Contents, read_contents
from gemmgen.schedule.directive_arguments import Checked, check_directive
from gemmgen.schedule.dtype_lines import check_dtypes
from gemmgen.schedule.epilogue_names import check_epilogue
from gemmgen.schedule.gemm_line import GemmScope, check_gemm
from gemmgen.schedule.model import (
    DEFAULT_GEMM,
    NOWHERE,
    Assume,
    Directive,
    Dtypes,
    Epilogue,
    Require,
    SameBits,
    Schedule,
)
from gemmgen.schedule.name_lines import check_default_kernel, check_kernel, check_target
from gemmgen.schedule.overrides import keys_of_values, overridden
from gemmgen.schedule.require_lines import check_require
from gemmgen.schedule.roles import letters, tensors
from gemmgen.schedule.same_bits_lines import check_same_bits_line
from gemmgen.schedule.sets import Settings, Values, check_lets, choose, find_knobs
from gemmgen.schedule.vocabulary import Vocabulary
from gemmgen.schedule.words import QUANTITIES

T = TypeVar("T")
DEFAULT_KERNEL = "gemm"


def parse(source: Source, vocabulary: Vocabulary, settings: Settings = ()) -> Schedule:
    """The canonical schedule of ``source``, its sets fixed by ``settings`` (``tile.m``, 128).

    Raises ``ScheduleError`` with every mistake of the text.
    """
    mistakes = Mistakes(source.cleaned())
    contents = read_contents(vocabulary, mistakes)
    schedule = _Checker(contents, vocabulary, mistakes).schedule(settings)
    mistakes.check()
    return schedule


class OpenSchedule:
    """A schedule's text parsed once, whose sets a search fixes many times.

    Raises ``ScheduleError`` if the text has mistakes other than open sets.
    """

    def __init__(self, source: Source, vocabulary: Vocabulary):
        self._vocabulary, mistakes = vocabulary, Mistakes(source.cleaned())
        self._source = mistakes.source
        self._contents = read_contents(vocabulary, mistakes)
        checker = _Checker(self._contents, vocabulary, mistakes)
        checker.schedule((), fixed=False)
        mistakes.check()
        self.gemm = checker.scope.gemm
        knobs = find_knobs(self._contents.lets, self._contents.directives)
        self.sets = {knob.key: knob.choice for knob in knobs}
        """By key (``tile.m``), in the text's order; empty for a text without sets."""

    def fixed(self, settings: Settings) -> Schedule:
        """As ``parse``, with the same ``ScheduleError``."""
        mistakes = Mistakes(self._source)
        schedule = _Checker(self._contents, self._vocabulary, mistakes).schedule(settings)
        mistakes.check()
        return schedule


class _Checker:
    """Checks a file's statements form by form; mistakes are recorded and do not end the check."""

    def __init__(self, contents: Contents, vocabulary: Vocabulary, mistakes: Mistakes):
        self.contents, self.mistakes = contents, mistakes
        self.specs = vocabulary.specs
        self.scope = self._scope()

    def schedule(self, settings: Settings, fixed: bool = True) -> Schedule:
        """The canonical value; valid only if no mistake was recorded."""
        kernel = self._kernel()
        directives = self._directives(settings, fixed)
        dtypes = self._dtypes()
        return Schedule(
            self.scope.gemm,
            kernel,
            dtypes,
            self._target(dict(dtypes)),
            self._assumes(),
            self._requires(),
            directives,
            self._epilogue(kernel, dict(dtypes)),
            self._same_bits(),
            next((raw.span for raw in self.contents.dtypes), NOWHERE),
            self.mistakes.source,
        )

    def _once(self, name: str, found: list[tuple[T, Span]]) -> tuple[T, Span] | None:
        """The first of statements that may be given once."""
        for _, span in found[1:]:
            message, hint = f"{name} is given twice", f"keep one {name} line"
            self.mistakes.repeated(message, span, hint, found[0][1])
        return found[0] if found else None

    def _scope(self) -> GemmScope:
        gemm = self._once("gemm", self.contents.gemms)
        if gemm is None:
            return GemmScope(DEFAULT_GEMM, "gemm" not in self.contents.broken)
        return check_gemm(gemm[0], self.specs, self.mistakes)

    def _kernel(self) -> str:
        kernel = self._once("kernel", self.contents.kernels)
        with self.mistakes.caught():
            if kernel:
                return check_kernel(kernel[0], self.scope)
            check_default_kernel(DEFAULT_KERNEL, self.scope)
        return DEFAULT_KERNEL

    def _target(self, dtypes: Mapping[str, DType]) -> str:
        target = self._once("target", self.contents.targets)
        with self.mistakes.caught():
            if target:
                return check_target(target[0])
        return default_target(dtypes.values())

    def _assumes(self) -> tuple[Assume, ...]:
        found: dict[tuple[str, bool], Assume] = {}
        for raw in self.contents.assumes:
            with self.mistakes.caught():
                assume = check_assume(raw, self.scope)
                key = assume.name, assume.divisor is None
                if key in found:
                    what = "a divisor" if assume.divisor else "an equal"
                    message = f"assume gives {key[0]} {what} twice"
                    hint = "keep the stronger of them"
                    self.mistakes.repeated(message, raw.span, hint, found[key].span)
                found.setdefault(key, assume)
        stated = [assume for assume in found.values() if assume.divisor != 1]
        if not self.scope.sure:
            return tuple(stated)
        return tuple(sorted(stated, key=lambda assume: assume_key(assume, self.scope.gemm)))

    def _requires(self) -> tuple[Require, ...]:
        found: dict[str, Require] = {}
        for raw in self.contents.requires:
            with self.mistakes.caught():
                require = check_require(raw)
                if require.quantity in found:
                    first = found[require.quantity].span
                    message = f"require limits {require.quantity} twice"
                    self.mistakes.repeated(message, raw.span, "keep the stricter of them", first)
                found.setdefault(require.quantity, require)
        return tuple(sorted(found.values(), key=lambda r: QUANTITIES.index(r.quantity)))

    def _same_bits(self) -> SameBits | None:
        found: SameBits | None = None
        for raw in self.contents.same_bits:
            with self.mistakes.caught():
                same_bits = check_same_bits_line(raw, self.scope)
                if found is not None:
                    message, hint = "require same_bits is given twice", "name all letters in one"
                    self.mistakes.repeated(message, raw.span, hint, found.span)
                found = found or same_bits
        return found

    def _directives(self, settings: Settings, fixed: bool) -> tuple[Directive, ...]:
        lets, raws = self.contents.lets, self.contents.directives
        keys = keys_of_values(lets, raws)
        lets, raws, settings = overridden(lets, raws, settings)
        others = [key for own in keys.values() for key in own[:1]]
        chosen = choose(find_knobs(lets, raws), settings, self.mistakes, fixed, others)
        values = Values(self.mistakes.source, lets, chosen)
        specs = {spec.name: spec for spec in self.specs}
        checked: dict[str, list[Checked]] = {name: [] for name in specs}
        for raw in raws:
            spec = specs[raw.word.text]
            statement = check_directive(raw, spec, self.scope, values, self.mistakes)
            checked[spec.name].append(statement)
        check_lets(lets, values.used, self._kept(), self.mistakes)
        return tuple(
            directive
            for spec in self.specs
            for directive in canonical(checked[spec.name], spec, self.mistakes)
        )

    def _kept(self) -> dict[str, str]:
        """Words that are values of arguments, which a ``let`` must not redefine."""
        specs = self.specs
        words = {c: "a value of " + s.name for s in specs for a in s.arguments for c in a.choices}
        if not self.scope.sure:
            return words
        words |= {letter: "a letter" for letter in letters(self.scope.gemm).values()}
        return words | {name: "a tensor" for name in tensors(self.scope.gemm).values()}

    def _dtypes(self) -> Dtypes:
        epilogues = self.contents.epilogues
        uses = tuple(use for parsed, _ in epilogues[:1] for use in parsed.uses)
        known = None if "fuse_epilogue" in self.contents.broken else uses
        return check_dtypes(self.contents.dtypes, self.scope, known, self.mistakes)

    def _epilogue(self, kernel: str, types: dict[str, DType]) -> Epilogue | None:
        epilogue = self._once("fuse_epilogue", self.contents.epilogues)
        if epilogue is None:
            return None
        numbers = computed_in(types["acc"], types[self.scope.gemm.c.tensor])
        return check_epilogue(*epilogue, self.scope, kernel, numbers, self.mistakes)
