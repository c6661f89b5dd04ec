"""Emitted texts, run on the CPU.

``run.compile_kernel`` compiles a kernel's text with g++ and a small host header (``host.h``) into a
program of its own; ``CompiledKernel.run`` has that program execute a launch on NumPy arrays.
"""
