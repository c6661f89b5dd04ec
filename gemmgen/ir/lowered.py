"""The lowered IR: one thread's code, as the emitted text will show it.

Addresses are flat, guards explicit and names final.  The emitter prints this form, and the
interpreter runs it for all threads of a block at once.
"""

from __future__ import annotations

from gemmgen.base.record import record
from gemmgen.ir.buffers import Origins
from gemmgen.ir.dtypes import BYTES, DType
from gemmgen.ir.expr import Expr, Var
from gemmgen.ir.interface import Interface
from gemmgen.ir.thread_code import Function, Node, functions_of


@record
class Constant:
    """``constexpr int LM = BM / TM;``: a name, its value, how it is computed (None: a literal), and
    a comment.
    """

    SYNTAX = "{name} = {value}"

    name: str
    value: int
    definition: Expr | None = None
    note: str = ""


@record
class Check:
    """``static_assert(condition, message)``: what a reader would ask of the constants."""

    condition: Expr
    message: str


@record
class SharedArray:
    """An array in shared memory; the last of ``shape`` is contiguous, pads included.

    ``sizes`` are the extents as numbers, ``shape`` the same as expressions of named constants;
    ``aligned`` are the bytes to which it begins.
    """

    SYNTAX = "{name}{shape} {dtype}"

    name: str
    dtype: DType
    shape: tuple[Expr, ...]
    sizes: tuple[int, ...]
    origins: Origins = ()
    aligned: int = 16

    @property
    def bytes(self) -> int:
        total = BYTES[self.dtype]
        for size in self.sizes:
            total *= size
        return total


def ends_at(arrays: tuple[SharedArray, ...]) -> tuple[int, ...]:
    """Bytes to which the end of each array is rounded up where one follows another: those to which
    the arrays after it begin."""
    aligned = [array.aligned for array in arrays]
    return tuple(max(aligned[i + 1 :], default=1) for i in range(len(arrays)))


@record
class LaunchNames:
    """How the text names what the launcher needs: the extents of the tiles that ``interface.tiles``
    counts, the threads along x and y (or all of them), the parts of a tile, the number of threads,
    and the blocks of a cluster along each extent."""

    tiles: tuple[Var, ...] = ()
    block: tuple[Var, ...] = ()
    parts: Var | None = None
    count: Expr = Var("THREADS")
    cluster: tuple[Var, ...] = ()


@record
class LoweredKernel:
    """A kernel ready to print: constants, shared arrays, the body of one thread.

    The parameters, the launch and its requirements are in ``interface``.
    """

    SYNTAX = ""

    interface: Interface
    constants: tuple[Constant, ...]
    checks: tuple[Check, ...]
    shared: tuple[SharedArray, ...]
    body: tuple[Node, ...]
    threads: int
    blocks: int = 1
    """Minimum resident blocks per multiprocessor."""
    bounded: Origins = ()
    """The directives that state it; empty if ``lower`` chose it."""
    launch: LaunchNames = LaunchNames()
    pre_passes: tuple[LoweredKernel, ...] = ()
    """The kernels that ``interface.before`` launches."""

    @property
    def functions(self) -> tuple[Function, ...]:
        """What ``body`` calls, in the order in which a text has them."""
        return functions_of(self.body)


@record
class LoweredProgram:
    """The kernels of a program, in launch order; ``temporaries`` are tensors between them."""

    kernels: tuple[LoweredKernel, ...]
    temporaries: tuple[str, ...] = ()
