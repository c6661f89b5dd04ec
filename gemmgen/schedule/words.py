"""The words of the language beside its directives, and the names people bring from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from gemmgen.ir.dtypes import DType

DEFAULT_TARGET = "sm_80"
TARGETS = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_120")
DTYPES: tuple[DType, ...] = ("f32", "f64", "f16", "bf16")
_DTYPES_ELSEWHERE = (
    ("f32", "float float32 fp32 single s sgemm binary32"),
    ("f64", "double float64 fp64 d dgemm binary64"),
    ("f16", "half float16 fp16 h hgemm __half half_t binary16"),
    ("bf16", "bfloat16 bfloat nv_bfloat16 __nv_bfloat16 bfloat16_t b16"),
)
DTYPES_ELSEWHERE = {name: meant for meant, names in _DTYPES_ELSEWHERE for name in names.split()}
DTYPES_LATER = (
    ("tf32 tfloat32 fp32_tf32", "A=f32 B=f32 are multiplied with all their digits"),
    (
        "fp8 f8 e4m3 e5m2 f8e4m3 f8e5m2 f8e4m3fn float8 float8_e4m3 float8_e4m3fn float8_e5m2 fp4",
        "f16 and bf16 are the smallest types",
    ),
    (
        "int8 i8 s8 uint8 u8 int4 i4 int16 i16 int32 i32 int64 i64 int",
        "f16 holds the integers up to 2,048 and sums in f32 those up to 16,777,216 exactly",
    ),
)
"""Types that a version may lack, and what there is instead."""

HEADS = ("gemm", "kernel", "dtype", "target", "assume", "require", "let")
"""The statements that are no directive, in the order in which a canonical text has them."""
EPILOGUE = "fuse_epilogue"

QUANTITIES = ("shared", "threads", "registers", "spills")
UNITS = {"B": 1, "KiB": 1024}

EXAMPLES = {
    "gemm": "gemm C[m, n] = A[m, k] * B[k, n]",
    "kernel": "kernel my_gemm",
    "dtype": "dtype A=f16 B=f16 C=f32 acc=f32",
    "target": f"target {DEFAULT_TARGET}",
    "assume": "assume N % 4 == 0",
    "require": "require shared <= 48KiB",
    "let": "let t = {64, 128}",
    "bind": "bind x=n",
    "tile": "tile m=128 n=128 k=8",
    "cache_shared": "cache_shared A[k, m] B",
    "warp_tile": "warp_tile m=64 n=32",
    "register_block": "register_block m=8 n=8",
    "tensor_core": "tensor_core via=wmma",
    "vectorize": "vectorize A B C width=4",
    "pad": "pad A by=4",
    "swizzle": "swizzle A by=4 every=4 chunk=8",
    "double_buffer": "double_buffer A B",
    "async_copy": "async_copy A B via=cp_async",
    "residue": "residue k=first",
    "unroll": "unroll k=4",
    "launch_bounds": "launch_bounds blocks=2",
    "raster": "raster group=8",
    "split_k": "split_k parts=4",
    EPILOGUE: "fuse_epilogue relu(acc + bias[n])",
}
"""What a statement looks like, for hints."""

LATER = {
    "persistent": "remove the line: a block computes one tile",
    "cluster": "remove the line: blocks run one by one; `raster group=8` keeps neighbours together",
    "warp_specialize": "`double_buffer A B` overlaps copies and arithmetic within each warp",
}
"""Directives of the design that a version may lack, and what to do without each."""

_ELSEWHERE = (
    (
        "cache_shared",
        "TVM cache_read, Exo stage_mem",
        "cache_read stage_mem read_at copy_to_shared add_prefetch promote alloc_shared set_memory"
        " bufferize_to_allocation cache_local shared smem shared_memory cache sa sb",
    ),
    (
        "register_block",
        "TVM cache_write, CUTLASS thread tile, CLBlast MDIMC",
        "cache_write alloc_fragment copy_to_registers thread_tile micro_tile microtile upcast"
        " unroll_buffer register_tile mdimc ndimc blockwise thread_block_tile",
    ),
    (
        "tile",
        "Halide tile, Triton BLOCK_M, CUTLASS threadblock tile, Kernel Tuner block_size_x",
        "split divide_loop split_iname gpu_tile tile_loops tile_loops_bottom_up block_sizes"
        " tile_using_for tile_using_forall tile_by_index shift_to block_tile threadblock"
        " threadblock_tile cta_tile tile_sizes block_m block_n block_k block_size_x block_size_y"
        " tile_size_x tile_size_y mwg nwg kwg block",
    ),
    ("warp_tile", "CUTLASS warp tile", "warptile warp_shape warps num_warps warp"),
    (
        "vectorize",
        "TVM vectorize, loopy tag vec, CLBlast VWM",
        "vec vectorise vector coalesced_width alignment float4 vwm vwn vector_width",
    ),
    (
        "pad",
        "TVM storage_align, Halide align_storage, CUDA-CHiLL add_padding",
        "storage_align align_storage bound_storage resize_dim add_padding padding padto pad_shared",
    ),
    (
        "double_buffer",
        "TVM software_pipeline, Halide ring_buffer, Triton num_stages",
        "software_pipeline software_pipeline_stage double_buffer_scope ring_buffer pipelined"
        " pipeline num_stages stages multibuffer range_multi_buffers fold_storage expand_dim"
        " prefetch multi_buffer",
    ),
    (
        "bind",
        "TVM bind, Halide gpu_threads, CUDA-CHiLL cudaize",
        "gpu_blocks gpu_threads gpu_lanes cudaize map_forall_to_blocks coalesce"
        " map_nested_forall_to_threads reorder permute interchange reorder_loops loop_orders",
    ),
    (
        "raster",
        "TileLang use_swizzle, Triton GROUP_SIZE_M, CUTLASS raster_order",
        "use_swizzle group_size_m l2_groupings raster_order threadblock_swizzle group_m",
    ),
    (
        EPILOGUE,
        "TVM reverse_compute_inline, CUTLASS epilogue",
        "reverse_compute_inline reverse_compute_at fuse_reduction_epilogue compute_at"
        " compute_inline fuse_into_containing_op fuse_kernels fuse epilogue evt activation bias",
    ),
    ("tensor_core", "TVM tensorize, tinygrad TC", "blockize tensorize tc wmma mma wgmma mma_sync"),
    ("swizzle", "TVM transform_layout", "transform_layout reorder_storage annotate_layout"),
    (
        "async_copy",
        "TVM software_pipeline_async_stages, TileLang tma_copy",
        "software_pipeline_async_stages cp_async tma tma_copy create_async_groups async",
    ),
    (
        "split_k",
        "TVM rfactor, CUTLASS split_k_slices",
        "rfactor split_reduction split_k_slices splitk grouptop split_reduction_outward",
    ),
    ("residue", "CUTLASS residue tile", "residue_first peel peel_loop loop_partition remainder"),
    ("unroll", "Exo unroll_loop, CLBlast KWI", "unroll_loop unr ilp kwi"),
    ("cluster", "CUTLASS cluster shape", "cluster_shape"),
    (
        "launch_bounds",
        "CUDA minBlocksPerMultiprocessor, Numba max_registers",
        "min_blocks minblocks min_blocks_per_multiprocessor maxrregcount max_registers occupancy",
    ),
    ("warp_specialize", "CUTLASS pingpong", "pingpong warp_specialized kernel_schedule"),
    ("gemm", "einsum, matmul", "matmul einsum compute mm gemv contract algorithm"),
    ("require", "Kernel Tuner restrictions", "restrictions constraint limit assert"),
    ("target", "--arch", "arch sm gpu"),
    ("kernel", "a kernel's name", "name function"),
    ("dtype", "a tensor's type", "type types accumulate accumulator acc"),
)
_MEANT = {name: (meant, at) for meant, at, names in _ELSEWHERE for name in names.split()}

_ARGUMENTS = (
    {
        "num_stages": "stages",
        "stage": "stages",
        "depth": "stages",
        "factor": "width",
        "vec": "width",
        "vector": "width",
        "lanes": "width",
        "vector_width": "width",
        "padding": "by",
        "offset": "by",
        "amount": "by",
        "group_size_m": "group",
        "panel_size": "group",
        "size": "group",
        "parts": "interleave",
        "pieces": "interleave",
        "block_size_x": "<n>",
        "block_size_y": "<m>",
        "tile_size_x": "<n>",
        "tile_size_y": "<m>",
        "x": "<n>",
        "y": "<m>",
    }
    | {
        prefix + role: f"<{role}>"
        for role in "mnk"
        for prefix in ("", "b", "t", "w", "block_", "tile_", "block_size_", "size_")
    }
    | {f"{role}{suffix}": f"<{role}>" for role in "mnk" for suffix in ("wg", "dimc", "_tile")}
)
"""Arguments elsewhere; the roles stand for this schedule's letters."""


def close(word: str, known: Iterable[str]) -> str | None:
    """The known word that a misspelt one most resembles."""
    by_lower = {name.lower(): name for name in known}
    found = get_close_matches(word.lower()[:64], by_lower, n=1, cutoff=0.7)
    return by_lower[found[0]] if found else None


def statement_meant(word: str, known: Iterable[str]) -> str | None:
    """The hint for an unknown first word of a statement, if there is one."""
    if word.lower() in _MEANT:
        meant, at = _MEANT[word.lower()]
        return f"did you mean `{meant}`? ({at})"
    near = close(word, known)
    return f"did you mean `{near}`?" if near else None


def argument_meant(word: str, known: dict[str, str]) -> str | None:
    """The known argument that ``word`` stands for; ``known`` maps a spec's names to those here."""
    there = known.get(_ARGUMENTS.get(word.lower(), ""))
    return there or close(word, known.values())
