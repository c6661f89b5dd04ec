"""Sectors, lines and bank conflicts of single requests, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from gemmgen.analyze import transactions

LANES = np.arange(32)


def warp(first: np.ndarray) -> np.ndarray:
    return first[None].astype(np.int64)


@pytest.mark.parametrize(
    ("first", "width", "sectors", "lines"),
    [
        (LANES, 1, 4, 1),
        (LANES + 1, 1, 5, 2),
        (LANES + 8, 1, 4, 2),
        (LANES * 0, 1, 1, 1),
        (LANES * 4, 4, 16, 4),
        (LANES * 2, 2, 8, 2),
        (LANES * 100, 1, 32, 32),
        (np.where(LANES < 8, LANES, -1), 1, 1, 1),
        (np.full(32, -1), 1, 0, 0),
    ],
)
def test_sectors_and_lines(first: np.ndarray, width: int, sectors: int, lines: int):
    assert transactions.units(warp(first), width, transactions.SECTOR).tolist() == [sectors]
    assert transactions.units(warp(first), width, transactions.LINE).tolist() == [lines]


@pytest.mark.parametrize(
    ("first", "width", "phases", "wavefronts", "ways", "clocks"),
    [
        (LANES, 1, 1, 1, 1, 1),
        (LANES * 0, 1, 1, 1, 1, 1),
        (LANES * 2, 1, 1, 2, 2, 2),
        (LANES * 32, 1, 1, 32, 32, 32),
        (LANES * 33, 1, 1, 1, 1, 1),
        (LANES * 2, 2, 2, 2, 1, 2),
        (LANES * 4, 2, 2, 4, 2, 4),
        (LANES * 4, 4, 4, 4, 1, 4),
        (LANES * 8, 4, 4, 8, 2, 8),
        (LANES % 8 * 4, 4, 4, 4, 1, 4),
        (LANES % 4 * 4, 4, 4, 4, 1, 4),
        (LANES // 4 * 4, 4, 4, 4, 1, 2),
        (LANES // 8 * 4, 4, 4, 4, 1, 2),
        (np.where(LANES < 8, LANES * 4, -1), 4, 1, 1, 1, 1),
        (np.full(32, -1), 1, 0, 0, 0, 0),
    ],
)
def test_bank_conflicts_by_phase(
    first: np.ndarray, width: int, phases: int, wavefronts: int, ways: int, clocks: int
):
    message = transactions.shared(warp(first), width)
    found = (message.phases, message.wavefronts, message.ways, message.clocks)
    assert [x.tolist() for x in found] == [[phases], [wavefronts], [ways], [clocks]]


def test_elements_and_requests():
    first = warp(np.where(LANES % 2, LANES * 4, -1))
    assert transactions.elements(first, 4).tolist() == [64]
    assert transactions.requests(first).tolist() == [1]
    assert transactions.requests(warp(np.full(32, -1))).tolist() == [0]
