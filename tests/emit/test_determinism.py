"""The same facts give the same bytes, however and wherever they are written."""

from __future__ import annotations

import hashlib
import itertools
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from pipeline.running import EXAMPLES, NAMES, emitted, example

from gemmgen.base.source import Source
from gemmgen.language import parse_schedule
from gemmgen.pipeline import compile_schedule, compile_source

ROOT = Path(__file__).parents[2]
SEVEN = (
    "tile            m=128 n=128 k=8",
    "cache_shared    A[k, m] B[k, n]",
    "register_block  m=8 n=8",
    "vectorize       A B C width=4",
    "pad             A by=4",
    "double_buffer   A B",
    "fuse_epilogue   relu(acc + bias[n])",
)
"""The seven words, a whole file."""

PROGRAM = """
import hashlib, pathlib, sys
from gemmgen.pipeline import compile_source
from gemmgen.base.source import Source
digest = hashlib.sha256()
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.sched")):
    digest.update(compile_source(Source(path.read_text(), str(path))).text.encode())
print(digest.hexdigest())
"""


def sha256(text: str, name: str = "x.sched") -> str:
    return hashlib.sha256(compile_source(Source(text, name)).text.encode()).hexdigest()


def orders() -> list[str]:
    return ["\n".join(lines) + "\n" for lines in itertools.permutations(SEVEN)]


@pytest.mark.proof
def test_every_order_of_the_seven_words_is_one_schedule() -> None:
    first, *others = (parse_schedule(Source(text)) for text in orders())
    assert len(others) == 5039
    assert all(schedule == first for schedule in others)


@pytest.mark.proof
def test_orders_give_one_text() -> None:
    sample = random.Random(0).sample(orders(), 40)
    assert len({sha256(text) for text in sample}) == 1


def test_what_says_nothing_changes_nothing() -> None:
    text = "\n".join(SEVEN) + "\n"
    gemm = "gemm C[m, n] = A[m, k] * B[k, n]\n"
    same = (
        text.replace("\n", "\r\n"),
        "# a comment\n\n" + text.replace("k=8", "k=8  # after it"),
        gemm + text,
        "\ufeff" + text,
        " ".join(text.split(" ")).replace("    ", "\t"),
        text.replace("A B C width=4", "A width=4") + "vectorize C B width=4\n",
        text + "raster group=1\n",
        text + "kernel gemm\ntarget sm_80\ndtype A=f32\n",
        text.replace("double_buffer   A B", "double_buffer A B stages=2"),
    )
    assert {sha256(other) for other in same} == {sha256(text)}
    assert sha256(text, "another/name.sched") == sha256(text)


@pytest.mark.by_default("swizzled", "split_k", "tensor_core", "async_copy")
@pytest.mark.parametrize("name", NAMES)
def test_a_schedule_compiled_twice_gives_one_text(name: str) -> None:
    kernel = emitted(example(name))
    assert compile_schedule(kernel.schedule).text == kernel.text


@pytest.mark.proof
def test_hash_seeds_and_folders_change_nothing() -> None:
    texts = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", PROGRAM, str(EXAMPLES)]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True, cwd="/"
        )
        texts.add(done.stdout)
    assert len(texts) == 1
