"""Mistakes in the use of barriers and of TMA: edits of the handwritten kernels."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BoxPlant:
    """``old`` becomes ``new`` in a kernel's text, at its ``nth`` place; a finding of ``kind`` is in
    a line that has ``at``.

    ``means`` are all those by which it is found in some order and landing: wrong ``values`` of C,
    ``clocks`` (accesses that nothing orders), or ``accounting`` (the state of barriers, of copies
    under way and of registers), which an unchecked build does too.
    """

    kernel: str
    old: str
    new: str
    kind: str
    at: str
    means: str
    nth: int = 1
    also: tuple[str, str] | None = None
    """A further edit."""


IN, OUT, RING = "copied_in", "copied_out", "ring"
WAIT_IN = "while (!gg_try_wait(full[stage], step / STAGES % 2)) {}"
FULL = "while (!gg_try_wait(full[stage], phase)) {}"
EMPTY = "while (!gg_try_wait(empty[stage], phase ^ 1)) {}"
AHEAD = "gg_load_box_2d(A_shared[stage], A, full[stage], ahead * BN, tile_m);"
READ = "= A_shared[stage][i / BN][i % BN]"
STORED = "gg_store_box_2d(C, C_shared[stage], step * BN, tile_m);"
WRITTEN = "C_shared[stage][i / BN][i % BN] ="

BARRIERS = {
    "the wait for a tile dropped": BoxPlant(
        IN, WAIT_IN, "", "not waited for", "gg_load_box_2d(", "clocks, accounting"
    ),
    "the wait for a tile asks once": BoxPlant(
        IN,
        WAIT_IN,
        "gg_try_wait(full[stage], step / STAGES % 2);",
        "under way",
        READ,
        "values, clocks, accounting",
    ),
    "the other parity waited for": BoxPlant(
        IN, "step / STAGES % 2)", "step / STAGES % 2 ^ 1)", "under way", READ, "clocks, accounting"
    ),
    "one parity waited for in all rounds": BoxPlant(
        IN, "step / STAGES % 2)", "0)", "under way", READ, "clocks, accounting"
    ),
    "the round's number for its parity": BoxPlant(
        IN, "step / STAGES % 2)", "step / STAGES)", "wrong barrier", "gg_try_wait", "accounting"
    ),
    "too few bytes expected": BoxPlant(
        IN, "BM * BN * 4", "BM * BN * 2", "deadlock", "gg_try_wait", "accounting"
    ),
    "too many bytes expected": BoxPlant(
        IN, "BM * BN * 4", "BM * BN * 8", "deadlock", "gg_try_wait", "accounting"
    ),
    "more bytes expected than can be counted": BoxPlant(
        IN, "BM * BN * 4", "1 << 20", "wrong barrier", "gg_expect_bytes", "accounting"
    ),
    "no bytes expected": BoxPlant(
        IN,
        "gg_expect_bytes(full[step], BM * BN * 4)",
        "gg_expect_bytes(full[step], 0)",
        "under way",
        READ,
        "clocks, accounting",
    ),
    "an arrival that does not come": BoxPlant(
        IN,
        "gg_init_barrier(full[stage], 1)",
        "gg_init_barrier(full[stage], 2)",
        "deadlock",
        "gg_try_wait",
        "accounting",
    ),
    "a barrier of no arrivals": BoxPlant(
        IN,
        "gg_init_barrier(full[stage], 1)",
        "gg_init_barrier(full[stage], 0)",
        "wrong barrier",
        "gg_init_barrier",
        "accounting",
    ),
    "a box loaded from within 16 bytes": BoxPlant(
        IN,
        AHEAD,
        AHEAD.replace("ahead * BN", "ahead * BN - 1"),
        "misaligned",
        "ahead * BN - 1",
        "accounting",
    ),
    "a box stored to within 16 bytes": BoxPlant(
        OUT,
        STORED,
        STORED.replace("step * BN", "step * BN + 2"),
        "misaligned",
        "step * BN + 2",
        "accounting",
    ),
    "one barrier too few initialized": BoxPlant(
        IN, "stage < STAGES", "stage < STAGES - 1", "wrong barrier", "full[", "accounting"
    ),
    "barriers initialized by every thread": BoxPlant(
        IN,
        "if (threadIdx.x == 0) {\n        for (int stage",
        "{\n        for (int stage",
        "wrong barrier",
        "gg_init_barrier",
        "accounting",
    ),
    "barriers not fenced": BoxPlant(
        IN, "gg_fence_barrier_init();", "", "wrong barrier", "gg_load_box_2d", "accounting"
    ),
    "barriers used before the threads have met": BoxPlant(
        IN, "__syncthreads();", "", "race", "gg_try_wait", "clocks, accounting"
    ),
    "the barrier after a tile is read dropped": BoxPlant(
        IN, "__syncthreads();", "", "race", AHEAD, "values, clocks, accounting", 2
    ),
    "all threads load": BoxPlant(
        IN,
        "if (threadIdx.x == 0 && ahead < steps)",
        "if (ahead < steps)",
        "wrong barrier",
        "gg_expect_bytes",
        "accounting",
    ),
    "a tile loaded to the stage that is read": BoxPlant(
        IN,
        AHEAD,
        AHEAD.replace("A_shared[stage]", "A_shared[(stage + 1) % STAGES]"),
        "under way",
        "A_shared[(stage + 1)",
        "values, clocks",
    ),
    "copies that no thread waits for": BoxPlant(
        IN, " && ahead < steps", "", "not waited for", AHEAD, "accounting"
    ),
    "a box past the end of shared memory": BoxPlant(
        IN,
        "A_shared[step], A",
        "A_shared[step + 1], A",
        "out of bounds",
        "A_shared[step + 1]",
        "accounting",
    ),
    "a box where no multiple of 128 bytes is": BoxPlant(
        IN, "A_shared[step], A", "&A_shared[step][0][4], A", "misaligned", "[0][4]", "accounting"
    ),
    "rows of a tile padded": BoxPlant(
        IN, "A_shared[STAGES][BM][BN]", "A_shared[STAGES][BM][BN + 1]", "", "", "values"
    ),
    "rows for columns": BoxPlant(IN, "step * BN, tile_m", "tile_m, step * BN", "", "", "values"),
}
STORES = {
    "a tile loaded over what threads have written": BoxPlant(
        IN,
        f"{READ};",
        f"{READ};\n            A_shared[stage][i / BN][i % BN] = 0.0f;",
        "not fenced",
        AHEAD,
        "clocks",
        also=("gg_fence_async();", ""),
    ),
    "the fence before a store dropped": BoxPlant(
        OUT, "gg_fence_async();", "", "not fenced", STORED, "clocks"
    ),
    "the fence before what it is for": BoxPlant(
        OUT,
        "gg_fence_async();",
        "",
        "not fenced",
        STORED,
        "clocks",
        also=("for (int i =", "gg_fence_async();\n        for (int i ="),
    ),
    "the barrier between fence and store dropped": BoxPlant(
        OUT, "__syncthreads();", "", "race", STORED, "values, clocks", 2
    ),
    "the wait for the store before last dropped": BoxPlant(
        OUT, "gg_await_boxes<STAGES - 1>();", "{}", "race", WRITTEN, "values, clocks"
    ),
    "one store too few waited for": BoxPlant(
        OUT,
        "gg_await_boxes<STAGES - 1>",
        "gg_await_boxes<STAGES>",
        "race",
        WRITTEN,
        "values, clocks",
    ),
    "the barrier after the wait for a store dropped": BoxPlant(
        OUT, "__syncthreads();", "", "race", WRITTEN, "values, clocks"
    ),
    "the last stores not waited for": BoxPlant(
        OUT, "gg_await_boxes<0>();", "{}", "not waited for", STORED, "accounting"
    ),
    "stores never committed": BoxPlant(
        OUT, "gg_commit_boxes();", "", "not waited for", STORED, "clocks, accounting"
    ),
    "a store shifted by a column": BoxPlant(
        OUT,
        "step * BN, tile_m);",
        "step * BN + 1, tile_m);",
        "misaligned",
        "gg_store_box_2d",
        "accounting",
    ),
}
ROLES = {
    "the wait for an empty stage dropped": BoxPlant(
        RING, EMPTY, "", "wrong barrier", "gg_expect_bytes", "accounting"
    ),
    "the parity of an empty stage": BoxPlant(
        RING, "phase ^ 1)", "phase)", "deadlock", "gg_try_wait", "accounting"
    ),
    "the wait for a full stage dropped": BoxPlant(
        RING, FULL, "", "under way", "acc[i] = fmaf", "clocks, accounting"
    ),
    "the parity of a full stage": BoxPlant(
        RING,
        FULL,
        FULL.replace("phase", "phase ^ 1"),
        "under way",
        "acc[i] = fmaf",
        "clocks, accounting",
    ),
    "a stage released before it is read": BoxPlant(
        RING,
        "gg_arrive(empty[stage]);",
        "",
        "race",
        "gg_load_box_2d",
        "values, clocks",
        also=(FULL, f"{FULL}\n            gg_arrive(empty[stage]);"),
    ),
    "reads that TMA may overtake": BoxPlant(
        RING, "gg_fence_async();", "", "not fenced", "gg_load_box_2d", "clocks"
    ),
    "reads before a barrier that TMA may overtake": BoxPlant(
        IN, "gg_fence_async();", "", "not fenced", AHEAD, "clocks"
    ),
    "a stage that half of its readers release": BoxPlant(
        RING,
        "gg_init_barrier(empty[stage], CONSUMERS)",
        "gg_init_barrier(empty[stage], CONSUMERS / 2)",
        "race",
        "gg_load_box_2d",
        "clocks, accounting",
    ),
    "a stage that waits for the producers too": BoxPlant(
        RING,
        "gg_init_barrier(empty[stage], CONSUMERS)",
        "gg_init_barrier(empty[stage], THREADS)",
        "deadlock",
        "gg_try_wait",
        "accounting",
    ),
    "a stage never released": BoxPlant(
        RING, "gg_arrive(empty[stage]);", "", "deadlock", "gg_try_wait", "accounting"
    ),
    "the bytes of one of two tiles": BoxPlant(
        RING,
        "(BM + BN) * BK * 4",
        "BM * BK * 4",
        "under way",
        "acc[i] = fmaf",
        "clocks, accounting",
    ),
    "the stage of B off by one": BoxPlant(
        RING, "B_shared[stage][k]", "B_shared[(stage + 1) % STAGES][k]", "", "", "values, clocks"
    ),
    "the producer's phase never flips": BoxPlant(
        RING, "phase ^= 1;", "", "wrong barrier", "gg_expect_bytes", "accounting"
    ),
    "the consumers' phase never flips": BoxPlant(
        RING, "phase ^= 1;", "", "under way", "acc[i] = fmaf", "clocks, accounting", 2
    ),
    "all threads of the producer load": BoxPlant(
        RING,
        "if (threadIdx.x == 0) {\n            int stage",
        "{\n            int stage",
        "wrong barrier",
        "gg_expect_bytes",
        "accounting",
    ),
    "the producer keeps its registers": BoxPlant(
        RING, "gg_fewer_registers<40>();", "", "deadlock", "gg_more_registers", "accounting"
    ),
    "more registers than there are": BoxPlant(
        RING,
        "gg_more_registers<208>",
        "gg_more_registers<224>",
        "deadlock",
        "gg_more",
        "accounting",
    ),
    "a warp of the producer keeps its registers": BoxPlant(
        RING,
        "gg_fewer_registers<40>();",
        "if (threadIdx.x < 96) gg_fewer_registers<40>();",
        "deadlock",
        "gg_more_registers",
        "accounting",
    ),
    "more registers by the instruction for fewer": BoxPlant(
        RING,
        "gg_more_registers<208>",
        "gg_fewer_registers<208>",
        "wrong registers",
        "<208>",
        "accounting",
    ),
}
PLANTS = BARRIERS | STORES | ROLES


def planted(text: str, plant: BoxPlant) -> str:
    parts = text.split(plant.old)
    assert len(parts) > plant.nth, plant.old
    before, after = plant.old.join(parts[: plant.nth]), plant.old.join(parts[plant.nth :])
    changed = before + plant.new + after
    if plant.also is not None:
        assert changed.count(plant.also[0]) == 1
        changed = changed.replace(*plant.also)
    return changed
