"""An emitted kernel with a producer, in whose text blocks of clusters share tiles."""

from __future__ import annotations

import re
from dataclasses import replace

from functions import texts_of

from gemmgen.ir.interface import Interface
from gemmgen.pipeline import Emitted

BARRIERS = "gg_fence_barrier_init();\n    }\n    __syncthreads();"
CONSUMED = "gg_init_barrier(empty[stage], CONSUMERS / 32);"
RELEASED = "if (threadIdx.x % 32 == 0) gg_arrive(empty[stage]);"
PRODUCER = "if (threadIdx.x == CONSUMERS) {"
FUNCTIONS = ("cluster_rank", "arrive_at", "sync_cluster", "multicast_box_2d")


def clustered(emitted: Emitted, blocks_m: int, blocks_n: int) -> Emitted:
    """Blocks along m share the tile of B, those along n the tile of A."""
    text = emitted.text
    replaced = {
        "constexpr int STAGES =": f"constexpr int CLUSTER_M = {blocks_m}, CLUSTER_N = {blocks_n};\n"
        "constexpr int CLUSTER = CLUSTER_M * CLUSTER_N;\nconstexpr int STAGES =",
        "__global__ void __launch": "__global__ void __cluster_dims__(CLUSTER) __launch",
        CONSUMED: CONSUMED.replace("CONSUMERS / 32", "CLUSTER * (CONSUMERS / 32)"),
        BARRIERS: BARRIERS.replace("__syncthreads", "gg_sync_cluster") + "\n"
        "    const int rank = gg_cluster_rank();\n"
        "    const int rank_m = rank / CLUSTER_N, rank_n = rank % CLUSTER_N;",
        PRODUCER: PRODUCER + "\n"
        "            const unsigned row = ((1u << CLUSTER_N) - 1) << rank_m * CLUSTER_N;\n"
        "            unsigned column = 0;\n"
        "            for (int m = 0; m < CLUSTER_M; ++m)\n"
        "                column |= 1u << (m * CLUSTER_N + rank_n);\n"
        "            const int A_k = rank_n * (BK / CLUSTER_N), B_k = rank_m * (BK / CLUSTER_M);",
        RELEASED: "if (threadIdx.x % 32 < CLUSTER) gg_arrive_at(empty[stage], threadIdx.x % 32);",
        "\n}\n\n// ---- end of kernel": "\n    gg_sync_cluster();\n}\n\n// ---- end of kernel",
        "const long long blocks = ": "const long long blocks = 1LL * CLUSTER * ",
        "{BM, BK})": "{BM, BK / CLUSTER_N})",
        "{BN, BK})": "{BN, BK / CLUSTER_M})",
    }
    for old, new in replaced.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    above, kernel, below = re.split(r"(?<=// ---- kernel ----\n)|(?=// ---- end of kernel)", text)
    for letter in "MN":
        tiles = rf"\({letter} - 1\) / B{letter}\b"
        kernel, below = (
            re.sub(tiles, f"({letter} - 1) / (B{letter} * CLUSTER_{letter})", part)
            for part in (kernel, below)
        )
        side = letter.lower()
        tile = rf"(?<=const int tile_{side} = )(.*) \* B{letter};"
        kernel = re.sub(tile, rf"(\1 * CLUSTER_{letter} + rank_{side}) * B{letter};", kernel)
    for tensor, mask in (("A", "row"), ("B", "column")):
        kernel = re.sub(
            rf"gg_load_box_2d\({tensor}_shared\[(\w+)\], {tensor}, (\S+), (\w+), (\w+)\);",
            rf"gg_multicast_box_2d({tensor}_shared[\1][{tensor}_k], {tensor}, \2, \3,"
            rf" \4 + {tensor}_k, {mask});",
            kernel,
        )
    kernel = kernel.replace("blockIdx.x", "((int)blockIdx.x / CLUSTER)")
    functions = "\n\n".join(one for name in FUNCTIONS for one in texts_of(f"gg_{name}"))
    whole = above.replace("// ---- kernel", f"{functions}\n\n// ---- kernel") + kernel + below
    interface = of_clusters(emitted.interface, (blocks_m, blocks_n))
    return replace(emitted, text=whole, interface=interface)


def of_clusters(interface: Interface, cluster: tuple[int, int]) -> Interface:
    """Each block has a slice of a tile copied."""
    maps = (
        replace(one, box=(one.box[0], one.box[1] // shared))
        for one, shared in zip(interface.maps, reversed(cluster), strict=True)
    )
    return replace(interface, maps=tuple(maps), cluster=cluster)
