"""Hints taken by the word: what a user would write who does as the first mistake's hint says."""

from __future__ import annotations

import re

from gemmgen.base.errors import Mistake

_NUMBER = r"[0-9]+"
_STATEMENT = re.compile(
    r"(?:tile|warp_tile|register_block)(?: [a-z_]+=[0-9]+)+|cache_shared [A-Z]\b(?:\[\w+, \w+\])?"
)
_SPAN_BECOMES = (
    re.compile(r"^did you mean `?([A-Za-z_.]+)`?\?"),
    re.compile(r"^write it as ([0-9]+)$"),
    re.compile(r"^write `(.+)` in plain letters$"),
    re.compile(r"^an integer from ([0-9]+) to "),
    re.compile(r"^write ([0-9.]+)$"),
)
_ARGUMENT = re.compile(r"^(?:a divisor of [0-9]+: )?([a-z_]+)=([0-9]+)\b")
_RENAMED = re.compile(
    r"(?:any other (?:lowercase )?name will do|pass the number by its own name|"
    r"names that differ in more than case), such as `(\w+)`$"
)
_ADDED = re.compile(r"add `(kernel \w+)`$")
_SMALL = re.compile(r"^write `([a-z]\w*)`, as in ")
_MEANT = re.compile(r"^write `(\S+)`$")
_WHOLE = re.compile(r"^did you mean `(gemm .*)`\?$")
_CHOSEN = re.compile(r", or write (\w+) in place of the set$")
_STORED = re.compile(r"^a gemm with (\w+)(\[\w+, \w+\])$")
_CLOSED = re.compile(r"^close it with `(.)`$")


_DIRECTIVE = re.compile(
    r"^(add )?((?:(?:double_buffer|async_copy|vectorize|residue|split_k|pad|dtype|target|assume|"
    r"unroll|warp_specialize|cluster|swizzle|tensor_core) |persistent)"
    r"[^,:;(]*?)(?=,|;|:| or | \(| for | in place of|$)"
)
_LEFT_OUT = re.compile(r"^leave ([a-z_]+)(?: or [a-z_]+)? out")
_OPERAND_OUT = re.compile(r"^leave ([A-Z]) out of ([a-z_]+)$")
_WORD = re.compile(r"^([a-z_]+)=([a-z]\w*)\b")
_ONE_OF = re.compile(r"^one of (\w+)")


def _directed(text: str, hint: str) -> str | None:
    """``text`` with the directive that a hint begins with, in place of the same one's lines."""
    found = _DIRECTIVE.search(hint)
    if found is None:
        return None
    added, line = found.groups()
    word, *parts = line.split(" ")
    tensors = [part.split(".")[0] for part in parts if "=" not in part]
    kept: list[str] = []
    for old in text.splitlines():
        if added or old.split(maxsplit=1)[:1] != [word]:
            kept.append(old)
            continue
        left = [x for x in old.split()[1:] if x.split(".")[0] not in tensors]
        if word != "target" and any("=" not in x for x in left):
            kept.append(" ".join([word, *left]))
    if found := re.search(r" in place of (\w+) (\w+)", hint):
        kept = [old for old in kept if not old.startswith(f"{found.group(1)} {found.group(2)}")]
    return "\n".join([*kept, line]) + "\n"


def _without(text: str, hint: str) -> str | None:
    """``text`` without the lines of a directive, or its argument, that a hint leaves out."""
    found = _LEFT_OUT.search(hint)
    if found is None:
        return None
    word = found.group(1)
    kept = [x for x in text.splitlines() if x.split(" ", maxsplit=1)[0] != word]
    return "\n".join(re.sub(rf" {word}=\w+", "", x) for x in kept) + "\n"


def _without_operand(text: str, hint: str) -> str | None:
    """``text`` with a tensor taken out of a directive's lines, and out of the lines of no other; a
    line without tensors goes with the last of them."""
    found = _OPERAND_OUT.search(hint)
    if found is None:
        return None
    tensor, word = found.groups()
    kept: list[str] = []
    for line in text.splitlines():
        if line.startswith(f"{word} "):
            line = re.sub(rf" {tensor}(\[[^]]*\])?(?= |$)", "", line)
        own, *parts = line.split()
        kept += [line] if own != word or any("=" not in part for part in parts) else []
    return "\n".join(kept) + "\n"


def followed(text: str, mistake: Mistake) -> str | None:
    """``text`` with the hint of ``mistake`` taken; None where that takes judgement."""
    hint, span = mistake.hint, mistake.span
    assert span is not None
    before, there, after = text[: span.start], text[span.start : span.end], text[span.end :]
    for pattern in _SPAN_BECOMES:
        if found := pattern.search(hint):
            return before + found.group(1) + after
    if found := _MEANT.search(hint):
        if there.isascii():
            return before + found.group(1) + after
        return before + found.group(1) + re.sub(r"^[^\x00-\x7f]+", "", after)
    if found := (_RENAMED.search(hint) or _SMALL.search(hint)):
        if "can't be a kernel's name" in mistake.message:
            return before + found.group(1) + after
        word, other = there.split("[")[0], found.group(1)
        if "pass the number by its own name" in hint:
            start, end = _bounds(text, span.start)
            return text[:start] + re.sub(rf"\b{word}\b", other, text[start:end]) + text[end:]
        # A leading dimension has the name of its tensor, and an argument that of its letter.
        letter = re.search(rf"^gemm\b.*[\[ ]{re.escape(word)}[,\]]", text, re.MULTILINE)
        text = re.sub(rf"\b(tile_)?{re.escape(word)}\b", rf"\g<1>{other}", text)
        text = re.sub(rf"\bld{word.lower()}\b", f"ld{other.lower()}", text)
        if letter is None and "letter" not in mistake.message:
            return text
        return re.sub(rf"\b({word.upper()}|extent_{word})\b", other.upper(), text)
    if found := _ADDED.search(hint):
        return f"{text.rstrip()}\n{found.group(1)}\n"
    if found := _WHOLE.search(hint):
        return _line(text, span.start, found.group(1))
    if found := _STORED.search(hint):
        name, order = found.groups()
        return re.sub(rf"(?<=[=*] ){name}\[[^]]*\]", name + order, text, count=1)
    if found := _CHOSEN.search(hint):
        return before + found.group(1) + after
    if found := _CLOSED.search(hint):
        end = re.compile(r"[ ]*(#|$)", re.MULTILINE).search(text, span.start)
        assert end is not None
        return f"{text[:end.start()]}{found.group(1)} {text[end.start():]}"
    if hint.startswith("a comment begins with"):
        start, end = _bounds(text, span.start)
        line = re.sub(r"//|/\*|--|;;|<!--", "#", text[start:end], count=1)
        return text[:start] + line + text[end:]
    if "delete it" in hint:
        return before + after
    if hint.endswith("write a space"):
        return f"{before} {after}"
    if hint.startswith(("leave the line out", "remove the line")):
        return _line(text, span.start, "")
    if hint.startswith("keep one") or "leave the pad out" in hint:
        start, end = _bounds(text, span.start)
        several = len(re.findall(r"\b[A-Z]\b|\b[a-z]+=", text[start:end])) > 2
        return before + after if several else _line(text, span.start, "")
    if found := _ARGUMENT.search(hint):
        name, value = found.groups()
        start, end = _bounds(text, span.start)
        line = re.sub(rf"\b{name}={_NUMBER}", f"{name}={value}", text[start:end])
        return text[:start] + line + text[end:]
    for rule in (_without_operand, _directed, _without):
        if (changed := rule(text, hint)) is not None:
            return changed
    if found := _WORD.search(hint):
        name, value = found.groups()
        start, end = _bounds(text, span.start)
        return (
            text[:start] + re.sub(rf"\b{name}=\w+", f"{name}={value}", text[start:end]) + text[end:]
        )
    if found := _ONE_OF.search(hint):
        return before + found.group(1) + after
    if hint.startswith("write it like"):
        return None
    statements = _STATEMENT.findall(hint.replace("register_block with ", "register_block "))
    for statement in statements:
        text = _stated(text, statement)
    return text if statements else None


def _bounds(text: str, offset: int) -> tuple[int, int]:
    """Where the line of ``offset`` begins and ends."""
    end = text.find("\n", offset)
    return text.rfind("\n", 0, offset) + 1, len(text) if end < 0 else end


def _line(text: str, offset: int, line: str) -> str:
    start, end = _bounds(text, offset)
    return text[:start] + line + text[end:]


def _stated(text: str, statement: str) -> str:
    """``text`` with ``statement`` in place of that of the same word, or at its end.

    A tensor more in shared memory is a line more.  Arguments that a hint leaves out stay.
    """
    word, *arguments = statement.split(" ")
    found = re.search(rf"^{word}\b.*$", text, re.MULTILINE)
    if found is None:
        return f"{text.rstrip()}\n{statement}\n"
    line = found.group()
    if word == "cache_shared":
        tensor = arguments[0][0]
        operand = re.compile(rf"\b{tensor}\b(\[[^]]*\])?|$")
        line = operand.sub(f" {' '.join(arguments)}", line, count=1)
        return text[: found.start()] + line + text[found.end() :]
    for argument in arguments:
        name = argument.split("=")[0]
        if re.search(rf"\b{name}=", line):
            line = re.sub(rf"\b{name}=\w+", argument, line)
        else:
            line = f"{line} {argument}"
    return text[: found.start()] + line + text[found.end() :]
