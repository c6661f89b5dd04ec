"""Binds the arguments of a call to parameters, in the same way on a GPU and on the CPU.

The tensors of the ``gemm`` line may be positional, the inputs first, then the output:
``kernel(A, B, C)``.  All arguments may be named; those of the epilogue must be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gemmgen.base.errors import CallError
from gemmgen.calling.scalars import DEFAULTS
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param


class Binding:
    """The order in which a kernel's arguments are kept: tensors, scalars, scratch memory.

    ``tensors`` has those of the ``gemm`` line first, in the order of positions.  ``lend``: the
    caller may pass the scratch memory, too.
    """

    def __init__(self, interface: Interface, *, lend: bool = False) -> None:
        tensors = interface.tensors
        inputs = [param for param in tensors if not param.written][:2]
        line = [*inputs, *(param for param in tensors if param.written)]
        self.tensors: tuple[Param, ...] = (*line, *(p for p in tensors if p not in line))
        self.scalars = interface.scalars
        self.scratch = interface.scratch if lend else ()
        self.output = next(at for at, param in enumerate(self.tensors) if param.written)
        self._shown = tuple(param.name for param in (*tensors, *self.scalars))
        self._positional = len(line)
        self._kernel = interface.name
        every = (*self.tensors, *self.scalars, *self.scratch)
        self._slots = {param.name: at for at, param in enumerate(every)}
        self._absent: tuple[object, ...] = (None,) * len(every)

    def bind(self, given: tuple[object, ...], named: Mapping[str, object]) -> list[object]:
        """The arguments in order, None for an absent one; ``CallError`` for an unknown one."""
        count = len(given)
        if count > self._positional:
            raise CallError(self._too_many(count))
        values = [*given, *self._absent[count:]]
        slots = self._slots
        for name, value in named.items():
            at = slots.get(name)
            if at is None:
                raise CallError(f"there is no argument {name}: the kernel takes {self.listed()}")
            if at < count:
                raise CallError(f"{name} is given twice: by position, and by name")
            values[at] = value
        return values

    def missing(self, param: Param, given: Sequence[object] = ()) -> str:
        """A sentence on a required tensor that isn't passed, while others are ``given``."""
        if param.written:
            return f"{param.name} is missing: the kernel reads it, unless beta is 0"
        said = f"{param.name} is missing: the kernel takes {self.listed()}"
        named = [other.name for other in self.tensors[self._positional :]]
        if param.name in named and len(given) > self.output and given[self.output] is not None:
            output = self.tensors[self.output].name
            said += f"; the third by position is {output}, so pass {param.name} by name"
        return said

    def listed(self) -> str:
        """The names of the arguments, for a message."""
        return ", ".join(self._shown)

    def signature(self) -> str:
        """``gemm(A[m, k], B[k, n], C[m, n], bias[n], alpha=1.0)``."""
        tensors = [param.text for param in self.tensors]
        defaults = [(p.name, DEFAULTS.get(p.name)) for p in self.scalars]
        scalars = [name if value is None else f"{name}={value}" for name, value in defaults]
        return f"{self._kernel}({', '.join((*tensors, *scalars))})"

    def _too_many(self, count: int) -> str:
        names = [param.name for param in self.tensors[: self._positional]]
        others = [name for name in self._shown if name not in names]
        rest = f"; pass {', '.join(others)} by name" if others else ""
        takes = f"{', '.join(names[:-1])} and {names[-1]}"
        return f"{count} arguments by position: the kernel takes {takes} so{rest}"
