"""Kernels that get tensor maps and do nothing: all that calls them is there."""

from __future__ import annotations

from dataclasses import replace

from gemmgen.base.source import Source
from gemmgen.emit import emit
from gemmgen.expand import expand
from gemmgen.ir.interface import Interface
from gemmgen.ir.lowered import LoweredKernel
from gemmgen.ir.tensor_map import TensorMap
from gemmgen.language import parse_schedule
from gemmgen.lower.context import Context
from gemmgen.lower.kernel import LOWERINGS
from gemmgen.lower.signature import interface_of
from gemmgen.pipeline import Emitted, compile_source, make_concrete, rewrite

SHAPE = "tile m=64 n=32 k=16\ncache_shared A B\nregister_block m=4 n=4\ntarget sm_90\n"
PLAIN = f"gemm C[m, n] = A[k, m] * B[k, n]\n{SHAPE}"
BATCHED = f"gemm C[b, m, n] = A[b, m, k] * B[k, n]\n{SHAPE}"
HALVES = f"{PLAIN}dtype A=bf16 B=f16 C=f32\n"
BOXES = {
    PLAIN: (TensorMap("A", (64, 16)), TensorMap("B", (32, 16))),
    BATCHED: (TensorMap("A", (16, 64, 1)), TensorMap("B", (32, 16))),
    HALVES: (TensorMap("A", (64, 16)), TensorMap("B", (32, 16))),
}


MAPPED = {"maps": PLAIN, "maps of a batch": BATCHED, "maps of 16 bits": HALVES}


def interface_with(text: str, *maps: TensorMap) -> Interface:
    """The interface of a schedule's kernel if it got tensors of it as maps."""
    program = rewrite(parse_schedule(Source(text, "test.sched")))[-1].program
    (kernel,) = expand(program).kernels
    context = Context(program, kernel, LOWERINGS[kernel.kernel.spread.holding])
    return interface_of(context, 0, 0, maps)


def kernel_with(text: str, *maps: TensorMap) -> LoweredKernel:
    """A schedule's kernel with maps, and without a body that could use them."""
    (lowered,) = make_concrete(rewrite(parse_schedule(Source(text)))[-1].program).kernels
    return replace(lowered, interface=interface_with(text, *maps), shared=(), body=())


def emitted_with(text: str) -> Emitted:
    """The same, emitted, with maps of ``BOXES``."""
    kernel = kernel_with(text, *BOXES[text])
    plain = compile_source(Source(text))
    return replace(plain, text=emit(kernel, "nothing", text), interface=kernel.interface)
