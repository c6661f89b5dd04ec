"""The example that each example is compared with, and the shape of its counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gemmgen_docs import schedules


@dataclass(frozen=True)
class Compared:
    """The comparison of a page.

    ``before`` is another example, or none.  With ``without`` it is the example itself, without
    these statements; if it is timed against another one, ``before`` is that and ``text_of`` itself.
    ``instead`` are statements in place of its own, and ``named`` says what they are.
    ``shape`` is that of ``gemmgen explain``.  ``page`` is the page that shows it, unless that has
    the example's name.
    """

    before: str | None
    without: tuple[str, ...] = ()
    shape: str = "4096"
    page: str = ""
    text_of: str = ""
    instead: str = ""
    named: str = ""

    def text(self) -> str | None:
        """The schedule that the example is compared with."""
        if self.before is None:
            return None
        name = self.text_of or self.before
        if self.instead:
            return schedules.replaced(name, self.instead)
        return schedules.without(schedules.text(name), *self.without)

    def called(self) -> str:
        """Its description."""
        if self.named:
            return self.named
        if not self.without:
            return f"`{self.before}`"
        left = [schedules.directive(line) for line in schedules.statements(self.text() or "")]
        if left == ["gemm"]:
            return "the naive kernel of the same problem"
        return f"the same without {' and '.join(f'`{name}`' for name in self.without)}"


RUNGS = {
    "naive": Compared(None),
    "uncoalesced": Compared("naive"),
    "tiled": Compared("naive"),
    "transposed": Compared("tiled"),
    "padded": Compared("transposed"),
    "double_buffered": Compared("padded"),
    "register_blocked": Compared("double_buffered"),
    "fused": Compared("register_blocked"),
    "vectorized": Compared("fused"),
    "warp_tiled": Compared("vectorized"),
}
"""The ladder, bottom to top; ``uncoalesced`` is a step down from ``naive``."""

HOPPER = {
    "hopper/tma": Compared("async_copy"),
    "hopper/warp_specialized": Compared("hopper/tma"),
    "hopper/persistent": Compared(
        "hopper/warp_specialized", without=("persistent",), text_of="hopper/persistent"
    ),
    "hopper/cluster": Compared("hopper/persistent"),
    "hopper/tma_store": Compared("hopper/persistent"),
    "hopper/pingpong": Compared("hopper/tma_store"),
    "hopper/overlap_launch": Compared("hopper/tma"),
    "hopper/wgmma": Compared("hopper/cluster"),
    "hopper/few_rows": Compared(
        "hopper/wgmma",
        shape="16x8192x8192",
        text_of="hopper/few_rows",
        instead="tile m=64 n=64 k=64\nwarp_tile m=64 n=64\ntensor_core via=wgmma\n"
        "double_buffer A B stages=12",
        named="the same without `rows=n`",
    ),
    "hopper/split_k": Compared(
        "hopper/wgmma", ("split_k",), "512x1024x16384", text_of="hopper/split_k"
    ),
    "hopper/fp8": Compared("hopper/wgmma"),
    "hopper/int8": Compared("hopper/fp8"),
    "hopper/tf32": Compared("hopper/wgmma"),
    "hopper/promote": Compared("hopper/wgmma"),
    "hopper/fp8_blocks": Compared("hopper/fp8"),
    "hopper/split_f32": Compared("hopper/promote"),
    "hopper/split_f16": Compared("hopper/split_f32"),
}
"""The second ladder, bottom to top: what came with sm_90.  Its pages, in its own folder, its
part of the navigation and its tests follow from this."""

BEYOND = {
    "async_copy": Compared("warp_tiled"),
    "async_row_major": Compared("warp_tiled"),
    "odd_extents": Compared("odd_extents", without=("residue",), shape="4097"),
    "swizzled": Compared("vectorized"),
    "sizes/large": Compared("warp_tiled", page="order.md"),
    "persistent": Compared("persistent", without=("persistent",)),
    "hilbert": Compared("hilbert", without=("raster",), page="order.md"),
    "l2_hints": Compared("l2_hints", without=("l2",), page="order.md"),
    "staged_output": Compared("register_blocked"),
    "split_k": Compared("split_k", without=("split_k",), shape="512x512x8192"),
    "matvec": Compared("matvec", ("tile", "vectorize", "split_k"), "4096x1x4096"),
    "types/f16": Compared("naive", page="types.md"),
    "types/bf16": Compared("naive", page="types.md"),
    "types/f64": Compared("naive", page="types.md"),
    "types/i8": Compared("naive", page="types.md"),
    "types/i8_scaled": Compared("register_blocked", page="types.md"),
    "types/e4m3": Compared("naive", page="types.md"),
    "types/e4m3_scaled": Compared("register_blocked", page="types.md"),
    "types/e5m2": Compared("naive", page="types.md"),
    "types/f16_fast": Compared("warp_tiled", page="types.md"),
    "types/f64_fast": Compared("warp_tiled", page="types.md"),
    "tensor_core": Compared("types/f16_fast"),
    "mma/mma": Compared("tensor_core", page="mma.md"),
    "mma/swizzled": Compared("mma/mma", page="mma.md"),
    "mma/stages": Compared("mma/swizzled", page="mma.md"),
    "mma/ahead": Compared("mma/stages", page="mma.md"),
    "mma/producer": Compared("mma/ahead", page="mma.md"),
    "mma/int8": Compared("mma/stages", page="mma.md"),
    "mma/fp8": Compared("mma/int8", page="mma.md"),
    "mma/tf32": Compared("mma/stages", page="mma.md"),
    "mma/split_f32": Compared("mma/tf32", page="mma.md"),
    "mma/f64": Compared("mma/tf32", page="mma.md"),
    "best/large_mk_kn": Compared("async_copy", page="best.md"),
    "best/deep": Compared("best/deep", ("split_k",), "64x64x65536", page="best.md"),
}
"""The examples beyond the ladder, each compared with the most similar example, in the order of
their pages."""


FOLDERS = {"beyond": BEYOND, "hopper": HOPPER}
"""Folders of pages: the navigation lists only the first page of each."""


def pages_of(examples: Mapping[str, Compared]) -> tuple[str, ...]:
    """The pages of some examples, in their order."""
    return tuple(dict.fromkeys(map(page_of, examples)))


def rung_before(name: str) -> str:
    """The rung that a rung is timed against: the one it is compared with; ``uncoalesced`` for
    ``naive``, which has none."""
    return of(name).before or "uncoalesced"


def page_of(name: str) -> str:
    """The file of an example's page, among those of its ladder."""
    return of(name).page or f"{stem(name)}.md"


def stem(name: str) -> str:
    """An example's name within its folder."""
    return name.rpartition("/")[2]


def of(name: str) -> Compared:
    """The comparison of example ``name``."""
    return {**RUNGS, **HOPPER, **BEYOND}[name]
