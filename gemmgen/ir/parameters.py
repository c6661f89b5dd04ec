"""Names of the kernel's sizes and integer parameters: ``BM``, ``M``, ``lda``, ``stride_A_b``."""

from __future__ import annotations

from functools import lru_cache

from gemmgen.ir.identifiers import language_word

CONSTANTS = {
    "B": "block tile",
    "T": "micro-tile",
    "W": "warp tile",
    "P": "vector",
    "L": "lanes",
    "I": "extent of an instruction",
    "F": "number of fragments",
    "CLUSTER_": "blocks of a cluster",
}
"""First letters of the sizes that the emitted text names by role: ``BM``, ``TN``."""


@lru_cache(1024)
def extent_of(
    letter: str, tiled: tuple[str, ...], batched: tuple[str, ...], tensors: tuple[str, ...]
) -> str:
    """The kernel parameter that counts a letter's values: ``M`` of ``m``, ``size_b`` of a batch.

    Where that name is a tensor's of the ``gemm`` line, a size's or a word of C++, it is
    ``extent_m``.  Nothing but the ``gemm`` line decides, so no other statement renames a parameter.
    """
    usual = f"size_{letter}" if letter in batched else letter.upper()
    sizes = {first + other.upper() for first in CONSTANTS for other in tiled}
    return f"extent_{letter}" if usual in sizes or _is_taken(usual, tensors) else usual


def _is_taken(name: str, tensors: tuple[str, ...]) -> bool:
    return name in tensors or language_word(name) is not None


def ld_name(tensor: str) -> str:
    """The kernel parameter that is a tensor's leading dimension: ``lda`` of ``A``."""
    return "ld" + tensor.lower()


def stride_name(tensor: str, letter: str) -> str:
    """The kernel parameter that parts a tensor's matrices along a batch letter: ``stride_A_b``."""
    return f"stride_{tensor}_{letter}"


def namespace(kernel: str) -> str:
    """The namespace of a kernel's constants and functions, so that several kernels may be in one
    file."""
    return f"{kernel}_detail"
