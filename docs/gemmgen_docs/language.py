"""The language's reference, from the passes' docstrings and specifications."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gemmgen.base.errors import ScheduleError
from gemmgen.base.source import Source
from gemmgen.ir.expr import FUNCTIONS
from gemmgen.ir.target import TARGETS
from gemmgen.passes.fuse_epilogue import FuseEpilogue
from gemmgen.passes.ladder import LADDER
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof.cpu import MOST
from gemmgen.proof.layers import ORDER
from gemmgen.prove.goals import FACTS
from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec
from gemmgen.schedule.words import HEADS, QUANTITIES
from gemmgen_docs.markdown import cell, code, difference, fence, table

DATA = Path(__file__).parents[1] / "data"
DEFAULT = "gemm C[m, n] = A[m, k] * B[k, n]"
ROLES = {"a": "A", "b": "B", "c": "C"}

MEANINGS = {
    "relu": "x where it is not negative, else 0",
    "gelu": "x times the normal distribution's share below x, by erf",
    "gelu_tanh": "the approximation of gelu by tanh",
    "silu": "x * sigmoid(x)",
    "sigmoid": "1 / (1 + exp(-x))",
    "tanh": "hyperbolic tangent",
    "exp": "e to the power x",
    "erf": "the error function",
    "sqrt": "square root",
    "abs": "without its sign",
    "round": "to the nearest whole number, halves to the even one",
    "min": "the smaller",
    "max": "the larger",
    "clamp": "x, but at least low and at most high",
    "where": "yes where the condition holds, else no",
}
"""Descriptions of an epilogue's functions."""
ARGUMENTS = {"min": "x, y", "max": "x, y", "clamp": "x, low, high", "where": "condition, yes, no"}


def statements() -> str:
    """The statements other than directives."""
    rows = [(code(name), cell(head.summary), code(head.example)) for name, head in HEADS.items()]
    return table(("statement", "what it says", "written"), rows)


def passes() -> str:
    """The directives in the order of the passes, one line each."""
    rows = [
        (f"{at}", f"[`{name}`](directives.md#{name})", cell(_title(name, module)))
        for at, (name, module) in enumerate(_modules(), 1)
    ]
    return table(("", "directive", "what it does"), rows)


def directives() -> str:
    """A section for each directive."""
    return "\n".join(_section(name, module) for name, module in _modules())


def _modules() -> Iterator[tuple[str, str]]:
    for rung in (*LADDER, FuseEpilogue):
        yield rung.SPEC.name, rung.__module__


def _doc(module: str) -> str:
    return (sys.modules[module].__doc__ or "").strip()


def _title(name: str, module: str) -> str:
    return _doc(module).splitlines()[0].removeprefix(f"{name}: ").rstrip(".")


def _section(name: str, module: str) -> str:
    doc = parse(_doc(module))
    spec = next(r.SPEC for r in (*LADDER, FuseEpilogue) if r.SPEC.name == name)
    title = doc.title.removeprefix(f"{name}: ")
    parts = [f"## {name}\n", f"*{cell(title)}*\n", fence(spec.example, "sched")]
    parts += [f"{cell_paragraph(paragraph)}\n" for paragraph in doc.paragraphs]
    parts += [_arguments(spec)]
    parts += [f"What `{doc.directive}` does to a program:\n"]
    parts += [difference("\n".join(doc.before), "\n".join(doc.after), 1000)]
    return "\n".join(parts)


def cell_paragraph(text: str) -> str:
    """A docstring's paragraph as Markdown: its double backticks are code already; stars are not
    emphasis."""
    parts = text.replace("``", "`").split("`")
    plain = [part.replace("*", r"\*").replace("<", "&lt;") for part in parts[::2]]
    mixed = [part for pair in zip(plain, [*parts[1::2], ""], strict=True) for part in pair]
    return "".join(f"`{part}`" if at % 2 and part else part for at, part in enumerate(mixed))


@dataclass(frozen=True)
class Doc:
    """A pass's docstring in its parts."""

    title: str
    paragraphs: tuple[str, ...]
    before: tuple[str, ...]
    directive: str
    after: tuple[str, ...]


def parse(doc: str) -> Doc:
    """``name: title``, paragraphs, and the program before ``==>`` a directive, and after."""
    (arrow,) = (line for line in doc.splitlines() if line.startswith("==> "))
    above, below = doc.split(f"{arrow}\n")
    title, *paragraphs, before = above.split("\n\n")
    return Doc(
        title,
        tuple(" ".join(paragraph.split()) for paragraph in paragraphs),
        _unindented(before),
        arrow.removeprefix("==> "),
        _unindented(below),
    )


def _unindented(text: str) -> tuple[str, ...]:
    return tuple(line.removeprefix("    ") for line in text.splitlines() if line.strip())


def _arguments(spec: DirectiveSpec) -> str:
    notes = [_operands(spec)] if spec.operands else []
    if spec.layout:
        notes.append("`A[k, m]` gives the order of the letters in shared memory.")
    rows = [_argument(argument) for argument in spec.arguments]
    header = ("argument", "value", "where it is left out", "the same as without")
    return " ".join(notes) + "\n\n" + (table(header, rows) + "\n" if rows else "")


def _operands(spec: DirectiveSpec) -> str:
    hops = dict(spec.hops)
    names: list[str] = []
    for role in spec.operands:
        parts = [f"{ROLES[role]}.{hop}" for hop in hops.get(role, ())]
        names.append(code(ROLES[role]) + (f" ({', '.join(map(code, parts))})" if parts else ""))
    bare = "every hop it has" if spec.bare is None else f"`A.{spec.bare}`"
    return f"Operands: {', '.join(names)}." + (f" Bare `A` means {bare}." if hops else "")


def _argument(argument: ArgumentSpec) -> tuple[str, str, str, str]:
    if argument.kind == "word":
        value = " or ".join(code(_letter(choice)) for choice in argument.choices)
    else:
        value = f"{argument.minimum} to {argument.maximum}"
    absent = "an error" if argument.required else str(argument.default or "see above")
    same = (
        "" if argument.identity is None else code(f"{_letter(argument.name)}={argument.identity}")
    )
    return code(_letter(argument.name)), value, absent, same


def _letter(name: str) -> str:
    """``<m>`` is the row letter, which most schedules call m."""
    return name.replace("<", "").replace(">", "")


def epilogue_functions() -> str:
    """The functions that an epilogue may call."""
    rows = [(code(f"{name}({ARGUMENTS.get(name, 'x')})"), MEANINGS[name]) for name in FUNCTIONS]
    return table(("function", "what it gives"), rows)


def targets() -> str:
    """The architectures, and the shared memory of a block on each."""
    rows = [(code(t.name), f"{t.shared // 1024} KiB") for t in TARGETS.values()]
    return table(("target", "shared memory of a block"), rows, right=(1,))


def quantities() -> str:
    """The quantities that ``require`` may bound."""
    return ", ".join(code(quantity) for quantity in QUANTITIES)


def layers() -> str:
    """The layers that ``gemmgen verify`` runs."""
    return ", ".join(ORDER)


def facts() -> str:
    """The facts that ``gemmgen prove`` shows, as a table."""
    rows = [f"| {name} | {claim} |" for name, claim in FACTS.items()]
    return "\n".join(["| fact | what it says |", "|---|---|", *rows])


@dataclass(frozen=True)
class Combination:
    """A schedule (the ``gemm`` line may be implied) and its outcome."""

    rule: str
    schedule: str
    accepted: bool

    def outcome(self) -> Emitted | ScheduleError:
        """The compiled schedule, or why it is refused."""
        try:
            return compile_source(Source(self.schedule, "my.sched"))
        except ScheduleError as error:
            return error


def read_combinations() -> tuple[Combination, ...]:
    """Those of the first directives, then those in files of later ones, in the ladder's order."""
    later = (DATA / "combinations" / f"{rung.SPEC.name}.toml" for rung in LADDER)
    files = (DATA / "combinations.toml", *(path for path in later if path.exists()))
    texts = (path.read_text(encoding="utf-8") for path in files)
    return tuple(Combination(**row) for text in texts for row in tomllib.loads(text)["combination"])


def combinations() -> str:
    """Each rule with a schedule, and this build's result."""
    rows = []
    for one in read_combinations():
        found = one.outcome()
        if isinstance(found, Emitted):
            threads = found.interface.block[0] * found.interface.block[1]
            result = f"right: {threads} threads, {found.interface.static_shared:,} bytes shared"
        else:
            result = f"refused: {cell(found.message)}. *{cell(found.hint)}*"
        written = "<br>".join(code(line) for line in one.schedule.strip().splitlines())
        rows.append((cell(one.rule), written, result))
    return table(("rule", "schedule", "what gemmgen says"), rows)


assert set(MEANINGS) == set(FUNCTIONS), "an epilogue's function has no description here"


def most() -> str:
    """The largest number of multiply-adds that C2 runs."""
    return f"{MOST:,}"
