"""Launches the kernel of a schedule once, for a profiler that watches the process:

    python -m gemmgen.gpu.launch_once FILE EXTENT...

The extents are M, N, K and those of the batches.  What keeps the kernel from being launched is
printed as ``not launched: ...``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from gemmgen.base.errors import GemmgenError
from gemmgen.gpu.bench import arrays_of, inputs, timed_case
from gemmgen.gpu.device import cupy
from gemmgen.gpu.launch import Kernel
from gemmgen.pipeline import compile_source
from gemmgen.schedule.read import read_source

NOT_LAUNCHED = "not launched: "


def launch(path: str, shape: Sequence[int]) -> None:
    """Random normal numbers, alpha 1 and beta 0, as ``bench`` times kernels."""
    emitted = compile_source(read_source(path))
    kernel, case = Kernel.of(emitted), timed_case(tuple(shape))
    arguments: dict[str, object] = {
        **arrays_of(emitted.interface, inputs(emitted.interface, case)),
        **case.scalars(emitted.interface),
    }
    kernel(**arguments)
    cupy().cuda.Device().synchronize()


def main(arguments: Sequence[str]) -> None:
    path, *extents = arguments
    try:
        launch(path, [int(extent) for extent in extents])
    except GemmgenError as why:
        print(f"{NOT_LAUNCHED}{why}")


if __name__ == "__main__":
    main(sys.argv[1:])
