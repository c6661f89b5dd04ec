"""The names that are derived from a schedule's own: each has one meaning in the emitted text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gemmgen.ir.identifiers import language_word
from gemmgen.ir.names import copy_tile, load
from gemmgen.ir.parameters import CONSTANTS, ld_name, namespace
from gemmgen.ir.planes import PRE_PASSES
from gemmgen.schedule.model import Access, Gemm
from gemmgen.schedule.roles import batches, extents, roles, strides

STEMS = (
    *("_shared", "_frag", "_next", "_raw", "_vector", "_ahead"),
    *(
        "_stage",
        "_next_stage",
        "_write_stage",
        "_STAGES",
        "_PAD",
        "_ATOM",
        "_ROWS",
        "_VEC",
        "_FRAG_VEC",
        "_SHARED_VEC",
    ),
    *("_STEP", "_VECTORS", "_ALONG", "_TURNS"),
    *("_map", "_BLOCKS", "_matrix"),
    *("_parts", "_parts_map", "_parts_BLOCKS", "_pitch", "_plane", "_scales"),
)
"""Suffixes of the emitted text's buffers of a tensor: ``A_shared``."""

VARIABLES = (
    *("tile", "blocks", "thread", "reg", "step", "pair", "end", "next", "round"),
    *("steps", "chunk", "start", "stop"),
    *("warp", "slice", "frag", "box"),
    *("clusters", "rank"),
    *("warpgroup", "inst", "matrix", "piece"),
)
"""Prefixes of the emitted text's variables along a letter: ``tile_k``."""

BATCHED = ("tile", "matrix_tiles")
"""Additional names of the emitted text of a kernel with batches."""

Named = tuple[str, str, tuple[str, ...]]
"""A name, its meaning, and the letters or tensors that it is derived from."""


def taken(gemm: Gemm) -> dict[str, str]:
    """The names that a checked ``gemm`` line takes, each with its meaning."""
    return {name: what for name, what, _ in _names(gemm)}


def clash(gemm: Gemm) -> tuple[str, str, str] | None:
    """A word of the ``gemm`` line that must be renamed, the name that is derived from it, and the
    other meaning of that name; None if every name has one meaning."""
    first: dict[str, Named] = {}
    for found in _names(gemm):
        name, what, words = found
        if (reason := language_word(name)) is not None:
            return _longest(words), name, reason
        if name not in first:
            first[name] = found
            continue
        _, other, rivals = first[name]
        # A word that both names are derived from is not the one to change.
        mine, its = set(words) - set(rivals), set(rivals) - set(words)
        word = _longest(mine | its or words)
        return word, name, what if word in its else other
    return None


def _longest(words: Iterable[str]) -> str:
    """The longest word, which is more likely the arbitrary one."""
    return max(sorted(words), key=len)


def _names(gemm: Gemm) -> Iterator[Named]:
    """Every name that lowering may derive from this ``gemm`` line."""
    accesses = (gemm.c, gemm.a, gemm.b)
    every = ", ".join(access.tensor for access in accesses)
    for access in accesses:
        yield access.tensor, "a tensor", (access.tensor,)
    for letter in (*roles(gemm), *batches(gemm)):
        yield letter, f"a letter of {every}", (letter,)
    for letter, name in extents(gemm).items():
        yield name, f"the extent of the letter {letter}", (letter,)
    for scale in gemm.scales:
        yield scale.tensor, f"the scales of {scale.of}", (scale.tensor,)
        for name, what in tensor_names(scale.tensor).items():
            yield name, what, (scale.tensor,)
    if batches(gemm):
        yield from ((name, "used by the emitted text", ()) for name in BATCHED)
    for access in accesses:
        follow = stride_names(access, gemm) | tensor_names(access.tensor)
        yield from ((name, what, (access.tensor,)) for name, what in follow.items())
    for letter in roles(gemm):
        yield from _letter_names(letter, tuple(access.tensor for access in accesses))


def _letter_names(letter: str, tensors: tuple[str, ...]) -> Iterator[Named]:
    """The names that are derived from a letter of a matrix."""
    for first in VARIABLES:
        yield f"{first}_{letter}", f"a variable along {letter}", (letter,)
    for first, what in CONSTANTS.items():
        name = first + letter.upper()
        yield name, f"the emitted text's name for the {what} along {letter}", (letter,)
    for tensor in tensors:
        what = f"the emitted text's name for a coordinate in a tile of {tensor}"
        yield f"{tensor}_{letter}", what, (tensor, letter)
        yield f"{tensor}_next_{letter}", what, (tensor, letter)
        yield f"{tensor}_row_{letter}", what, (tensor, letter)
        yield f"{tensor}_lane_{letter}", what, (tensor, letter)
        yield f"{tensor}_parts_{letter}", what, (tensor, letter)


def stride_names(access: Access, gemm: Gemm) -> dict[str, str]:
    """A tensor's strides along batch letters."""
    return {
        name: f"the stride of {access.tensor} along {letter}"
        for letter, name in strides(access, gemm).items()
    }


def tensor_names(tensor: str) -> dict[str, str]:
    """The names that are derived from a tensor's."""
    own = {
        ld_name(tensor): f"the leading dimension of {tensor}",
        load(tensor): f"the function that loads part of {tensor}",
        copy_tile(tensor): f"the function that copies a tile of {tensor}",
    }
    return own | {tensor + stem: f"the emitted text's name for part of {tensor}" for stem in STEMS}


def vector_names(tensor: str) -> dict[str, str]:
    """The names that are derived from that of a vector, or a scalar, of the epilogue."""
    return {f"{tensor}_frag": f"the emitted text's name for part of {tensor}"}


def kernel_names(kernel: str) -> dict[str, str]:
    """The names that a kernel takes."""
    return {
        kernel: "the kernel",
        f"launch_{kernel}": "the kernel's launcher",
        namespace(kernel): "the kernel's namespace",
        **{
            pre_pass.format(kernel=kernel): "a kernel that splits operands before it"
            for pre_pass in PRE_PASSES
        },
    }
