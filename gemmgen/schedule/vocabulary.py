"""The statements of the language, those of ``words`` and the directives that it is given; and the
refusal of a word that is none of them, with its hint."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from gemmgen.base.errors import Refusal
from gemmgen.base.record import record
from gemmgen.base.source import shown
from gemmgen.schedule.spec import DirectiveSpec, Elsewhere
from gemmgen.schedule.statements import Statement, no_word
from gemmgen.schedule.words import HEADS, LATER, close


@record
class Vocabulary:
    """``specs`` are the directives in the order of the passes.  ``epilogue``, whose argument is an
    expression, comes after all of them."""

    specs: tuple[DirectiveSpec, ...]
    epilogue: DirectiveSpec

    @cached_property
    def directives(self) -> tuple[str, ...]:
        """The names of all directives, in the order of the passes."""
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


def check_word(statement: Statement, vocabulary: Vocabulary) -> None:
    """Refuses a statement whose first word is not in the language."""
    word = statement.word
    if word in vocabulary.statements:
        return
    if not word:
        raise no_word(statement)
    if word in LATER:
        raise Refusal(
            f"{word} is not in this version", at=statement.word_span, hint=LATER[word].hint
        )
    meant = vocabulary.meant(word)
    rest = statement.rest.lstrip()
    if rest[:1] == "=":
        meant = "an argument is written in its directive's line; an open bracket continues a line"
    elif rest[:1] == "[" and "=" in rest:
        meant = f"did you mean `gemm {shown(statement.text)}`?"
    name = re.match(r"\w+", statement.text)
    raise Refusal(
        f"unknown directive `{shown(name.group() if name else word)}`",
        at=statement.word_span,
        hint=meant or f"the directives are {', '.join(vocabulary.directives)}",
    )
