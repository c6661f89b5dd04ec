"""Mistakes in what blocks of a cluster owe one another: edits of the handwritten kernel."""

from __future__ import annotations

from box_plants import BoxPlant

CLUSTER = "cluster"
START = "gg_sync_cluster();\n\n    if (threadIdx.x < 32)"
END = "    }\n    gg_sync_cluster();\n}"
RELEASE = "if (thread % 32 < CLUSTER) gg_arrive_at(empty[stage], thread % 32);"
READ = "acc[i] = fmaf"
LOAD_A, LOAD_B = "gg_multicast_box_2d(A_shared", "gg_multicast_box_2d(B_shared"


def edit(old: str, new: str, kind: str, at: str, means: str) -> BoxPlant:
    return BoxPlant(CLUSTER, old, new, kind, at, means)


PLANTS = {
    "a stage counts the readers of one block": edit(
        "gg_init_barrier(empty[stage], CLUSTER * WARPS)",
        "gg_init_barrier(empty[stage], WARPS)",
        "race",
        LOAD_B,
        "clocks, accounting",
    ),
    "a stage counts the warps of one more block": edit(
        "CLUSTER * WARPS)", "(CLUSTER + 1) * WARPS)", "deadlock", "gg_try_wait", "accounting"
    ),
    "a stage released to its own block alone": edit(
        RELEASE,
        "if (thread % 32 == 0) gg_arrive_at(empty[stage], gg_cluster_rank());",
        "deadlock",
        "gg_try_wait",
        "accounting",
    ),
    "a stage released to its own block twice": edit(
        RELEASE,
        "if (thread % 32 < CLUSTER) gg_arrive_at(empty[stage], gg_cluster_rank());",
        "race",
        LOAD_B,
        "values, clocks, accounting",
    ),
    "a stage released to the first block twice": edit(
        RELEASE,
        "if (thread % 32 < CLUSTER) gg_arrive_at(empty[stage], 0);",
        "deadlock",
        "gg_try_wait",
        "clocks, accounting",
    ),
    "a stage released to a block that is not there": edit(
        RELEASE,
        "if (thread % 32 <= CLUSTER) gg_arrive_at(empty[stage], thread % 32);",
        "wrong barrier",
        "gg_arrive_at",
        "accounting",
    ),
    "a stage released before all lanes have read it": edit(
        f"__syncwarp();\n            {RELEASE}", RELEASE, "race", LOAD_B, "values, clocks"
    ),
    "a slice for its own block alone": edit(
        "column |= 1u << (m * CLUSTER_N + rank_n);",
        "column = 1u << rank;",
        "deadlock",
        "gg_try_wait",
        "accounting",
    ),
    "a slice for the other blocks alone": edit(
        "+ b_k, column);", "+ b_k, column & ~(1u << rank));", "deadlock", "", "accounting"
    ),
    "a slice for no block": edit(
        "+ b_k, column);", "+ b_k, 0);", "wrong copy", LOAD_B, "accounting"
    ),
    "a slice for a block that is not there": edit(
        "+ b_k, column);", "+ b_k, column << 1);", "wrong copy", LOAD_B, "accounting"
    ),
    "a tile that is not shared for all blocks": edit(
        "tile_k + a_k, row);",
        "tile_k + a_k, row | column);",
        "under way",
        LOAD_A,
        "clocks, accounting",
    ),
    "all blocks load one slice": edit(
        "b_k = rank_m * B_ROWS;", "b_k = 0;", "under way", LOAD_B, "values, clocks, accounting"
    ),
    "all blocks load one slice, to where theirs belongs": edit(
        "tile_k + b_k, column", "tile_k, column", "", "", "values"
    ),
    "slices of the tile in rotated order": edit(
        "tile_k + b_k, column", "tile_k + B_ROWS - b_k, column", "", "", "values"
    ),
    "the bytes of its own slice alone": edit(
        "(BM + BN) * BK * 4",
        "(BM * BK + BN * B_ROWS) * 4",
        "race",
        LOAD_B,
        "clocks, accounting",
    ),
    "the whole tile loaded by each block": edit(
        LOAD_B,
        "gg_multicast_box_2d(B_shared[stage][(b_k + B_ROWS) % BK], B, full[stage], tile_n,\n"
        "                                    tile_k + (b_k + B_ROWS) % BK, column);\n"
        f"                {LOAD_B}",
        "under way",
        LOAD_B,
        "clocks, accounting",
    ),
    "barriers not fenced": edit(
        "gg_fence_barrier_init();", "", "wrong barrier", LOAD_A, "accounting"
    ),
    "the first barrier of the cluster dropped": edit(
        START,
        "__syncthreads();\n\n    if (threadIdx.x < 32)",
        "wrong barrier",
        "",
        "clocks, accounting",
    ),
    "the last barrier of the cluster dropped": edit(
        END, "    }\n}", "block ended", "gg_arrive_at", "accounting"
    ),
    "the last barrier of the cluster is the block's": edit(
        END, "    }\n    __syncthreads();\n}", "block ended", "gg_arrive_at", "accounting"
    ),
    "blocks beyond the matrix leave": edit(
        "    gg_sync_cluster();\n\n    if (threadIdx.x < 32)",
        "    if (tile_m >= M) return;\n    gg_sync_cluster();\n\n    if (threadIdx.x < 32)",
        "block ended",
        "",
        "accounting",
    ),
    "blocks beyond the matrix leave after the first barrier": edit(
        START,
        "gg_sync_cluster();\n    if (tile_m >= M) return;\n\n    if (threadIdx.x < 32)",
        "block ended",
        "",
        "accounting",
    ),
    "an arrival that releases nothing": edit(
        "arrive.release.aligned", "arrive.relaxed.aligned", "race", "", "clocks"
    ),
    "the barrier of the cluster never waited for": edit(
        '"barrier.cluster.wait.acquire.aligned;"', '""', "wrong barrier", "", "clocks, accounting"
    ),
    "the barrier of the cluster waited for alone": edit(
        "barrier.cluster.arrive.release.aligned;\\n", "", "wrong barrier", "", "accounting"
    ),
}
