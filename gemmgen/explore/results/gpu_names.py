"""GPUs' names: a driver's ("NVIDIA H200") and those of the table of products ("H200")."""

from __future__ import annotations

from functools import lru_cache

from gemmgen.gpu.gpus import GPUS


@lru_cache(256)
def product_named(name: str) -> str:
    """The product of ``GPUS`` that a driver's name, or a product's own, is of; for one that is not
    there the name itself.  ``A100-80GB`` is "NVIDIA A100-SXM4-80GB", too."""
    short = name.replace(" ", "").lower()
    found = [x for x in GPUS if all(part in short for part in x.lower().split("-"))]
    return max(found, key=len, default=name)


def same_gpu(name: str, other: str) -> bool:
    return name == other or product_named(name) == product_named(other)
