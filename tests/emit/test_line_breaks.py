"""Lines are broken where they are marked, and only if they are too long."""

from __future__ import annotations

import pytest

from gemmgen.emit.line_breaks import FIRST, INDEX, LAST, SOFT, WIDTH, comment_lines, laid_out, plain

LONG = "x" * 60


def call(*arguments: str, indent: int = 0) -> str:
    return f"{' ' * indent}f({f', {SOFT}'.join(arguments)});"


def test_a_short_line_stays_and_loses_its_marks() -> None:
    assert laid_out(call("a", "b")) == "f(a, b);"


def test_a_line_is_filled_up_to_its_width() -> None:
    fits = call("a" * 40, "b" * (WIDTH - 46))
    assert laid_out(fits) == plain(fits) and len(plain(fits)) == WIDTH
    assert laid_out(fits.replace(";", "; ")) == plain(fits)
    longer = call("a" * 40, "b" * (WIDTH - 45))
    assert laid_out(longer) == f"f({'a' * 40},\n    {'b' * (WIDTH - 45)});"


def test_further_lines_are_indented_by_four() -> None:
    got = laid_out(call(LONG, LONG, LONG, indent=2)).split("\n")
    assert got == [f"  f({LONG},", f"      {LONG},", f"      {LONG});"]


def test_an_assignment_is_broken_after_its_sign_if_its_value_then_takes_one_line() -> None:
    text = f"{LONG} = {FIRST}g({SOFT}{'y' * 40});"
    assert laid_out(text) == f"{LONG} =\n    g({'y' * 40});"
    assert laid_out(f"    a = {FIRST}{LONG};") == f"    a = {LONG};"
    got = laid_out(f"a = {FIRST}{call(LONG, LONG)}").split("\n")
    assert got == [f"a = f({LONG},", f"    {LONG});"]


def test_indices_are_parted_if_no_other_mark_fits() -> None:
    element = f"{'a' * 70}[i]{INDEX}[{'j' * 40}]"
    assert laid_out(element) == f"{'a' * 70}[i]\n    [{'j' * 40}]"
    either = f"c ? {SOFT}{'a' * 70}[i]{INDEX}[{'j' * 40}]"
    assert laid_out(either).startswith("c ?\n")


def test_arithmetic_is_parted_last() -> None:
    total = f"{'a' * 70} + {LAST}{'b' * 70}"
    assert laid_out(total) == f"{'a' * 70} +\n    {'b' * 70}"
    element = f"{'a' * 50}[i]{INDEX}[{'j' * 20} + {LAST}{'j' * 40}]"
    assert laid_out(element) == f"{'a' * 50}[i]\n    [{'j' * 20} + {'j' * 40}]"


def test_without_a_mark_a_line_stays_long() -> None:
    assert laid_out("x, " * 50) == ("x, " * 50).rstrip()


@pytest.mark.parametrize("indent", [0, 4, 40])
def test_a_comment_goes_on_as_a_comment(indent: int) -> None:
    origins = tuple(f"vectorize operand_{i} width=4" for i in range(6))
    for line in comment_lines("a note", origins):
        for got in laid_out(" " * indent + f"// {line}").split("\n"):
            assert got.startswith(" " * indent + "// ") and len(got) <= WIDTH


def test_a_comment_cites_all_its_directives() -> None:
    assert plain("\n".join(comment_lines("a note", ("tile m=8", "pad A by=4")))) == (
        "a note (tile m=8; pad A by=4)"
    )
    assert comment_lines("", ("tile m=8",)) == []
