"""Any values of the classes of the IR: each field is drawn by its type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import Enum
from random import Random
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from gemmgen.ir import (
    buffers,
    control,
    expanded,
    instruction,
    interface,
    lowered,
    nodes,
    problem,
    requirement,
    tensor_map,
    thread_code,
    warp_matrices,
)
from gemmgen.ir.expr import (
    Binary,
    BinaryOp,
    Call,
    Element,
    Expr,
    Float,
    Int,
    Select,
    Unary,
    Var,
    Wide,
)
from gemmgen.ir.instruction import FORMS, Instruction
from gemmgen.ir.instruction_table import INSTRUCTIONS, Kind

EXPRESSIONS = get_args(Expr)
OPERATORS = tuple(op for group in get_args(BinaryOp) for op in get_args(group))
NAMES = ("A", "acc", "m", "tile_k", "threadIdx.x", "true", "wide1", "width", "origins", "otherwise")
TEXTS = (*NAMES, "", "the block's tile", 'of "C" = A # 1', "1x2", "a, b] (c)", "Größe\n\t\\")
ORIGINS = ("tile m=8 n=8", "fuse_epilogue relu(acc + bias[n])", "pad A by=4 # x")
FLOATS = (0.0, -0.0, 1.0, -2.0, 0.1, 1e-30, 1e16, 3.4e38)
CLASSES = tuple(
    kind
    for module in (
        buffers,
        control,
        expanded,
        interface,
        lowered,
        nodes,
        problem,
        requirement,
        tensor_map,
        thread_code,
        warp_matrices,
        instruction,
    )
    for kind in vars(module).values()
    if isinstance(kind, type) and kind.__module__ == module.__name__
    if hasattr(kind, "__dataclass_fields__")
)
"""Every node of the three levels, and what they are made of."""


def classes(union: Any) -> tuple[type, ...]:
    """The classes of a union of nodes."""
    return tuple(get_origin(member) or member for member in get_args(union))


@dataclass
class Drawn:
    """Values drawn by ``random``; ``body`` are the statements of a level, ``within`` the classes of
    the records around: a record holds none of its own class."""

    random: Random
    body: tuple[type, ...] = ()
    within: tuple[type, ...] = ()

    def node(self, kind: type, depth: int = 2) -> Any:
        """A record of class ``kind``, in which bodies are nested up to ``depth``."""
        kind = get_origin(kind) or kind
        if kind is Instruction:
            return self.instruction()
        hints = get_type_hints(kind)
        values: dict[str, Any] = {}
        inside = Drawn(self.random, self.body, (*self.within, kind))
        for field in fields(kind):
            if field.name == "origins":
                values["origins"] = tuple(self.random.sample(ORIGINS, self.random.randrange(4)))
            else:
                values[field.name] = inside.value(hints[field.name], depth)
        return kind(**values)

    def instruction(self) -> Instruction:
        """Of any row, with operands of the row's kinds."""
        row = self.random.choice(tuple(INSTRUCTIONS.values()))
        operands = tuple(self.operand(kind) for _, kind in row.operands)
        chosen = [*row.modifiers, *(name for name in row.options if self.random.randrange(2))]
        given = tuple((name, self.random.choice((None, -1, 4, *TEXTS))) for name in chosen)
        result = self.random.choice(TEXTS[:-1]) or "x" if row.result else ""
        predicate = self.random.choice((None, self.expression()))
        return Instruction(row.name, operands, given, result, predicate)

    def operand(self, kind: Kind) -> Expr:
        if kind in FORMS:
            return SIMPLE[FORMS[kind]](self)
        return self.expression()

    def value(self, hint: Any, depth: int) -> Any:
        arguments = get_args(hint)
        if get_origin(hint) in (Union, UnionType):
            if set(arguments) == set(EXPRESSIONS):
                return self.expression()
            return self.value(self.random.choice(arguments), depth)
        if get_origin(hint) is Literal:
            return self.random.choice(arguments)
        if get_origin(hint) is tuple and ... not in arguments:
            return tuple(self.value(item, depth) for item in arguments)
        if get_origin(hint) is tuple:
            return self.several(arguments[0], depth)
        if hint in SIMPLE:
            return SIMPLE[hint](self)
        if hint in EXPRESSIONS:  # in a union with None
            return self.expression()
        if isinstance(hint, type) and issubclass(hint, Enum):
            return self.random.choice(tuple(hint))
        return self.node(hint, depth)

    def several(self, hint: Any, depth: int) -> tuple[Any, ...]:
        count = 0 if hint in self.within else self.random.randrange(3)
        kinds = self.body if isinstance(hint, TypeVar) else classes(hint)
        if not kinds or kinds[0] in EXPRESSIONS or get_origin(hint) not in (None, Union, UnionType):
            return tuple(self.value(hint, depth) for _ in range(count))
        inner = Drawn(self.random, kinds, self.within)
        chosen = self.random.choices(kinds, k=count if depth else 0)
        return tuple(inner.node(kind, depth - 1) for kind in chosen)

    def expression(self, depth: int = 4) -> Expr:
        several = tuple(self.expression(depth - 1) for _ in range(3 if depth else 0))
        name, count = self.random.choice(NAMES), self.random.randrange(4)
        match self.random.randrange(9 if depth else 3):
            case 0:
                return Int(self.random.choice((-1, 0, 7, 1 << 40)))
            case 1:
                return Float(self.random.choice(FLOATS), self.random.choice(("f32", "f64")))
            case 2:
                return Var(name)
            case 3 | 4:
                return Binary(self.random.choice(OPERATORS), several[0], several[1])
            case 5:
                return Unary(self.random.choice(("-", "!")), several[0])
            case 6:
                return self.random.choice((Wide(several[0]), Select(*several)))
            case 7:
                return Call(self.random.choice(("fmaf", "min", "from_f16")), several[:count])
            case _:
                return Element(name, several[:count])


SIMPLE: dict[Any, Callable[[Drawn], Any]] = {
    int: lambda drawn: drawn.random.choice((-5, 0, 1, 2, 64, 1 << 40)),
    bool: lambda drawn: drawn.random.choice((False, True)),
    str: lambda drawn: drawn.random.choice(TEXTS),
    NoneType: lambda _: None,
    Var: lambda drawn: Var(drawn.random.choice(NAMES)),
    Element: lambda drawn: Element("A", (drawn.expression(), drawn.expression(1))),
}
