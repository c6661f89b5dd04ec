"""Each pass's docstring shows the program before ==> directive, and after: that is what the pass
does, and both programs compute the same."""

from __future__ import annotations

import importlib

import pytest

from gemmgen.ir.text import print_ir
from gemmgen.passes.ladder import LADDER
from passes.equality import difference
from passes.excerpts import missing
from passes.test_cases import rewritten

NAMES = (*(rung.SPEC.name for rung in LADDER), "fuse_epilogue")

GIVEN: dict[str, list[str]] = {
    "bind": [],
    "tile": [],
    "cache_shared": ["tile m=16 n=16 k=8"],
    "warp_tile": ["tile m=64 n=64 k=8", "register_block m=4 n=4"],
    "register_block": ["tile m=16 n=16"],
    "tensor_core": [
        "dtype A=f16 B=f16",
        "tile m=32 n=32 k=16",
        "cache_shared A B",
        "warp_tile m=16 n=32",
    ],
    "vectorize": ["tile m=16 n=16 k=8", "cache_shared A[k, m]", "register_block m=4 n=4"],
    "pad": ["tile m=16 n=16 k=8", "cache_shared A[k, m]"],
    "swizzle": ["tile m=64 n=16 k=16", "cache_shared A[k, m]", "register_block m=4 n=4"],
    "double_buffer": ["tile m=16 n=16 k=8", "cache_shared A[k, m]"],
    "async_copy": ["tile m=16 n=16 k=8", "cache_shared A[k, m]", "double_buffer A"],
    "residue": ["tile m=16 n=16 k=16", "cache_shared A B", "double_buffer A B"],
    "unroll": ["tile m=16 n=16 k=8"],
    "launch_bounds": ["tile m=16 n=16"],
    "raster": ["tile m=16 n=16"],
    "persistent": ["tile m=16 n=16"],
    "warp_specialize": [
        "target sm_90a",
        "tile m=32 n=32 k=16",
        "cache_shared A B",
        "register_block m=4 n=2",
        "double_buffer A B",
        "async_copy A B via=tma",
    ],
    "split_k": ["tile m=16 n=16 k=8"],
    "fuse_epilogue": [],
}
"""What each docstring takes for granted."""


@pytest.mark.parametrize("name", NAMES)
def test_shows_what_the_pass_does(name: str) -> None:
    doc = importlib.import_module(f"gemmgen.passes.{name}").__doc__
    assert doc is not None and doc.startswith(f"{name}: ")
    before, directive, after = example(doc)
    assert directive.split()[0] == name
    programs = rewritten([*GIVEN[name], directive], name)
    given, made = map(print_ir, programs)
    bare = [without_origins(line) for line in before]
    assert missing(bare, "\n".join(map(without_origins, given.splitlines()))) is None, given
    assert missing(bare_but_own(after, directive), bare_text(made, directive)) is None, made
    assert difference(*programs) is None


def example(doc: str) -> tuple[list[str], str, list[str]]:
    """The lines before, the directive, the lines after."""
    (arrow,) = (line for line in doc.splitlines() if line.startswith("==> "))
    above, below = doc.split(arrow + "\n")
    before = above.split("\n\n")[-1]
    return before.splitlines(), arrow.removeprefix("==> "), below.splitlines()


def without_origins(line: str) -> str:
    return line.split("   # ")[0]


def bare_but_own(lines: list[str], directive: str) -> list[str]:
    """The lines, with those origins alone that are the directive shown."""
    return [own(line, directive) for line in lines if line.strip()]


def own(line: str, directive: str) -> str:
    text, _, origins = line.partition("   # ")
    return f"{text}   # {directive}" if directive in origins.split("; ") else text


def bare_text(text: str, directive: str) -> str:
    return "\n".join(own(line, directive) for line in text.splitlines())
