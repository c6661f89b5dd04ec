"""``examples.toml`` is of examples that exist, and says what tests ask for."""

from __future__ import annotations

from stated import EXAMPLES, KEYS

from gemmgen.schedule import examples


def test_what_is_stated_is_of_an_example() -> None:
    assert EXAMPLES.keys() <= set(examples.names())


def test_keys_and_their_types_are_known() -> None:
    for name, facts in EXAMPLES.items():
        assert facts, name
        assert all(type(value) is KEYS[key] for key, value in facts.items()), name
