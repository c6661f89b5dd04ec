"""The products (an H200, a T4) that times are estimated for: SMs, clocks, bandwidths.

What an architecture allows a kernel, on all of its products, is in ``ir/target.py``.

Per SM: NVIDIA, CUDA C++ Programming Guide, "Technical Specifications per Compute Capability" and
"Arithmetic Instructions" (FP32 lanes).  SMs, clocks and memory bandwidth: NVIDIA's data sheets and
architecture white papers of each GPU; the clock is the boost clock.  L2: the A100's 5,120 bytes a
clock are its white paper's; that of an NVIDIA H200 is measured (reads), and is taken for the H100,
which has the same die; others are not published.

    A100        108 SMs of 64 lanes, 1410 MHz, 40 GB at 1555 GB/s, 80 GB at 2039 GB/s: data sheet
                "NVIDIA A100 Tensor Core GPU" (SXM), white paper "NVIDIA A100 Tensor Core GPU
                Architecture", 164 KB of shared memory
    RTX 3080    68 SMs of 128 lanes (8704), 1710 MHz, 320 bits at 19 Gb/s, 760 GB/s: white paper
                "NVIDIA Ampere GA102 GPU Architecture" (10 GB)
    RTX 4060 Ti AD106, 34 SMs of 128 lanes (4352), 2535 MHz, 128 bits at 18 Gb/s, 288 GB/s:
                NVIDIA's specifications of the GeForce RTX 4060 family

These three were looked up, and the H200's figures were compared with a GPU (its counters and the
measured ladder); the others were written down without the sheets at hand: look them up before you
rely on one.
"""

from __future__ import annotations

from gemmgen.base.errors import UsageError
from gemmgen.base.record import record
from gemmgen.base.source import value_shown
from gemmgen.ir.dtypes import BYTE_FLOATS, BYTES, DType

REGISTERS = 65536
"""32-bit registers of an SM, on all of these GPUs."""
SCHEDULERS = 4
"""Of an SM; each issues one instruction of a warp a clock."""
GPC = 18
"""The most SMs of a GPC, within which a cluster lies; the H200's have 16 or 18."""


@record
class Gpu:
    """``shared``: bytes an SM's blocks may have together, of which each block takes ``reserved``
    for the system.  ``memory`` and ``l2``: bytes a second; None if it is not known."""

    name: str
    arch: str
    sms: int
    clock: float
    lanes: int
    shared: int
    threads: int
    blocks: int
    memory: float
    l2: float | None
    reserved: int = 1024

    @property
    def double_lanes(self) -> int:
        """FP64 multiply-adds a clock and SM (the guide's "Arithmetic Instructions")."""
        return {"sm_80": 32, "sm_90": 64}.get(self.arch, 2)

    def tensor_lanes(self, dtype: DType) -> int:
        """Multiply-adds of operands of a type into f32 or i32 sums a clock and SM (the white
        papers): of bytes twice as many as of halves, and half as many of 4 bytes.  Of f64, sums of
        f64: twice as many as CUDA cores do where there are units for it (data sheets of the A100,
        19.5 of 9.7 TFLOP/s, and the H100, 67 of 34)."""
        if dtype == "f64":
            return self.double_lanes * (2 if self.double_lanes > 2 else 1)
        wide = {"sm_75": 512, "sm_80": 1024, "sm_90": 2048}.get(self.arch, 256)
        halves = 512 if "L40S" in self.name.split() else wide
        return halves * 2 // BYTES[dtype]

    def through_mma(self, dtype: DType) -> float:
        """The share of them that instructions of one warp reach: of halves, measured on an NVIDIA
        H200.  Floats of a byte the compiler for sm_90 converts to f16 first; of f64 there are no
        other instructions."""
        if self.arch != "sm_90" or dtype == "f64":
            return 1.0
        return 0.33 if dtype in BYTE_FLOATS else 0.66

    @property
    def flops(self) -> float:
        """FP32 operations a second: a multiply-add is two."""
        return 2 * self.sms * self.lanes * self.clock


KIB = 1024

GPUS = {
    gpu.name: gpu
    for gpu in (
        Gpu("H200", "sm_90", 132, 1.98e9, 128, 228 * KIB, 2048, 32, 4.8e12, 7.5e12),
        Gpu("H100", "sm_90", 132, 1.98e9, 128, 228 * KIB, 2048, 32, 3.35e12, 7.5e12),
        Gpu("A100", "sm_80", 108, 1.41e9, 64, 164 * KIB, 2048, 32, 1.555e12, 5120 * 1.41e9),
        Gpu("A100-80GB", "sm_80", 108, 1.41e9, 64, 164 * KIB, 2048, 32, 2.039e12, 5120 * 1.41e9),
        Gpu("L40S", "sm_89", 142, 2.52e9, 128, 100 * KIB, 1536, 24, 0.864e12, None),
        Gpu("RTX4090", "sm_89", 128, 2.52e9, 128, 100 * KIB, 1536, 24, 1.008e12, None),
        Gpu("RTX4060Ti", "sm_89", 34, 2.535e9, 128, 100 * KIB, 1536, 24, 0.288e12, None),
        Gpu("RTX5090", "sm_120", 170, 2.407e9, 128, 100 * KIB, 1536, 24, 1.792e12, None),
        Gpu("RTX3090", "sm_86", 82, 1.695e9, 128, 100 * KIB, 1536, 16, 0.936e12, None),
        Gpu("RTX3080", "sm_86", 68, 1.71e9, 128, 100 * KIB, 1536, 16, 0.76e12, None),
        Gpu("T4", "sm_75", 40, 1.59e9, 64, 64 * KIB, 1024, 16, 0.32e12, None, reserved=0),
    )
}
DEFAULT = "H200"


def gpu_named(name: object) -> Gpu:
    """The GPU of this name, in capitals or not; raises ``UsageError`` if there is none."""
    found = next((gpu for key, gpu in GPUS.items() if _is_called(key, name)), None)
    if found is None:
        raise UsageError(f"gpu={value_shown(name)}: there are {', '.join(GPUS)}")
    return found


def _is_called(key: str, name: object) -> bool:
    return isinstance(name, str) and name.lower() == key.lower()
