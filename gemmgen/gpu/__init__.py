"""Everything that needs NVIDIA's tools: compiling, disassembling, launching, checking and timing.

Nothing here is imported by ``emit``; CuPy is imported only when a kernel is launched.
"""
