"""The GPUs (an H200, a T4) that times are estimated for: SMs, clocks, bandwidths.

What an architecture allows a kernel, on all of its GPUs, is in ``ir/target.py``.  ``gpu_names``
finds the row of a name, ``gpu_file`` reads a GPU from a file.

Of an SM: NVIDIA, CUDA C++ Programming Guide, "Technical Specifications per Compute Capability" and
"Arithmetic Instructions" (FP32 and FP64 lanes); for sm_100 and sm_121 also ``arch_traits`` of
NVIDIA's CUDA Core Compute Libraries.  Rates of tensor cores follow from the TFLOP/s without
sparsity that the documents of each GPU give at its boost clock.  The clock is the boost clock.

The bandwidth of the L2 cache is published for the A100 alone (5,120 bytes a clock, white paper);
that of the H200 is measured (reads), and is taken for the H100, which has the same die, by its
clock.  The others are None.  Each row names the document that its figures are of; those of the
H100 PCIe were compared with it, most others were entered from memory.
"""

from __future__ import annotations

from dataclasses import replace

from gemmgen.base.record import record
from gemmgen.ir.dtypes import BYTES, FP8, DType
from gemmgen.ir.target import newest_target

REGISTERS = 65536
"""32-bit registers of an SM, on all of these GPUs."""
SCHEDULERS = 4
"""Of an SM; each issues one instruction of a warp a clock."""
GPC = 18
"""The most SMs of a GPC, within which a cluster lies; the H200's have 16 or 18."""
KIB, MIB = 1024, 1024 * 1024


@record
class SmTraits:
    """An SM of an architecture.

    ``lanes`` and ``double_lanes``: FP32 and FP64 multiply-adds a clock.  ``shared``: bytes that
    its blocks may use together, including ``reserved`` bytes per block for the system.
    ``threads`` and ``blocks``: the most at once.  ``halves``, ``integers`` and ``double_tensor``:
    multiply-adds a clock of its tensor cores, of f16 or bf16 with f32 accumulators, of i8, and of
    f64.
    """

    lanes: int
    double_lanes: int
    shared: int
    threads: int
    blocks: int
    halves: int
    integers: int
    double_tensor: int
    reserved: int = 1024


SMS = {
    "sm_75": SmTraits(64, 2, 64 * KIB, 1024, 16, 512, 1024, 2, reserved=0),
    "sm_80": SmTraits(64, 32, 164 * KIB, 2048, 32, 1024, 2048, 64),
    "sm_86": SmTraits(128, 2, 100 * KIB, 1536, 16, 512, 1024, 2),
    "sm_89": SmTraits(128, 2, 100 * KIB, 1536, 24, 512, 1024, 2),
    "sm_90": SmTraits(128, 64, 228 * KIB, 2048, 32, 2048, 4096, 128),
    "sm_100": SmTraits(128, 64, 228 * KIB, 2048, 32, 4096, 8192, 64),
    "sm_120": SmTraits(128, 2, 100 * KIB, 1536, 24, 512, 1024, 2),
    "sm_121": SmTraits(128, 2, 100 * KIB, 1536, 24, 512, 1024, 2),
}
"""By architecture."""
GEFORCE = 256
"""``halves`` of a GeForce: with f32 accumulators its tensor cores multiply f16 and FP8 at half the
rate of the same SM in a GPU for data centers or workstations (white papers of GA102, Ada and RTX
Blackwell, tables of peak rates)."""
MMA = {("sm_90", 2): 0.66, ("sm_90", 1): 0.33, ("sm_100", 2): 0.33, ("sm_100", 1): 0.16}
"""The share of the tensor cores' rate that ``mma.sync`` reaches, by the bytes of a float, where it
is not all of it.  For sm_90 halves are measured on an NVIDIA H200, and FP8 is converted to f16
first.  For sm_100 nothing is measured: as many multiply-adds a clock as on sm_90 are assumed."""


@record
class Gpu:
    """``memory`` and ``l2``: bytes a second, the latter None if it is not known.  ``cache``: bytes
    of the L2 cache.  ``power``: watts that the board may take.  ``sm``: what each SM has."""

    name: str
    arch: str
    sms: int
    clock: float
    memory: float
    l2: float | None
    cache: int
    power: float
    sm: SmTraits

    @property
    def lanes(self) -> int:
        """FP32 multiply-adds a clock and SM."""
        return self.sm.lanes

    @property
    def double_lanes(self) -> int:
        """FP64 multiply-adds a clock and SM."""
        return self.sm.double_lanes

    @property
    def shared(self) -> int:
        """Bytes that the blocks of an SM may have together."""
        return self.sm.shared

    @property
    def reserved(self) -> int:
        """Bytes of them that each block takes for the system."""
        return self.sm.reserved

    @property
    def threads(self) -> int:
        """The most threads of an SM at once."""
        return self.sm.threads

    @property
    def blocks(self) -> int:
        """The most blocks of an SM at once."""
        return self.sm.blocks

    @property
    def target(self) -> str:
        """The newest target of schedules whose code runs here; none has the features of this
        architecture alone (sm_90a)."""
        return newest_target(self.arch)

    def tensor_lanes(self, dtype: DType) -> int:
        """Multiply-adds a clock and SM with f32, i32 or f64 accumulators: of FP8 twice as many as
        of halves, and half as many of 4 bytes."""
        if dtype == "f64":
            return self.sm.double_tensor
        if dtype == "i8":
            return self.sm.integers
        return self.sm.halves * 2 // BYTES[dtype]

    def through_mma(self, dtype: DType) -> float:
        """The share of them that instructions of one warp (``mma.sync``) reach; of f64 there are no
        other instructions."""
        if dtype == "f64":
            return 1.0
        return MMA.get((self.arch, 1 if dtype in FP8 else 2), 1.0)

    @property
    def flops(self) -> float:
        """FP32 operations a second: a multiply-add is two."""
        return 2 * self.sms * self.lanes * self.clock


def geforce(sm: SmTraits) -> SmTraits:
    """An SM with the tensor cores of a GeForce."""
    return replace(sm, halves=min(sm.halves, GEFORCE))


def _gpu(
    name: str,
    arch: str,
    sms: int,
    mhz: float,
    gb_s: float,
    mib: float,
    watts: float,
    l2: float | None = None,
) -> Gpu:
    """A row in the units of data sheets: MHz, GB/s, MiB of L2 cache, watts."""
    sm = geforce(SMS[arch]) if name.startswith("RTX") else SMS[arch]
    return Gpu(name, arch, sms, mhz * 1e6, gb_s * 1e9, l2, int(mib * MIB), watts, sm)


GPUS = {
    gpu.name: gpu
    for gpu in (
        # NVIDIA H200 Tensor Core GPU datasheet (SXM): 4.8 TB/s, 700 W; SMs, clock and L2 are the
        # driver's of an NVIDIA H200
        _gpu("H200", "sm_90", 132, 1980, 4800, 60, 700, 7.5e12),
        # NVIDIA H100 Tensor Core GPU datasheet and architecture white paper (SXM5)
        _gpu("H100", "sm_90", 132, 1980, 3350, 50, 700, 7.5e12),
        # the same white paper (PCIe: 114 SMs, 51.2 TFLOP/s of FP32), NVIDIA H100 PCIe GPU product
        # brief PB-11133 (more than 2,000 GB/s, 350 W): 5120 bits at 1593 MHz
        _gpu("H100-PCIe", "sm_90", 114, 1755, 2039, 50, 350, 7.5e12 * 1755 / 1980),
        # NVIDIA DGX B200 datasheet: 64 TB/s, 72 PFLOP/s of FP8 by 8 GPUs, 1000 W each; the data
        # sheets give neither SMs nor clock nor L2: these are the driver's of an NVIDIA B200
        _gpu("B200", "sm_100", 148, 1965, 8000, 126, 1000),
        # NVIDIA A100 Tensor Core GPU datasheet and architecture white paper (SXM4, 40 GB, 80 GB)
        _gpu("A100", "sm_80", 108, 1410, 1555, 40, 400, 5120 * 1.41e9),
        _gpu("A100-80GB", "sm_80", 108, 1410, 2039, 40, 400, 5120 * 1.41e9),
        # NVIDIA A10 datasheet: 31.2 TFLOP/s of FP32, 125 of f16, 600 GB/s, 150 W; 72 SMs of a
        # GA102 with 6 MB
        _gpu("A10", "sm_86", 72, 1695, 600, 6, 150),
        # NVIDIA L4 datasheet: 30.3 TFLOP/s of FP32, 121 of f16, 300 GB/s, 72 W; NVIDIA Ada GPU
        # architecture white paper V2.01 (AD104: 48 MB)
        _gpu("L4", "sm_89", 58, 2040, 300, 48, 72),
        # NVIDIA L40S datasheet: 91.6 TFLOP/s of FP32, 362 of f16, 864 GB/s, 350 W
        _gpu("L40S", "sm_89", 142, 2520, 864, 96, 350),
        # NVIDIA Ada GPU architecture white paper, tables of the RTX 4090, 4080 and 4070
        _gpu("RTX4090", "sm_89", 128, 2520, 1008, 72, 450),
        _gpu("RTX4080", "sm_89", 76, 2505, 716.8, 64, 320),
        _gpu("RTX4070", "sm_89", 46, 2475, 504, 36, 200),
        # NVIDIA's specifications of the GeForce RTX 4060 family: AD106, 4352 lanes, 128 bits at
        # 18 Gb/s
        _gpu("RTX4060Ti", "sm_89", 34, 2535, 288, 32, 160),
        # NVIDIA RTX Blackwell GPU architecture white paper, tables of the RTX 5090, 5080 and 5070
        _gpu("RTX5090", "sm_120", 170, 2407, 1792, 96, 575),
        _gpu("RTX5080", "sm_120", 84, 2617, 960, 64, 360),
        _gpu("RTX5070", "sm_120", 48, 2512, 672, 48, 250),
        # NVIDIA Ampere GA102 GPU architecture white paper (RTX 3080 with 10 GB)
        _gpu("RTX3090", "sm_86", 82, 1695, 936, 6, 350),
        _gpu("RTX3080", "sm_86", 68, 1710, 760, 5, 320),
        # NVIDIA T4 datasheet; Turing architecture white paper (TU104: 4 MB)
        _gpu("T4", "sm_75", 40, 1590, 320, 4, 70),
    )
}
DEFAULT = "H200"
