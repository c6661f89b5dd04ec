"""The texts of ``gg_*`` functions compile to the PTX instructions that they are named after."""

from __future__ import annotations

from typing import Literal

import pytest

from gemmgen.emit.intrinsics import shuffle_text
from gemmgen.gpu import nvrtc

pytestmark = pytest.mark.skipif(nvrtc.available() is not None, reason=str(nvrtc.available()))


def ptx(text: str, body: str, arch: str) -> str:
    """The PTX of a kernel over ``x`` with this body."""
    kernel = f'extern "C" __global__ void probe(float *x, double *y, int at)\n{{\n{body}\n}}\n'
    compiled = nvrtc.compile_text(f"{text}\n\n{kernel}", arch)
    assert compiled.spills == 0
    return compiled.ptx


@pytest.mark.parametrize("arch", ["sm_75", "sm_90a"])
@pytest.mark.parametrize("name", ["xor", "down"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_a_shuffle(name: Literal["xor", "down"], dtype: Literal["f32", "f64"], arch: str) -> None:
    array = "x" if dtype == "f32" else "y"
    body = f"    {array}[threadIdx.x] = gg_shuffle_{name}({array}[threadIdx.x], at);"
    found = ptx(shuffle_text(name, dtype), body, arch)
    mode = "bfly" if name == "xor" else "down"
    assert found.count(f"shfl.sync.{mode}.b32") == (1 if dtype == "f32" else 2)
