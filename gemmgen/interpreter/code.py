"""The statements of a kernel compiled to closures, for one machine.

Each statement is done by all threads before the next one begins.  What a kind of node does is one
function of a table (``node_table.NODES``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gemmgen.interpreter.expressions import compile_element, compile_expression
from gemmgen.interpreter.machine import Machine, Step
from gemmgen.interpreter.memory import Memory
from gemmgen.interpreter.scope import Array, Closure, Scope, known
from gemmgen.interpreter.simt import Index, Mask, is_empty, narrowed
from gemmgen.ir.control import Break
from gemmgen.ir.expr import Element, Expr
from gemmgen.ir.instruction import Instruction
from gemmgen.ir.instruction_table import NO_VALUE
from gemmgen.ir.interface import Interface
from gemmgen.ir.lowered import LoweredKernel
from gemmgen.ir.thread_code import Leave, Node, contains

Statements = Mapping[type[Any] | str, Callable[[Any, "Code"], Step | None]]
"""How each kind of node is compiled, and each instruction by its name; None: it does nothing on
this machine."""


class Code:
    """Compiles nodes; ``alive`` are the threads that have not left, while the closures run."""

    def __init__(self, machine: Machine, statements: Statements):
        self.machine, self.scope = machine, Scope()
        self.alive: Mask = None
        self._interface: Interface | None = None
        self._statements = statements
        for name, value in machine.builtins().items():
            self.scope.bind(name, known(value, "int"))

    def kernel(self, kernel: LoweredKernel) -> Step | None:
        """The whole of ``kernel``."""
        scope, machine = self.scope, self.machine
        self._interface = kernel.interface
        for param in kernel.interface.params:
            meaning = machine.parameter(param)
            if isinstance(meaning, Memory):
                meaning = Array(meaning, None)
            scope.bind(param.name, meaning)
        for constant in kernel.constants:
            scope.bind(constant.name, known(constant.value, "int"))
            if constant.definition is not None:
                computed = self.expression(constant.definition).known
                assert (
                    computed == constant.value
                ), f"{constant.name} is {computed} by its definition"
        for shared in kernel.shared:
            scope.bind(shared.name, Array(machine.shared(shared), shared.sizes))
        return self.sequence(kernel.body)

    @property
    def interface(self) -> Interface:
        """Of the kernel that is compiled."""
        assert self._interface is not None
        return self._interface

    def statement(self, node: Node) -> Step | None:
        kind = node.name if isinstance(node, Instruction) else type(node)
        if kind not in self._statements:
            assert isinstance(node, Instruction) and node.row.effect in NO_VALUE, kind
            return None  # the order of memory, which the text's own run finds
        return self._statements[kind](node, self)

    def braces(self, body: tuple[Node, ...]) -> Step | None:
        """``body`` with its own names."""
        self.scope.enter()
        step = self.sequence(body)
        self.scope.leave()
        return step

    def sequence(self, body: tuple[Node, ...]) -> Step | None:
        steps = [step for node in body if (step := self.statement(node)) is not None]
        if len(steps) < 2:
            return steps[0] if steps else None
        if contains(body, Leave) or contains(body, Break):
            return lambda mask: self._run_alive(steps, mask)

        def run(mask: Mask) -> None:
            for step in steps:
                step(mask)

        return run

    def _run_alive(self, steps: list[Step], mask: Mask) -> None:
        """Steps in which threads may leave for good."""
        for step in steps:
            active = mask if self.alive is None else narrowed(mask, self.alive)
            if is_empty(active):
                return
            step(active)

    def expression(self, expr: Expr) -> Closure:
        return compile_expression(expr, self.scope)

    def element(self, element: Expr) -> tuple[Memory, Callable[[Mask], Index]]:
        """The memory of an element, and its flat index there."""
        assert isinstance(element, Element)
        return compile_element(element, self.scope)
