"""The ``gemm`` line: its names, and the role of each letter.

Over 300 lines: the refusals of one line, with their hints.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import chain, count

from gemmgen.base.errors import Mistakes, Refusal
from gemmgen.base.record import record
from gemmgen.base.source import Span, indexed, listed, shown
from gemmgen.ir.identifiers import LETTER, NAME, language_word
from gemmgen.ir.parameters import ld_name
from gemmgen.schedule.model import DEFAULT_GEMM, Access, Gemm
from gemmgen.schedule.raw import RawGemm, RawOperand, Word
from gemmgen.schedule.reserved import clash
from gemmgen.schedule.roles import matrix, strides
from gemmgen.schedule.scales import checked_scales
from gemmgen.schedule.spec import DirectiveSpec

MOST_LETTERS = 6
"""Of a tensor: four that number its matrices, and the matrix's two."""
_EXAMPLE = "C[m, n] = A[m, k] * B[k, n]"


@record
class GemmScope:
    """The names that the other statements are checked against.

    If the ``gemm`` line is wrong, ``sure`` is False and ``gemm`` is a default: mistakes that depend
    on its names are then not reported.
    """

    gemm: Gemm
    sure: bool


def check_gemm(raw: RawGemm, specs: Iterable[DirectiveSpec], mistakes: Mistakes) -> GemmScope:
    """The ``gemm`` line as a value; records all of its mistakes."""
    accesses, span = raw.accesses, raw.span
    before = len(mistakes)
    letters: dict[str, Word] = {}
    tensors = [access.tensor.text for access in accesses]
    for scale in raw.scales:
        with mistakes.caught():
            check_name(scale.tensor, "tensor")
    for access in accesses:
        with mistakes.caught():
            check_name(access.tensor, "tensor")
        for letter in access.indices or ():
            letters.setdefault(letter.text, letter)
    for letter in letters.values():
        with mistakes.caught():
            _check_letter(letter, specs, letters, tensors)
    if len(mistakes) == before:
        with mistakes.caught():
            _check_distinct(accesses)
            _check_roles(accesses, span)
            c, a, b = map(_access, accesses)
            gemm = Gemm(c, a, b, span=span)
            for access in accesses:
                check_storage(access, gemm)
            gemm = replace(gemm, scales=checked_scales(raw.scales, gemm))
            _check_clashes(raw, gemm)
            return GemmScope(gemm, True)
    return GemmScope(DEFAULT_GEMM, False)


def _access(raw: RawOperand) -> Access:
    letters = tuple(letter.text for letter in raw.indices or ())
    return Access(raw.tensor.text, letters, raw.span)


def check_name(word: Word, kind: str) -> None:
    """Refuses what no name may be, whatever the schedule."""
    why = language_word(word.text)
    if not NAME.fullmatch(word.text):
        raise Refusal(
            f"`{shown(word.text)}` is too long for a {kind}'s name",
            at=word.span,
            hint="a name has letters, digits and `_`, at most 63 of them",
        )
    if why:
        raise Refusal(
            f"`{shown(word.text)}` can't be a {kind}'s name: it is {why}",
            at=word.span,
            hint=f"any other name will do, such as `my_{word.text.strip('_').replace('__', '_')}`",
        )


def other_letter(used: Iterable[str]) -> str:
    """A letter that is not among the names ``used``, nor is its capital: that is its extent."""
    taken, all_of_them = set(used), chain("ijpqrstuvw", (f"i{number}" for number in count(1)))
    return next(x for x in all_of_them if taken.isdisjoint((x, x.upper())))


def _check_letter(
    letter: Word, specs: Iterable[DirectiveSpec], letters: Collection[str], tensors: Sequence[str]
) -> None:
    """``letters`` and ``tensors``: all of the line."""
    name, small = shown(letter.text), letter.text.lower()
    other = f"any other lowercase name will do, such as `{other_letter((*letters, *tensors))}`"
    if not LETTER.fullmatch(letter.text):
        why = "letters are lowercase, and uppercase names are extents"
        if letter.text.startswith("_"):
            why = "it begins with `_`, and letters begin with a to z"
        elif len(letter.text) > 16:
            why = f"it has {len(letter.text)} characters, at most 16 are taken"
        free = small not in letters and small.upper() not in tensors
        plain = free and LETTER.fullmatch(small) and not _kept(small, specs)
        raise Refusal(
            f"`{name}` can't be a letter: {why}",
            at=letter.span,
            hint=f"write `{small}`, as in `{_EXAMPLE}`" if plain else other,
        )
    kept = _kept(letter.text, specs)
    if kept:
        raise Refusal(f"`{name}` can't be a letter: it is {kept}", at=letter.span, hint=other)


def _kept(letter: str, specs: Iterable[DirectiveSpec]) -> str | None:
    """The other meaning of a letter's name, if it has one."""
    for spec in specs:
        words = [a.name for a in spec.arguments]
        if letter in words and any(word.startswith("<") for word in words):
            return f"an argument of {spec.name}"
    return language_word(letter)


def _check_distinct(accesses: tuple[RawOperand, ...]) -> None:
    for index, access in enumerate(accesses):
        for other in accesses[:index]:
            if access.tensor.text == other.tensor.text:
                raise Refusal(
                    f"two tensors are called {access.tensor.text}",
                    at=access.tensor.span,
                    hint="the output and the two inputs have their own names",
                )
            if ld_name(access.tensor.text) == ld_name(other.tensor.text):
                both = f"{other.tensor.text} and {access.tensor.text}"
                raise Refusal(
                    f"{both} would share the leading dimension {ld_name(access.tensor.text)}",
                    at=access.tensor.span,
                    hint="choose names that differ in more than case, "
                    f"such as `my_{access.tensor.text}`",
                )
        seen: set[str] = set()
        for letter in access.indices or ():
            if letter.text in seen:
                raise Refusal(
                    f"{letter.text} occurs twice in {access.tensor.text}",
                    at=letter.span,
                    hint="each letter occurs at most once in a tensor; a diagonal can't be read",
                )
            seen.add(letter.text)


def _roles(accesses: tuple[RawOperand, ...]) -> dict[str, str]:
    """The role of each letter, in order of appearance."""
    tensors: dict[str, list[str]] = {}
    for role, access in zip("cab", accesses, strict=True):
        for letter in access.indices or ():
            tensors.setdefault(letter.text, []).append(role)
    kinds = {"ca": "row", "cb": "column", "ab": "contracted", "cab": "batch"}
    return {letter: kinds.get("".join(at), "") for letter, at in tensors.items()}


def _check_roles(accesses: tuple[RawOperand, ...], span: Span) -> None:
    found = _roles(accesses)
    c, a, b = (access.tensor.text for access in accesses)
    where = {
        "row": f"in {c} and {a}",
        "column": f"in {c} and {b}",
        "contracted": f"in {a} and {b}, not in {c}",
        "batch": f"in {c}, {a} and {b}",
    }
    notes = tuple(
        f"{letter} is a {kind} letter ({where[kind]})" for letter, kind in found.items() if kind
    )
    for access in accesses:
        for letter in access.indices or ():
            if not found[letter.text]:
                raise Refusal(
                    f"{letter.text} is only in {access.tensor.text}, so it has no role",
                    at=letter.span,
                    notes=notes,
                    hint=f"a letter occurs in two of the tensors: `{_EXAMPLE}`",
                )
    kinds = list(found.values())
    missing = [f"no {kind} letter" for kind in ("row", "column", "contracted") if kind not in kinds]
    if missing:
        if "contracted" in kinds:
            raise _vector(accesses, found, missing, span)
        raise Refusal(
            f"the gemm line has {listed(missing)}: it takes at least one of each",
            at=span,
            notes=notes,
            hint=f"write it like `{_EXAMPLE}`, with letters and index orders of your own",
        )
    if kinds.count("contracted") > 1:
        summed = [letter for letter, kind in found.items() if kind == "contracted"]
        second = next(x for x in accesses[1].indices or () if x.text == summed[-1])
        raise Refusal(
            f"the gemm line sums over {listed(summed)}, and a kernel sums over one letter",
            at=second.span,
            notes=notes,
            hint=f"make one letter of {listed(summed)} if they are adjacent in {a} and in {b}",
        )


def _vector(
    accesses: tuple[RawOperand, ...], found: dict[str, str], missing: list[str], span: Span
) -> Refusal:
    """The refusal of a product with a vector, which is a matrix of one row (or column)."""
    texts = [[letter.text for letter in access.indices or ()] for access in accesses]
    sides = {"no row letter": ("m", "i", (0, 1), 0), "no column letter": ("n", "j", (0, 2), 1)}
    counts: list[str] = []
    for side in missing:
        usual, other, tensors, at = sides[side]
        letter = next(x for x in (usual, other, f"{usual}1") if x not in found)
        for tensor in tensors:
            texts[tensor].insert(0 if at == 0 else len(texts[tensor]), letter)
        counts.append(f"{letter.upper()} = 1")
    c, a, b = (indexed(x.tensor.text, text) for x, text in zip(accesses, texts, strict=True))
    return Refusal(
        f"the gemm line has {listed(missing)}: it takes at least one of each",
        at=span,
        notes=(
            f"a vector is a matrix with {listed(counts)}: pass arrays of two dimensions",
            "split_k within=warp is made for such shapes: `gemmgen example matvec`",
        ),
        hint=f"did you mean `gemm {c} = {a} * {b}`?",
    )


def check_storage(access: RawOperand, gemm: Gemm) -> None:
    """Refuses a tensor whose matrices have no contiguous letter, or which has too many letters."""
    name = access.tensor.text
    letters = tuple(access.indices or ())
    if len(letters) > MOST_LETTERS:
        raise Refusal(
            f"{name} has {len(letters)} letters, and at most {MOST_LETTERS} are taken",
            at=letters[MOST_LETTERS].span,
            hint="make one letter of two that are adjacent in every tensor",
        )
    there = tuple(letter.text for letter in letters)
    tiled = matrix(Access(name, there), gemm)
    if not tiled or there[-1] in tiled:
        return
    last, moved = there[-1], (*(x for x in there if x not in tiled), *tiled)
    raise Refusal(
        f"{name} is contiguous along {last}, which indexes its matrices",
        at=letters[-1].span,
        notes=(
            f"a block computes one {last}, tiles run along {listed(tiled)}: "
            f"contiguous elements of {name} would belong to different blocks",
        ),
        hint=f"store it as {indexed(name, moved)}",
    )


def _check_clashes(raw: RawGemm, gemm: Gemm) -> None:
    """Checks that each name that is derived from the line has one meaning."""
    accesses = raw.accesses
    _check_strides(accesses, gemm)
    found = clash(gemm)
    if found is None:
        return
    word, name, what = found
    used = {letter.text for access in accesses for letter in access.indices or ()}
    names = [access.tensor for access in accesses] + [scale.tensor for scale in raw.scales]
    used |= {tensor.text for tensor in names}
    for tensor in names:
        if tensor.text == word:
            raise Refusal(
                f"`{word}` can't be a tensor's name here: {_subject(word, name)} {what}",
                at=tensor.span,
                hint=f"rename the tensor: any other name will do, such as `my_{word}`",
            )
    for access in accesses:
        for letter in access.indices or ():
            if letter.text == word:
                raise Refusal(
                    f"`{word}` can't be a letter here: {_subject(word, name)} {what}",
                    at=letter.span,
                    hint=f"any other lowercase name will do, such as `{other_letter(used)}`",
                )
    raise AssertionError(f"{name} follows from no word of the line")


def _subject(word: str, name: str) -> str:
    return "it is" if name == word else f"{name}, which follows from it, is"


def _check_strides(accesses: tuple[RawOperand, ...], gemm: Gemm) -> None:
    """``A`` along ``b_c`` and ``A_b`` along ``c`` would have one stride."""
    owners: dict[str, str] = {}
    for raw in accesses:
        for letter, name in strides(_access(raw), gemm).items():
            first = owners.setdefault(name, raw.tensor.text)
            if first != raw.tensor.text:
                raise Refusal(
                    f"{first} and {raw.tensor.text} would share the stride {name}",
                    at=raw.tensor.span,
                    hint=f"rename the tensor, or the letter {letter}",
                )
