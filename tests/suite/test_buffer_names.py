"""A buffer's name is for people: its role and its tensor are fields, and no suffix of a name
decides anything."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from gemmgen.base.source import Source
from gemmgen.ir.buffers import Space
from gemmgen.ir.nodes import Program
from gemmgen.ir.text import parse_ir, print_ir
from gemmgen.ir.validate import verify
from gemmgen.language import parse_schedule
from gemmgen.pipeline import make_concrete, rewrite

ROOT = Path(__file__).parents[2]
SCHEDULES = (
    *("tiled", "vectorized", "double_buffered", "fused", "split_k", "warp_tiled"),
    *("hopper/wgmma", "hopper/warp_specialized", "hopper/tma_store"),
    *("hopper/split_f32", "hopper/promote", "tensor_core", "matvec", "staged_output"),
)
NAMES = {
    "gemmgen/passes/cache_shared.py",
    "gemmgen/passes/fragments.py",
    "gemmgen/passes/scales_in_ring.py",
    "gemmgen/passes/split_in_memory.py",
    "gemmgen/passes/tensor_core.py",
    # Registers of what an epilogue reads, which are not buffers.
    "gemmgen/lower/epilogue.py",
    # Registers of factors, which are none of the declared program.
    "gemmgen/lower/scale_fragments.py",
    # What a schedule can't name otherwise.
    "gemmgen/schedule/reserved.py",
}
"""Files that give names."""


@cache
def program(name: str) -> Program:
    path = ROOT / "examples" / f"{name}.sched"
    return rewrite(parse_schedule(Source(path.read_text(encoding="utf-8"), name)))[-1].program


def suffixes() -> set[str]:
    """What is added to the name of a tensor, in the examples, to name a buffer of it."""
    buffers = (b for name in SCHEDULES for kernel in program(name).kernels for b in kernel.buffers)
    return {b.name.removeprefix(b.of) for b in buffers if b.of}


def docstrings(tree: ast.AST) -> set[int]:
    """The identities of nodes that are docstrings."""
    bodies = (node.body for node in ast.walk(tree) if isinstance(getattr(node, "body", None), list))
    statements = (s for body in bodies for s in body if isinstance(s, ast.Expr))
    return {id(s.value) for s in statements}


@pytest.mark.proof
def test_a_suffix_is_written_only_where_a_buffer_is_named() -> None:
    ends = tuple(suffixes())
    assert {"_shared", "_frag", "_parts"} <= {*ends}
    found: set[str] = set()
    folders = (ROOT / name for name in ("gemmgen", "docs", "benchmarks"))
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if not any(end in source for end in ends):
            continue
        tree = ast.parse(source)
        described = docstrings(tree)
        for node in ast.walk(tree):
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and id(node) not in described and text.startswith(ends):
                found.add(path.relative_to(ROOT).as_posix())
    assert found - NAMES == set()


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_kernel_whose_buffers_have_other_names_is_lowered_to_the_same(name: str) -> None:
    before = program(name)
    buffers = [b for kernel in before.kernels for b in kernel.buffers]
    given = sorted(b.name for b in buffers if b.of and b.space is not Space.GLOBAL)
    others = {old: f"own{number}" for number, old in enumerate(given)}
    renamed = parse_ir(_replaced(print_ir(before), others), Program)
    verify(renamed)
    lowered = print_ir(make_concrete(renamed))
    assert not re.search(rf"\b({'|'.join(given)})\b", lowered) or not given
    back = {new: old for old, new in others.items()}
    assert _replaced(lowered, back) == print_ir(make_concrete(before))


def _replaced(text: str, names: dict[str, str]) -> str:
    return re.sub(rf"\b({'|'.join(names)})\b", lambda found: names[found[0]], text)
