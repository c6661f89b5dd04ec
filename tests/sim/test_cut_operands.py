"""Warpgroups multiply f32 that they truncate (tf32): right in every order, and who reads an
element otherwise is found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from emitted_kernels import planted
from emitted_warpgroups import HEAD, PRODUCER, THREE, TWO, complaint, emitted
from part_of_calls import keeps_its_meaning

from gemmgen.interpreter import async_products
from gemmgen.numerics.formats import cut_to_tf32, near_tf32, to_tf32
from gemmgen.pipeline import Emitted
from gemmgen.proof import cpu, meaning
from gemmgen.proof.outcome import Subject

BASE = HEAD.replace("A=bf16 B=bf16 C=bf16", "tf32").replace("k=64", "k=32")
HIGH = BASE.replace("tile m=64 n=16 k", "tile m=128 n=24 k")
HIGH = HIGH.replace("warp_tile m=64 n=16", "warp_tile m=128 n=8\nvectorize C width=2")
SCHEDULES = {
    "alone": BASE + THREE,
    "producer": BASE + THREE + PRODUCER,
    "rows of 64 bytes": BASE.replace("k=32", "k=16") + TWO + PRODUCER,
    "atom columns": BASE.replace("k=32", "k=64") + TWO + PRODUCER,
    "128 rows": HIGH + THREE + PRODUCER,
    "parts of k": f"{BASE}{THREE}split_k parts=3\n",
    "groups of terms": BASE.replace("via=wgmma", "via=wgmma promote=64") + THREE + PRODUCER,
    "ping-pong": f"{BASE}{THREE}persistent\nwarp_specialize producers=1 order=pingpong\n",
    "cluster": BASE.replace("tile m=64 n=16 k", "tile m=128 n=16 k")
    + f"{THREE}{PRODUCER}persistent\ncluster m=2\n",
    "epilogue": f"{BASE}{THREE}{PRODUCER}fuse_epilogue relu(acc + bias[n]) + row[m]\n",
}


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", SCHEDULES)
def test_every_order_is_right(name: str) -> None:
    assert complaint(SCHEDULES[name]) is None


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", SCHEDULES)
def test_every_pass_keeps_the_meaning(name: str) -> None:
    keeps_its_meaning(Subject(emitted(SCHEDULES[name])), name, SCHEDULES)


PLANTS = {
    "a step of k of halves": ("producer", "IK = 8", "IK = 16"),
    "a step along k of halves": ("producer", "A_matrix + k * 4 / 16", "A_matrix + k * 2 / 16"),
    "another step along k of B": ("producer", "B_matrix + k * 4 / 16", "B_matrix + k / 16"),
    "a descriptor of other rows": ("rows of 64 bytes", "2ULL << 62", "1ULL << 62"),
    "the next atom column": ("atom columns", "(k / A_ATOM) * BM", "(k / A_ATOM) * BN"),
    "accumulators are read before the wait": ("producer", "gg_wgmma_end(acc);", ""),
}


@pytest.mark.by_default("a step along k of halves")
@pytest.mark.parametrize("plant", PLANTS)
def test_finds(plant: str) -> None:
    name, old, new = PLANTS[plant]
    changed = planted(emitted(SCHEDULES[name]).text, old, new, 1)
    assert complaint(SCHEDULES[name], changed) is not None


def rounding(known: Emitted) -> Emitted:
    """The same kernel for callers who believe that it rounds."""
    return replace(
        known,
        interface=replace(
            known.interface, arithmetic=replace(known.interface.arithmetic, cuts=False)
        ),
    )


@pytest.mark.proof
def test_a_run_of_the_text_tells_cutting_off_from_rounding() -> None:
    outcome = cpu.check(Subject(rounding(emitted(SCHEDULES["alone"]))))
    assert outcome.status == "failed" and "C: " in outcome.detail, outcome.detail


@pytest.mark.proof
def test_the_interpreter_tells_cutting_off_from_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = Subject(emitted(SCHEDULES["alone"]))
    monkeypatch.setattr(async_products, "cut_to_tf32", to_tf32)
    outcome = meaning.check(subject)
    assert outcome.status == "failed", outcome.detail


def test_the_head_says_what_is_dropped() -> None:
    text = emitted(SCHEDULES["alone"]).text
    assert "float (cut off to tf32) for A, B" in " ".join(text.replace("//", "").split())
    assert "of elements of A and B 13 bits are dropped, less than 2^-10 of each" in text


def test_numbers_that_are_cut_off() -> None:
    exact = to_tf32(np.random.default_rng(1).standard_normal((64, 64)).astype(np.float32))
    exact[0, :4] = 0.0, -0.0, np.inf, np.nan
    given = near_tf32(exact, cut=True)
    assert np.array_equal(cut_to_tf32(given), exact, equal_nan=True)
    assert (to_tf32(given) != exact).mean() > 0.4
    lost = np.abs(given[1:] - exact[1:]) / np.abs(given[1:])
    assert 2.0**-11 < lost.max() < 2.0**-10
