"""cluster: blocks that run together, and share what they copy.

Blocks of a cluster run at the same time on multiprocessors of one GPC, and can access each other's
shared memory (sm_90 on).  Blocks along n read the same rows of A, blocks along m the same columns
of B.  Each block loads its share of such a tile, and TMA writes the share to the shared memory of
all of them (multicast), so that the tile is read once from L2.  A stage is filled again when the
consumers of all blocks have released it.  It needs ``async_copy via=tma`` for both operands,
``warp_specialize``, and ``target sm_90a``, since multicasts may be slow elsewhere.  The last
clusters may have tiles beyond C: their blocks copy and multiply, and write nothing.  A persistent
launch has as many clusters as the driver reports to be resident.  With ``split_k`` the blocks of a
cluster sum the same part of K, and meet once before the reduction.  ``cluster m=1 n=1`` equals the
directive's absence.

    work [m=32, n=32]
==> cluster m=2
    work [m=32, n=32] cluster=[m=2, n=1]   # cluster m=2
"""

from __future__ import annotations

from dataclasses import field, replace
from math import gcd
from typing import ClassVar

from gemmgen.base.errors import Refusal
from gemmgen.base.record import record
from gemmgen.base.source import remainder
from gemmgen.ir.boxes import box_of
from gemmgen.ir.buffers import Buffer
from gemmgen.ir.clusters import MOST_BLOCKS, along, share_of, shared_along
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.edit import changed_by, edit_main, pipeline_of
from gemmgen.ir.nodes import Kernel, Program
from gemmgen.ir.target import MULTICASTS, SINCE, has
from gemmgen.ir.tensor_map import LANDS_AT
from gemmgen.passes.base import Stated, tile_with
from gemmgen.schedule.formatting import format_sizes
from gemmgen.schedule.model import Gemm
from gemmgen.schedule.roles import roles
from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec, Elsewhere


@record
class Cluster:
    SPEC: ClassVar = DirectiveSpec(
        "cluster",
        example="cluster m=2 n=1",
        arguments=tuple(
            ArgumentSpec(x, maximum=64, default=1, identity=1, fuzz=((2,), (4, 8)))
            for x in ("<m>", "<n>")
        ),
        elsewhere=Elsewhere(
            "CUTLASS ClusterShape, Triton num_ctas, CUDA __cluster_dims__",
            "cluster_shape clustershape cluster_dims num_ctas cta_cluster multicast clusters",
        ),
    )
    AFTER: ClassVar[tuple[str, ...]] = (
        *("tile", "cache_shared", "warp_tile", "register_block", "tensor_core"),
        *("vectorize", "double_buffer", "async_copy", "split_k", "persistent", "warp_specialize"),
    )

    sizes: tuple[tuple[str, int], ...]
    stated: Stated = field(compare=False)

    @staticmethod
    def read(stated: Stated, gemm: Gemm) -> Cluster:
        return Cluster(stated.sizes(roles(gemm)[:2]), stated)

    def apply(self, program: Program) -> Program:
        if all(count == 1 for _, count in self.sizes):
            return program
        self._check_target(program)
        self._check_count()
        self._check_copies(program)

        counts = dict(self.sizes)
        sides = tuple((letter, counts[letter]) for letter, _ in program.main.work.tile)

        def group(kernel: Kernel) -> Kernel:
            work = changed_by(self.stated.origin, kernel.work, cluster=sides)
            return replace(kernel, work=work)

        changed = edit_main(program, group)
        self._check_shares(changed.main)
        return changed

    def _check_target(self, program: Program) -> None:
        if not has(program.target, SINCE["tma"]):
            raise Refusal(
                f"{program.target} has no clusters of blocks",
                at=self.stated.span,
                hint=f"target {MULTICASTS}, or leave cluster out",
            )
        if program.target != MULTICASTS:
            raise Refusal(
                f"cluster: {program.target} may multicast slowly",
                at=self.stated.span,
                notes=(
                    f"fast multicasts are instructions of {MULTICASTS} alone, as ptxas advises",
                ),
                hint=f"target {MULTICASTS}, or leave cluster out",
            )

    def _check_count(self) -> None:
        (m, rows), (n, columns) = self.sizes
        if rows * columns > MOST_BLOCKS:
            halves = min(rows, MOST_BLOCKS)
            fewer = format_sizes(((m, halves), (n, max(1, min(columns, MOST_BLOCKS // halves)))))
            raise Refusal(
                f"a cluster has at most {MOST_BLOCKS} blocks",
                at=self.stated.span,
                notes=(f"{rows} along {m} x {columns} along {n} = {rows * columns}",),
                hint=f"cluster {fewer}",
            )

    def _check_copies(self, program: Program) -> None:
        """Check that TMA copies the shared tiles, issued by a producer of each block."""
        kernel = program.main
        pipeline = pipeline_of(kernel)
        copies = pipeline.produce if pipeline else ()
        operands = " ".join(tensor.name for tensor in (program.problem.a, program.problem.b))
        if {copy.mode for copy in copies} != {"tma"}:
            raise Refusal(
                "cluster needs tiles that TMA loads, to multicast them",
                at=self.stated.span,
                notes=("threads copy into the shared memory of their own block only",),
                hint=f"async_copy {operands} via=tma",
            )
        copied = {program.main.buffer(copy.dst).tensor for copy in copies}
        for letter, count in self.sizes:
            (shared,) = (
                t for t in (program.problem.a, program.problem.b) if letter not in t.letters
            )
            if count > 1 and shared.name not in copied:
                raise Refusal(
                    f"cluster: blocks along {letter} share {shared.name}, which is not copied",
                    at=self.stated.span_of(letter),
                    notes=(f"each thread reads {shared.name} where it multiplies it",),
                    hint=f"leave cluster out, or copy {shared.name} with TMA, too",
                )
        if not kernel.producers.warpgroups:
            raise Refusal(
                "cluster needs a producer, which waits for the consumers of all blocks",
                at=self.stated.span,
                notes=("without one a block issues TMA after a barrier of its own threads only",),
                hint="warp_specialize producers=1",
            )

    def _check_shares(self, kernel: Kernel) -> None:
        pipeline = pipeline_of(kernel)
        assert pipeline is not None
        for copy in pipeline.produce:
            tile = kernel.buffer(copy.dst)
            letter = shared_along(kernel.work, tile)
            if letter is not None:
                self._check_share(kernel, tile, letter, copy.src)

    def _check_share(self, kernel: Kernel, tile: Buffer, letter: str, tensor: str) -> None:
        """Check each block's share of a tile: whole rows, and boxes that start at aligned
        addresses."""
        outer = tile.letters[0]
        blocks, rows = along(kernel.work, letter), tile.extent(outer)
        span = self.stated.span_of(letter)
        if rows % blocks:
            fewer = max(count for count in range(1, blocks) if rows % count == 0)
            longer = self._longer(kernel, outer, rows, blocks)
            raise Refusal(
                f"cluster: {blocks} blocks along {letter} can't share the {rows} rows of "
                f"{tile.name}",
                at=span,
                notes=(f"each copies {rows} / {blocks} rows, and {remainder(rows, blocks)}",),
                hint=f"cluster {letter}={fewer}, or {longer}" if fewer > 1 else longer,
            )
        share = share_of(kernel.work, tile)
        row = tile.row * BYTES[tile.dtype]
        size = share.extent(outer) * row
        if size % LANDS_AT or box_of(share) is None:
            raise Refusal(
                f"cluster: a share of {tile.name} is not a multiple of {LANDS_AT} bytes, at which "
                "a box lands",
                at=span,
                notes=(
                    f"{rows} / {blocks} rows of {tile.row} x {BYTES[tile.dtype]} bytes "
                    f"= {size} bytes, and {remainder(size, LANDS_AT)}",
                ),
                hint=self._longer(kernel, outer, rows, blocks * (LANDS_AT // gcd(LANDS_AT, row))),
            )

    def _longer(self, kernel: Kernel, outer: str, rows: int, multiple: int) -> str:
        """The tile whose rows along ``outer`` are a multiple, or no cluster."""
        size = -(-rows // multiple) * multiple
        return f"{tile_with(kernel, outer, size)}, or leave cluster out"
