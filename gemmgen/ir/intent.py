"""The intent of a schedule: what a pass must know of a directive that is not its own.

``build`` sets it once and no pass changes it, so that a pass is a function of the program and of
its own directive: a program that was read from text can be compiled further.
"""

from __future__ import annotations

from gemmgen.base.record import record
from gemmgen.ir.atoms import Via


@record
class Intent:
    """What directives state; a field at its default if the directive is left out."""

    bound: str | None = None
    """The letter that ``bind`` gives to x."""
    micro_tile: tuple[tuple[str, int], ...] = ()
    """The sizes of ``register_block``."""
    via: Via | None = None
    """The instruction of ``tensor_core``."""
    fragment_widths: tuple[tuple[str, int], ...] = ()
    """Elements at once of ``vectorize`` from shared memory to fragments, by tensor."""
    swizzled: tuple[str, ...] = ()
    """Tensors of ``swizzle``."""
    staged: tuple[str, ...] = ()
    """Tensors whose tiles ``double_buffer`` gives several stages."""
    copied: tuple[tuple[str, str], ...] = ()
    """How ``async_copy`` copies tiles, by tensor."""
    k_lanes: bool = False
    """Whether lanes of a warp split k (``split_k within=warp``)."""
    k_reads: tuple[tuple[str, int, str], ...] = ()
    """What those lanes read along k, straight from global memory: a tensor, elements at once, and
    the statement of ``vectorize``."""
