"""The statements of the language: those of ``words``, and the directives that it is given."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from gemmgen.base.record import record
from gemmgen.schedule.spec import DirectiveSpec, Elsewhere
from gemmgen.schedule.words import HEADS, LATER, close


@record
class Vocabulary:
    """``specs`` are the directives in ladder order.  ``epilogue``, whose argument is an
    expression, comes after all of them."""

    specs: tuple[DirectiveSpec, ...]
    epilogue: DirectiveSpec

    @cached_property
    def directives(self) -> tuple[str, ...]:
        """The names of all directives, in ladder order."""
        return (*(spec.name for spec in self.specs), self.epilogue.name)

    @cached_property
    def statements(self) -> tuple[str, ...]:
        """The first words of all statements, in the order of a canonical text."""
        return (*HEADS, *self.directives)

    @cached_property
    def _examples(self) -> dict[str, str]:
        heads = {name: head.example for name, head in HEADS.items()}
        return heads | {spec.name: spec.example for spec in (*self.specs, self.epilogue)}

    def example(self, word: str) -> str | None:
        """An example of the statement ``word``."""
        return self._examples.get(word)

    def meant(self, word: str) -> str | None:
        """The hint for an unknown first word, if there is one."""
        for name, elsewhere in self._elsewhere():
            if word.lower() in elsewhere.words.split():
                return f"did you mean `{name}`? ({elsewhere.known_as})"
        near = close(word, (*self.statements, *LATER))
        return f"did you mean `{near}`?" if near else None

    def _elsewhere(self) -> Iterator[tuple[str, Elsewhere]]:
        for spec in (*self.specs, self.epilogue):
            if spec.elsewhere:
                yield spec.name, spec.elsewhere
        for name, stated in (*HEADS.items(), *LATER.items()):
            if stated.elsewhere:
                yield name, stated.elsewhere
