"""One thread's code: the statements of a lowered kernel, besides control flow."""

from __future__ import annotations

from gemmgen.base.record import record
from gemmgen.ir.barriers import BarrierArray
from gemmgen.ir.buffers import Origins
from gemmgen.ir.control import AdvanceRing, Assign, Block, Break, Define, For, If
from gemmgen.ir.dtypes import DType
from gemmgen.ir.expr import Element, Expr, Var, walk
from gemmgen.ir.instruction import Instruction, is_instruction
from gemmgen.ir.lane_matrices import OperandArray, SplitMatrices
from gemmgen.ir.warp_matrices import FragmentArray, LoadFragment, MultiplyFragments, StoreFragment
from gemmgen.ir.warp_roles import WarpRoles
from gemmgen.ir.warpgroup_matrices import DescribeMatrix


@record
class RegisterArray:
    """A thread's own array (``shape`` not empty), zeroed or not; ``wide`` when moved 16 bytes at a
    time."""

    SYNTAX = "{name}{shape} {dtype}"

    name: str
    dtype: DType
    shape: tuple[Expr, ...]
    sizes: tuple[int, ...]
    zero: bool = False
    wide: bool = False


@record
class Move:
    """``width`` neighbouring elements from ``source`` to ``target`` in one access each.

    Both hold ``dtype``: a move converts nothing.
    """

    SYNTAX = "{target} = {source}"

    target: Element
    source: Element
    width: int
    dtype: DType = "f32"


@record
class Leave:
    """``if (condition) return;``: uniform over the block if barriers follow."""

    condition: Expr


@record
class Advance:
    """``tensor += by;``: the tensor's name means the elements from there on; ``back``: it is
    ``tensor -= by;``."""

    SYNTAX = "{tensor} by {by}"

    tensor: str
    by: Expr
    back: bool = False


@record
class Point:
    """``name`` is a pointer to ``source``, an element of global memory of ``dtype``: its own
    elements are that one and those after it.

    It hides the pointer's origin from the optimizer, so that constant offsets stay immediate
    operands, and no address is computed for each.
    """

    SYNTAX = "{name} = {source}"

    name: str
    source: Element
    dtype: DType


@record
class CountArrival:
    """``name``: whether ``counter`` has been incremented ``last`` times before, which resets it.

    The thread that is ``chosen`` counts for its block, and a barrier publishes the result to all
    threads; with ``alone`` that thread alone has it, and others have false.  What the block wrote
    before its last barrier is visible to blocks that count later.
    """

    SYNTAX = "{name} = {counter}"

    name: str
    chosen: Expr
    counter: Element
    last: Expr
    alone: bool = False


@record
class Parameter:
    """A function's parameter: an int or, with ``dtype``, a pointer to elements, which may be
    ``written``; with ``shape`` a reference to an array of them."""

    name: str
    dtype: DType | None = None
    written: bool = False
    shape: tuple[Expr, ...] = ()


@record
class Function:
    """A part of a thread's code that is called several times, under a comment that cites its
    directives.  It uses only constants, the numbers of block and thread, and its parameters.

    ``results`` are ints that its body defines: by these names the code after a call has them.
    """

    name: str
    note: str
    origins: Origins
    parameters: tuple[Parameter, ...]
    body: tuple[Node, ...]
    results: tuple[str, ...] = ()


@record
class Invoke:
    """``load_A(...);``: a pointer's argument is a tensor's name, or an element by its address; a
    reference's is an array, or an element that is one."""

    function: Function
    arguments: tuple[Expr, ...]


Node = (
    Invoke
    | RegisterArray
    | Move
    | Leave
    | Advance
    | Point
    | CountArrival
    | Instruction
    | WarpRoles["Node"]
    | BarrierArray
    | FragmentArray
    | LoadFragment
    | MultiplyFragments
    | StoreFragment
    | OperandArray
    | SplitMatrices
    | DescribeMatrix
    | Define
    | Assign
    | AdvanceRing
    | For["Node"]
    | If["Node"]
    | Break
    | Block["Node"]
)


def inner(node: Node) -> tuple[Node, ...]:
    """The statements within ``node``, those of a function that it calls included."""
    match node:
        case Invoke(function):
            return function.body
        case If():
            return (*node.body, *node.otherwise)
        case WarpRoles():
            return tuple(inside for role in node.roles for inside in role.body)
        case For() | Block():
            return node.body
        case _:
            return ()


BLOCKS = Var("gridDim.x")
"""The number of blocks."""


def scoped(body: tuple[Node, ...]) -> tuple[Node, ...]:
    """``body`` in braces, if it has its own names."""
    names_something = any(isinstance(n, Define | RegisterArray | OperandArray) for n in body)
    return (Block("", (), body, scoped=True),) if names_something else body


def is_over_tiles(loop: For[Node]) -> bool:
    """Whether it is a persistent block's loop over its tiles."""
    return BLOCKS in walk(loop.step)


def contains(body: tuple[Node, ...], kind: type[Node]) -> bool:
    """Whether a node of ``kind`` is in ``body`` or in a function that it calls, at any depth."""
    return any(isinstance(node, kind) or contains(inner(node), kind) for node in body)


def executes(body: tuple[Node, ...], *names: str) -> bool:
    """Whether one of these instructions is in ``body``, or in a function that it calls."""
    return any(is_instruction(node, *names) or executes(inner(node), *names) for node in body)


def functions_of(body: tuple[Node, ...]) -> tuple[Function, ...]:
    """The functions that ``body`` calls, in the order of their first calls."""
    found: dict[Function, None] = {}
    for node in body:
        found |= dict.fromkeys(functions_of(inner(node)))
        if isinstance(node, Invoke):
            found[node.function] = None
    return tuple(found)
