"""Mistakes in multiplications by warpgroups: edits of the handwritten kernels."""

from __future__ import annotations

from box_plants import BoxPlant
from warpgroup_kernels import COPIED, TRANSPOSED, WRITTEN

FENCE = "gg_wgmma_fence();"
COMMIT = "gg_wgmma_commit();"
WAIT = "gg_wgmma_wait<1>();"
END = "gg_wgmma_end(acc);"
MULTIPLY = "gg_wgmma_m64n32k16_bf16(acc"
MULTIPLY_TRANSPOSED = "gg_wgmma_m64n64k16_bf16_mn_major_ab(acc"
FULL = "while (!gg_try_wait(full[stage], phase)) {}"
RELEASE = "if (tile_k > 0) gg_arrive(empty[before]);"
LOAD = "gg_load_box_2d("
OF_A, OF_B = "A_shared[stage][m]", "B_shared[stage][n]"
WRONG = "wrong multiplication"

GROUPS = {
    "the fence dropped": BoxPlant(WRITTEN, FENCE, "", WRONG, MULTIPLY, "accounting"),
    "the fence after the multiplications": BoxPlant(
        WRITTEN, FENCE, "", WRONG, MULTIPLY, "accounting", also=(COMMIT, f"{FENCE} {COMMIT}")
    ),
    "accumulators set while they are summed": BoxPlant(
        WRITTEN, FENCE, f"{FENCE} acc[1][3] = 1.0f;", WRONG, MULTIPLY, "accounting"
    ),
    "the commit dropped": BoxPlant(WRITTEN, COMMIT, "", WRONG, MULTIPLY, "clocks, accounting"),
    "the commit before the multiplications": BoxPlant(
        WRITTEN,
        COMMIT,
        "",
        WRONG,
        MULTIPLY,
        "clocks, accounting",
        also=(FENCE, f"{COMMIT} {FENCE}"),
    ),
    "the end dropped": BoxPlant(WRITTEN, END, "", WRONG, MULTIPLY, "accounting"),
    "the end waits for all groups but one": BoxPlant(
        WRITTEN, END, WAIT, WRONG, MULTIPLY, "accounting"
    ),
    "accumulators read without their names": BoxPlant(
        WRITTEN, END, "gg_wgmma_wait<0>();", "", "", "values"
    ),
    "accumulators read before the end": BoxPlant(
        WRITTEN,
        END,
        "const float sum = acc[0][0];",
        "",
        "",
        "values",
        also=("= acc[i][j];", f"= sum; {END}"),
    ),
    "a stage written while it is read": BoxPlant(
        WRITTEN, WAIT, "gg_wgmma_wait<2>();", "race", OF_A, "values, clocks"
    ),
    "the wait in the loop dropped": BoxPlant(WRITTEN, WAIT, "", "race", OF_B, "values, clocks"),
    "each tile begins new accumulators": BoxPlant(
        WRITTEN, "tile_k + k > 0", "k > 0", "", "", "values"
    ),
    "a warp does not take part": BoxPlant(
        WRITTEN,
        MULTIPLY,
        f"if (thread >= 32) {MULTIPLY}",
        "deadlock",
        "gg_wgmma_",
        "clocks, accounting",
    ),
    "a lane does not take part": BoxPlant(
        WRITTEN, MULTIPLY, f"if (thread != 70) {MULTIPLY}", "divergent warp", MULTIPLY, "accounting"
    ),
    "a warp does not commit": BoxPlant(
        WRITTEN, COMMIT, f"if (thread < 96) {COMMIT}", WRONG, MULTIPLY, "clocks, accounting"
    ),
    "warps with their own groups": BoxPlant(
        WRITTEN, COMMIT, f"if (thread < 32) {COMMIT} {COMMIT}", WRONG, COMMIT, "accounting"
    ),
    "a warp that does not accumulate": BoxPlant(
        WRITTEN, "tile_k + k > 0", "tile_k + k > thread / 96 * 16", WRONG, MULTIPLY, "accounting"
    ),
    "descriptors that differ between warps": BoxPlant(
        WRITTEN, "a + k * 2 / 16", "a + thread / 32 * 128", WRONG, MULTIPLY, "clocks, accounting"
    ),
}
OPERANDS = {
    "operands written without a fence": BoxPlant(
        WRITTEN, "gg_fence_async();", "", "not fenced", MULTIPLY, "clocks"
    ),
    "the fence of operands after the barrier": BoxPlant(
        WRITTEN,
        "gg_fence_async();",
        "",
        "not fenced",
        MULTIPLY,
        "clocks",
        also=("__syncthreads();", "__syncthreads(); gg_fence_async();"),
    ),
    "the barrier before the multiplications dropped": BoxPlant(
        WRITTEN, "__syncthreads();", "", "race", MULTIPLY, "clocks"
    ),
    "a tile that is not swizzled": BoxPlant(WRITTEN, "[k ^ m % 8 * 8]", "[k]", "", "", "values"),
    "a descriptor of another swizzle": BoxPlant(
        WRITTEN,
        "gg_matrix_128B(A",
        "(1ULL << 62) + gg_matrix_128B(A",
        "misaligned",
        MULTIPLY,
        "accounting",
    ),
    "half of the bytes of a step along k": BoxPlant(
        WRITTEN, "a + k * 2 / 16", "a + k / 16", "", "", "values"
    ),
    "a step along k past the row's end": BoxPlant(
        WRITTEN, "b + k * 2 / 16", "b + k * 2 / 16 + 1", "misaligned", MULTIPLY, "accounting"
    ),
    "a tile that begins with its second row": BoxPlant(
        WRITTEN,
        "gg_matrix_128B(B_shared[stage])",
        "gg_matrix_128B(B_shared[stage][1])",
        "misaligned",
        MULTIPLY,
        "accounting",
    ),
    "a descriptor with bits that have no meaning": BoxPlant(
        WRITTEN, "a + k * 2 / 16", "a + k * 2 / 16 + (1 << 14)", WRONG, MULTIPLY, "accounting"
    ),
    "a tile past the end of shared memory": BoxPlant(
        WRITTEN,
        "a + k * 2 / 16",
        "a + k * 2 / 16 + (1 << 13)",
        "out of bounds",
        MULTIPLY,
        "accounting",
    ),
    "operands exchanged": BoxPlant(
        WRITTEN,
        "a + k * 2 / 16, b + k * 2 / 16",
        "b + k * 2 / 16, a + k * 2 / 16",
        "",
        "",
        "values, clocks",
    ),
    "the stage of b off by one": BoxPlant(
        WRITTEN, "(B_shared[stage])", "(B_shared[stage ^ 1])", "race", MULTIPLY, "values, clocks"
    ),
    "halves of the accumulators exchanged": BoxPlant(
        WRITTEN, "acc[0], acc[1]", "acc[1], acc[0]", "", "", "values"
    ),
}
RING = {
    "the wait for a full stage dropped": BoxPlant(
        COPIED, FULL, "", "under way", MULTIPLY, "clocks, accounting"
    ),
    "one warp of four waits for a full stage": BoxPlant(
        COPIED, FULL, f"if (thread < 32) {FULL}", "under way", MULTIPLY, "clocks"
    ),
    "the parity of a full stage": BoxPlant(
        COPIED,
        FULL,
        FULL.replace("phase", "phase ^ 1"),
        "under way",
        MULTIPLY,
        "clocks, accounting",
    ),
    "a stage released before it is read": BoxPlant(
        COPIED, RELEASE, "gg_arrive(empty[stage + 0 * before]);", "race", LOAD, "values, clocks"
    ),
    "a stage released by one warpgroup of two": BoxPlant(
        COPIED,
        "gg_init_barrier(empty[stage], CONSUMERS)",
        "gg_init_barrier(empty[stage], 128)",
        "race",
        LOAD,
        "values, clocks, accounting",
    ),
    "the wait before the release dropped": BoxPlant(
        COPIED, WAIT, "", "race", LOAD, "values, clocks"
    ),
    "the first rows for both warpgroups": BoxPlant(
        COPIED, "[consumer * 64]", "[0]", "", "", "values"
    ),
    "columns of b as far apart as those of a": BoxPlant(
        COPIED, "BN * 16)", "BM * 16)", "", "", "values, clocks"
    ),
    "steps of a as long as those of b": BoxPlant(
        COPIED, "k * 2 * BM / 16", "k * 2 * BN / 16", "", "", "values"
    ),
    "the bytes of one of two operands": BoxPlant(
        COPIED, "(BM + BN) * BK * 2", "BM * BK * 2", "under way", MULTIPLY, "clocks, accounting"
    ),
}
ALONG = {
    "atom columns as far apart as rows": BoxPlant(
        TRANSPOSED, "A_shared[stage], BK * SPAN", "A_shared[stage], SPAN", "", "", "values"
    ),
    "atom columns after shared memory": BoxPlant(
        TRANSPOSED,
        "B_shared[stage], BK * SPAN",
        "B_shared[stage], BK * SPAN * 8",
        "out of bounds",
        MULTIPLY_TRANSPOSED,
        "accounting",
    ),
    "steps along k of one row": BoxPlant(
        TRANSPOSED,
        "a + k * SPAN / 16",
        "a + k * 2 / 16",
        "misaligned",
        MULTIPLY_TRANSPOSED,
        "accounting",
    ),
    "an operand that is not transposed": BoxPlant(
        TRANSPOSED, "more, 1, 1, 1, 1;", "more, 1, 1, 1, 0;", "", "", "values, clocks"
    ),
    "operands that are not swizzled": BoxPlant(
        TRANSPOSED,
        "[m % W ^ swizzle]",
        "[(m % W ^ swizzle) - (m % W ^ swizzle) + m % W]",
        "",
        "",
        "values",
    ),
    "the swizzle of rows of 128 bytes": BoxPlant(
        TRANSPOSED, "k * SPAN / 128 % (SPAN / 16) * 8;", "k % (SPAN / 16) * 8;", "", "", "values"
    ),
    "a fence for half of the operands": BoxPlant(
        TRANSPOSED,
        "gg_fence_async();",
        "if (thread < 64) gg_fence_async();",
        "not fenced",
        MULTIPLY_TRANSPOSED,
        "clocks",
    ),
}
PLANTS = GROUPS | OPERANDS | RING | ALONG
