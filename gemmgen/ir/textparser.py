"""The declared IR read from its text: ``text.lark`` gives the tree, this gives the nodes.

The text is an internal form: what can't be read is a ``ValueError`` that names the line.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TypeGuard, cast

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput
from lark.indenter import DedentError, PythonIndenter

from gemmgen.base.errors import Mistakes
from gemmgen.ir.atoms import Atom
from gemmgen.ir.dtypes import DType
from gemmgen.ir.expr import Expr
from gemmgen.ir.nodes import (
    AxisSpread,
    Bounds,
    Buffer,
    Contract,
    Copy,
    CopyMode,
    Fact,
    FmaOrder,
    Init,
    Kernel,
    Loop,
    Map,
    Origins,
    Pipeline,
    Program,
    Reduce,
    Residue,
    Space,
    Spread,
    Statement,
    Swizzle,
    Work,
)
from gemmgen.ir.problem import Problem, Tensor, default_epilogue
from gemmgen.schedule.epilogue_expressions import read_expression
from gemmgen.schedule.grammar import parse as parse_statement
from gemmgen.schedule.model import Access, Gemm, Schedule
from gemmgen.schedule.raw import Reader
from gemmgen.schedule.roles import batches, roles
from gemmgen.schedule.statements import Statement as Line

Node = Tree[Token]


def parse_program(text: str) -> Program:
    """The program that prints as ``text``; raises ``ValueError`` where it is malformed."""
    try:
        tree = _lark().parse(text.rstrip() + "\n")  # pyright: ignore[reportUnknownMemberType]
    except UnexpectedInput as wrong:
        raise ValueError(f"line {wrong.line}: {wrong}") from None
    except DedentError as wrong:
        raise ValueError(f"wrong indentation: {wrong}") from None
    head, *kernels = _trees(tree)
    return _program(head, tuple(_kernel(kernel) for kernel in kernels))


@lru_cache(maxsize=1)
def _lark() -> Lark:
    grammar = Path(__file__).with_name("text.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer="contextual", postlex=PythonIndenter())


def _program(head: Node, kernels: tuple[Kernel, ...]) -> Program:
    types = _types(head)
    c, a, b = (_tensor(tree, types) for tree in _trees(head, "tensor"))
    gemm = Gemm(_access(c), _access(a), _access(b))
    accumulate = types.pop("acc", "f32")
    own = tuple(pair for pair in types.items() if pair[0] not in (c.name, a.name, b.name))
    epilogues = [_expression(_token(tree, "EXPRESSION")) for tree in _trees(head, "epilogue")]
    epilogue = epilogues[0] if epilogues else default_epilogue(c)
    targets = [_token(tree, "NAME").value for tree in _trees(head, "target")]
    return Program(
        Problem(c, a, b, *roles(gemm), epilogue, accumulate, own, batches(gemm)),
        targets[0] if targets else Schedule().target,
        kernels,
        tuple(_fact(tree) for tree in _trees(head) if tree.data in {"divisible", "equal"}),
    )


def _types(head: Node) -> dict[str, DType]:
    """What the ``dtype`` line says, by name."""
    words = [word for tree in _trees(head, "dtype") for word in _words(tree)]
    return {name: cast(DType, dtype) for name, dtype in zip(words[::2], words[1::2], strict=True)}


def _tensor(tree: Node, types: Mapping[str, DType]) -> Tensor:
    name, *letters = _words(tree)
    return Tensor(name, tuple(letters), types.get(name, "f32"))


def _access(tensor: Tensor) -> Access:
    return Access(tensor.name, tensor.letters)


def _fact(tree: Node) -> Fact:
    words = _words(tree)
    if tree.data == "equal":
        return Fact(words[0], equals=words[1])
    return Fact(words[0], divisor=int(words[1]))


def _kernel(tree: Node) -> Kernel:
    name = _token(tree, "NAME").value
    (work,) = _trees(tree, "work")
    buffers = tuple(_buffer(buffer) for buffer in _trees(tree, "buffer"))
    outputs = {b.name for b in buffers if b.space is Space.GLOBAL}
    body = tuple(
        _statement(statement, outputs)
        for statement in _trees(tree)
        if statement.data not in {"work", "bounds", "buffer"}
    )
    bounds = [_bounds(tree) for tree in _trees(tree, "bounds")]
    return Kernel(name, _work(work), buffers, body, *bounds)


def _bounds(tree: Node) -> Bounds:
    pairs = dict(_pair(pair) for pair in _trees(tree, "pair"))
    return Bounds(int(pairs["blocks"]), _origins(tree))


def _work(tree: Node) -> Work:
    pairs = [_pair(pair) for pair in _trees(tree, "pair")]
    tile = tuple((letter, int(size)) for letter, size in pairs[:2])
    options = dict(pairs[2:])
    numbers = (int(options.get(name, "1")) for name in ("raster", "parts", "groups"))
    raster, parts, groups = numbers
    reduce = cast(Reduce, options.get("reduce", "ordered"))
    batch = tuple(token.value for token in _tokens(tree) if token.type == "NAME")
    return Work(tile, raster, parts, reduce, groups, _origins(tree), batch)


def _buffer(tree: Node) -> Buffer:
    space, name, *letters, dtype = (t.value for t in _tokens(tree) if t.type != "ORIGINS")
    # A pair before the type is an extent, one behind it an option.
    behind = max(
        i for i, t in enumerate(tree.children) if isinstance(t, Token) and t.type == "NAME"
    )
    extents, options = (
        {key: int(value) for key, value in (_pair(t) for t in part if _is_pair(t))}
        for part in (tree.children[:behind], tree.children[behind:])
    )
    sizes: dict[str, int | None] = dict.fromkeys(letters, None) | extents
    shape = tuple(sizes)
    spreads = [_spread(spread, shape) for spread in _trees(tree, "spread")]
    return Buffer(
        name,
        Space(space),
        cast(DType, dtype),
        tuple((letter, sizes[letter]) for letter in shape),
        options.get("pad", 0),
        options.get("stages", 1),
        _swizzle(options),
        spreads[0] if spreads else None,
        _origins(tree),
    )


def _swizzle(options: dict[str, int]) -> Swizzle | None:
    if "swizzle" not in options:
        return None
    return Swizzle(options["swizzle"], options["every"], options["chunk"])


def _spread(tree: Node, letters: tuple[str, ...]) -> Spread:
    """An axis of another letter than the tile's is that of the k elements that lanes divide up."""
    axes = tuple(_axis(*_words(axis)) for axis in _trees(tree, "axis"))
    own = tuple(axis for axis in axes if axis.letter in letters)
    k_layout = next((axis for axis in axes if axis.letter not in letters), None)
    atoms: list[Atom] = [cast(Atom, _words(atom)[0]) for atom in _trees(tree, "atom")]
    by_warp = any(_trees(tree, "by_warp"))
    return Spread(own, _words(tree)[1], atoms[0] if atoms else "fma", k_layout, by_warp)


def _axis(letter: str, factors: str) -> AxisSpread:
    warps, pieces, lanes, width = map(int, factors.split("x"))
    return AxisSpread(letter, warps, pieces, lanes, width)


def _statement(tree: Node, outputs: set[str]) -> Statement:
    match str(tree.data):
        case "init":
            return Init(_token(tree, "NAME").value)
        case "assign":
            # What is written to global memory is an expression, what is written elsewhere a tile.
            return _map(tree) if _token(tree, "NAME").value in outputs else _copy(tree)
        case "contract":
            return _contract(tree)
        case "loop":
            return _loop(tree)
        case _:
            return _pipeline(tree)


def _copy(tree: Node) -> Copy:
    options = dict(_pair(pair) for pair in _trees(tree, "pair"))
    mode = cast(CopyMode, options.get("mode", "registers"))
    dst, src = _words(tree)[:2]
    return Copy(dst, src, int(options.get("width", "1")), mode, _origins(tree))


def _map(tree: Node) -> Map:
    options = dict(_pair(pair) for pair in _trees(tree, "pair"))
    value = _expression(_token(tree, "EXPRESSION"))
    width, through = int(options.get("width", "1")), options.get("through")
    return Map(_words(tree)[0], value, width, _origins(tree), through)


def _contract(tree: Node) -> Contract:
    options = dict(_pair(pair) for pair in _trees(tree, "pair"))
    order = cast(FmaOrder, options.get("order", "rows"))
    atom = cast(Atom, options.get("atom", "fma"))
    acc, a, b = _words(tree)[:3]
    return Contract(acc, a, b, order, atom, _origins(tree))


def _loop(tree: Node) -> Loop:
    statements = [t for t in _trees(tree) if t.data != "pair"]
    body = tuple(_copy(t) if t.data == "assign" else _contract(t) for t in statements)
    options = dict(_pair(pair) for pair in _trees(tree, "pair"))
    unroll, step = int(options.get("unroll", "0")), int(options.get("step", "1"))
    return Loop(_token(tree, "NAME").value, body, unroll, _origins(tree), step)


def _pipeline(tree: Node) -> Pipeline:
    letter, step = _words(tree)[:2]
    produce = tuple(_copy(t) for outer in _trees(tree, "produce") for t in _trees(outer))
    consume = tuple(_loop(t) for t in _trees(tree, "loop"))
    options = dict(_pair(pair) for pair in _trees(tree, "pair"))
    unroll = int(options.get("unroll", "1"))
    residue = cast(Residue, options.get("residue", "last"))
    return Pipeline(letter, int(step), produce, consume, unroll, residue, _origins(tree))


def _expression(token: Token) -> Expr:
    """By the parser of ``fuse_epilogue``."""
    line, mistakes = Line("fuse_epilogue", f"fuse_epilogue {token.value}", 0), Mistakes()
    with mistakes.caught():
        parsed = read_expression(Reader(line), parse_statement(line), mistakes)
        if not mistakes:
            return parsed.expression
    raise ValueError(f"line {token.line}: {mistakes[0].message} in `{token.value}`")


def _pair(tree: Node) -> tuple[str, str]:
    name, value = _words(tree)
    return name, value


def _is_pair(child: object) -> TypeGuard[Node]:
    return isinstance(child, Tree) and child.data == "pair"


def _origins(tree: Node) -> Origins:
    for token in _tokens(tree):
        if token.type == "ORIGINS":
            return tuple(token.value[1:].strip().split("; "))
    return ()


def _trees(tree: Node, kind: str | None = None) -> list[Node]:
    """The subtrees directly under ``tree``, of one kind or all."""
    found = [child for child in tree.children if isinstance(child, Tree)]
    return [t for t in found if kind is None or t.data == kind]


def _tokens(tree: Node) -> list[Token]:
    return [child for child in tree.children if isinstance(child, Token)]


def _words(tree: Node) -> list[str]:
    """The text of the tokens directly under ``tree``."""
    return [token.value for token in _tokens(tree)]


def _token(tree: Node, kind: str) -> Token:
    return next(token for token in _tokens(tree) if token.type == kind)
