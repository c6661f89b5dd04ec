"""Letters that number blocks: ``k/128`` counts blocks of 128 elements along ``k``.

A tensor of scales has such letters beside plain ones.  They are plain strings, so that a tensor's
letters are strings wherever they are asked for; what a letter counts is asked here alone.
"""

from __future__ import annotations

SLASH = "/"


def blocked(letter: str, size: int) -> str:
    """The letter that numbers blocks of ``size`` elements along ``letter``; that letter for 1."""
    return letter if size == 1 else f"{letter}{SLASH}{size}"


def plain(letter: str) -> str:
    """The letter whose blocks are numbered, or the letter itself."""
    return letter.partition(SLASH)[0]


def block(letter: str) -> int:
    """The elements of a block; 1 of a plain letter."""
    _, slash, size = letter.partition(SLASH)
    return int(size) if slash else 1


def count(letter: str, extent: int) -> int:
    """The values of a letter whose plain letter has this ``extent``: the last block may be
    short."""
    return -(-extent // block(letter))
