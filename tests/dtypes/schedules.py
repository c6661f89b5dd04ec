"""Schedules and the types that they are tried with."""

from __future__ import annotations

BLOCKED = "tile m=32 n=64 k=16\ncache_shared A[k, m] B[k, n]\nregister_block m=8 n=8\n"
SCHEDULES = {
    "naive": "",
    "tiled": "tile m=16 n=32 k=8\ncache_shared A[k, m] B[k, n]\npad A by=1\n",
    "register_blocked": BLOCKED + "double_buffer A B\n",
    "wide": BLOCKED + "vectorize A B C width={w}\ndouble_buffer A B A.register B.register\n",
    "straight to fragments": "gemm C[m, n] = A[k, m] * B[k, n]\ntile m=64 n=64 k=4\n"
    "register_block m=8 n=8\nvectorize A B width={w}\n",
    "asynchronous": "tile m=32 n=64 k=16\ncache_shared A B\nregister_block m=8 n=8\n"
    "vectorize A.global B.global width={w}\ndouble_buffer A B stages=3\n"
    "async_copy A B via=cp_async\n",
    "epilogue": BLOCKED + "vectorize C width={w}\n"
    "fuse_epilogue silu(acc * gain + bias[n]) + residual[m, n] * beta + m\n",
}
"""``{w}`` is a width, in elements, that every type of the schedule allows."""

TYPES = {
    "f64": ("dtype A=f64 B=f64 C=f64 acc=f64", 2),
    "f16": ("dtype A=f16 B=f16 C=f16 acc=f32", 8),
    "bf16 to f32": ("dtype A=bf16 B=bf16 C=f32", 4),
    "bf16": ("dtype A=bf16 B=bf16 C=bf16", 8),
    "f16 times bf16": ("dtype A=f16 B=bf16 C=f16", 8),
    "f16 times f32": ("dtype A=f16", 4),
    "f32 to bf16": ("dtype C=bf16", 4),
    "i8": ("dtype i8", 4),
    "i8 to f32": ("dtype A=i8 B=i8", 4),
    "i8 to i8": ("dtype A=i8 B=i8 C=i8", 8),
    "e4m3": ("target sm_89\ndtype e4m3", 4),
    "e5m2 to f16": ("target sm_89\ndtype A=e5m2 B=e5m2 C=f16", 8),
    "e4m3 to e5m2": ("target sm_89\ndtype A=e4m3 B=e4m3 C=e5m2", 8),
    "e5m2 to e4m3": ("target sm_89\ndtype A=e4m3 B=e5m2 C=e4m3", 8),
    "i8 times f16": ("dtype A=i8 B=f16", 4),
}
"""The statement, and the widest access that all operands can have."""

EVERY = [(schedule, types) for schedule in SCHEDULES for types in TYPES]
SOME = [
    (schedule, list(TYPES)[(at + turn) % len(TYPES)])
    for at, schedule in enumerate(SCHEDULES)
    for turn in (0, 2, 4)
]
"""Each schedule with three of the types, and each type in three schedules."""


def text(schedule: str, types: str) -> str:
    """The schedule's text; an epilogue's bias is f32 if the other tensors are halves."""
    stated, width = TYPES[types]
    if schedule == "epilogue" and types != "f64":
        stated += " bias=f32"
    lines = SCHEDULES[schedule].format(w=width)
    if types == "i8":
        stated = stated.removesuffix(" bias=f32")
        lines = lines.replace("silu", "relu")
    return f"{stated}\n{lines}"
