"""Records behave as frozen dataclasses do."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import dataclass, field

import pytest

from gemmgen.base.record import record


@record
class Empty:
    """Nothing."""


@record
class One:
    """A value."""

    x: object


@record
class Two:
    """Two values and one that does not count."""

    x: object
    y: tuple[object, ...] = ()
    where: int = field(default=0, compare=False)


@record
class Own(Two):
    """With its own representation."""

    def __repr__(self) -> str:
        return "own"


@dataclass(frozen=True)
class Usual:
    """What ``Two`` is to be like."""

    x: object
    y: tuple[object, ...] = ()
    where: int = field(default=0, compare=False)


NAN = float("nan")
VALUES = [(1,), (1, (2,)), (1, (2,), 3), ("a", ("b",), 7), (One(1), (Empty(),))]


@pytest.mark.parametrize("a", VALUES)
@pytest.mark.parametrize("b", VALUES)
def test_compares_and_hashes_like_a_dataclass(a: tuple[object], b: tuple[object]) -> None:
    assert (Two(*a) == Two(*b)) == (Usual(*a) == Usual(*b))
    assert (hash(Two(*a)) == hash(Two(*b))) == (hash(Usual(*a)) == hash(Usual(*b)))
    assert repr(Two(*a)) == repr(Usual(*a)).replace("Usual", "Two", 1)


def test_one_value_and_none() -> None:
    """One object is equal to itself, a NaN too: dataclasses have it so up to Python 3.12."""
    assert One(NAN) == One(NAN) and hash(One(NAN)) == hash(One(NAN))
    assert One(1) != One(2) and Empty() == Empty() and repr(Empty()) == "Empty()"


def test_other_classes_are_unequal() -> None:
    assert Two(1) != Usual(1) and Two(1) != Own(1) and One(1) != (1,)


def test_what_a_class_defines_is_kept() -> None:
    assert repr(Own(1)) == "own" and Own(1) == Own(1)


def test_is_frozen_and_has_fields() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Two(1).x = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del Two(1).x  # type: ignore[misc]
    assert dataclasses.replace(Two(1), x=2) == Two(2)
    match Two(1, (2,)):
        case Two(x, y):
            assert (x, y) == (1, (2,))


def test_a_constructor_takes_what_a_dataclass_takes() -> None:
    assert Two(1, where=5).where == 5 and Two(x=1, y=(2,)) == Two(1, (2,))
    assert One(x=3).x == 3
    for wrong in ((), (1, 2, 3, 4)):
        with pytest.raises(TypeError, match=r"Two\.__init__\(\)"):
            Two(*wrong)
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        Two(1, z=2)  # type: ignore[call-arg]


@pytest.mark.parametrize("calls", [0, 30])
def test_first_and_later_calls_of_a_constructor_do_the_same(calls: int) -> None:
    """Its first calls are not compiled."""

    @record
    class Checked:
        x: int
        y: tuple[int, ...] = ()
        items: list[int] = field(default_factory=list)

        def __post_init__(self) -> None:
            assert self.x >= 0

    for _ in range(calls):
        Checked(1)
    made = (Checked(1), Checked(x=1), Checked(1, ()), Checked(1, items=[]), Checked(y=(), x=1))
    assert all(vars(one) == {"x": 1, "y": (), "items": []} for one in made)
    assert [*vars(Checked(y=(2,), x=1))] == ["x", "y", "items"]
    for given, named in (((), {}), ((1, (), [], 4), {}), ((1,), {"x": 2}), ((1,), {"z": 2})):
        with pytest.raises(TypeError):
            Checked(*given, **named)  # type: ignore[arg-type]
    with pytest.raises(AssertionError):
        Checked(-1)


def test_a_default_is_made_for_each() -> None:
    @record
    class Kept:
        items: list[int] = field(default_factory=list)
        more: tuple[int, ...] = ()

    assert Kept().items == [] and Kept().items is not Kept().items
    assert Kept([1]).items == [1] and Kept([1]).more == ()


def test_survives_copies_and_pickles() -> None:
    for copied in (copy.deepcopy(Two(One(1))), pickle.loads(pickle.dumps(Two(One(1))))):
        assert copied == Two(One(1))
