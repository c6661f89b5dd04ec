"""The cases of ``tensor_cores.toml``: texts of schedules, and the shapes that they run at."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemmgen.explore.suggest import suggest
from gemmgen.ir.decompositions import Fast

HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "examples"
FILE = HERE / "tensor_cores.toml"
FROM = "from"
Statements = str | bool | list[str]
"""What replaces a directive's statements in a schedule: arguments, several, or none of them."""


@dataclass(frozen=True)
class Group:
    """Schedules of one product in one pair of storage orders, by name, and their shapes.

    ``comparable``: what ``suggest`` writes for the product is another schedule for the same case,
    and not one with other instructions or another accuracy.
    """

    what: str
    types: str
    product: str
    texts: tuple[tuple[str, str], ...]
    shapes: tuple[tuple[int, int, int], ...]
    fast: Fast
    comparable: bool = True

    def suggested(self, shape: tuple[int, int, int]) -> str:
        """The schedule that ``suggest`` writes for the product at a shape."""
        gemm, dtype = f"C[m, n] = {self.product}", _types(self.types)
        return suggest(gemm, shape, dtype=dtype, fast=self.fast).text


def read(path: Path = FILE) -> tuple[Group, ...]:
    """All groups of a file, in its order."""
    with path.open("rb") as file:
        found = tomllib.load(file)
    variants: dict[str, dict[str, Statements]] = found.get("variant", {})
    groups: list[Group] = []
    for case in found["case"]:
        for product in case.get("products", [""]):
            groups.append(_group(case, product, variants))
    return tuple(groups)


def _group(
    case: Mapping[str, Any], product: str, variants: Mapping[str, Mapping[str, Statements]]
) -> Group:
    """``product``: the inputs in their storage orders; empty: as the first schedule has them."""
    stated: dict[str, Statements] = {"dtype": _types(case["types"])}
    if product:
        stated["gemm"] = f"C[m, n] = {product}"
    texts = tuple(
        (name, changed(_file(variants.get(name, {FROM: name})), _others(variants, name) | stated))
        for name in case["schedules"]
    )
    said = product or _product(texts[0][1])
    shapes = tuple((s, s, s) if isinstance(s, int) else tuple(s) for s in case["shapes"])
    return Group(
        case["what"],
        case["types"],
        said,
        texts,
        shapes,
        case.get("fast", False),
        case.get("comparable", True),
    )


def changed(text: str, statements: Mapping[str, Statements]) -> str:
    """A schedule whose statements of some directives are replaced; new ones come last."""
    left, lines = dict(statements), list[str]()
    for line in text.splitlines():
        directive = line.split(maxsplit=1)[0] if line.split() else "#"
        if directive in statements:
            lines += _written(directive, left.pop(directive, False))
        elif not directive.startswith("#"):
            lines.append(line)
    for directive, arguments in left.items():
        lines += _written(directive, arguments)
    return "".join(f"{line}\n" for line in lines)


def _written(directive: str, arguments: Statements) -> list[str]:
    if isinstance(arguments, bool):
        return [directive] if arguments else []
    several = [arguments] if isinstance(arguments, str) else arguments
    return [f"{directive} {each}".rstrip() for each in several]


def _file(variant: Mapping[str, Statements]) -> str:
    return (EXAMPLES / f"{variant[FROM]}.sched").read_text(encoding="utf-8")


def _others(variants: Mapping[str, Mapping[str, Statements]], name: str) -> dict[str, Statements]:
    return {key: value for key, value in variants.get(name, {}).items() if key != FROM}


def _types(types: str) -> str:
    """One type for all has its own statement."""
    a, b, c = types.split()
    return a if a == b == c else f"A={a} B={b} C={c}"


def _product(text: str) -> str:
    """``A[m, k] * B[n, k]`` of a schedule."""
    (line,) = (line for line in text.splitlines() if line.startswith("gemm "))
    return line.partition("=")[2].strip()
