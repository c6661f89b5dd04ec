"""The fused rung against what it replaces, as measured by ``benchmarks/fusion.py``."""

from __future__ import annotations

import json
from itertools import groupby

from gemmgen_docs import measured
from gemmgen_docs.markdown import table
from gemmgen_docs.translation import ENGLISH, said

FILE = "fusion.json"


def fusion(lang: str = ENGLISH) -> str:
    """Times of each way to compute ``relu(A @ B + bias)`` over that of the fused kernel."""
    rows = json.loads((measured.DATA / FILE).read_text(encoding="utf-8"))
    assert all(row["checked"] for row in rows)
    ways = list(dict.fromkeys((row["way"], row["passes"]) for row in rows if row["passes"]))
    lines: list[list[str]] = []
    for (size, k), group in groupby(rows, key=lambda row: (row["size"], row["k"])):
        at = {(row["way"], row["passes"]): row for row in group}
        ms = next(row["ms"] for way, row in at.items() if not way[1])
        lines.append(
            [f"{size} x {size} x {k}", f"{ms:.4f}", *(f"{at[way]['share']:.3f}" for way in ways)]
        )
    header = ["M x N x K", "`fused`, ms"]
    header += [f"`{way}` + {n} elementwise".replace("`cuBLAS`", "cuBLAS") for way, n in ways]
    note = (
        f"Times over that of `fused`, on an {rows[0]['gpu']}, interleaved, all results checked: "
        "`python benchmarks/fusion.py`. Two elementwise kernels add the bias and apply ReLU; one "
        "does both."
    )
    shown = table([said(x, lang) for x in header], lines, right=range(1, len(header)))
    return f"{shown}\n{said(note, lang)}\n"
