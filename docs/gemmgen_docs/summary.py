"""README's table and picture, from the files of ``docs/data``.

PYTHONPATH=docs python -m gemmgen_docs.summary     # writes both; needs the extra docs
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

from gemmgen.schedule.examples import LADDER as RUNGS
from gemmgen_docs.cublas import NAMED, shares, tensor_shares
from gemmgen_docs.markdown import table

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
LADDER = ROOT / "docs" / "data" / "ladder.json"
DEFAULT_PATH = ROOT / "docs" / "data" / "default_path_bf16.json"
BLOCK_SCALES = ROOT / "docs" / "data" / "block_scales.json"
MARKS = BEGIN, END = "<!-- summary -->", "<!-- /summary -->"
SIZES = (4096, 8192)
TERMS = {
    "f32 as bf16x3": "f32 as bf16x3 (`decompose`)",
    "f32 as f16x3": "f32 as f16x3 (`decompose`), a larger error",
}
"""The cases of ``tensor_cores.json`` that multiply terms of f32 operands, by the table's names."""
TYPES = {
    "bf16": "bf16",
    "f16": "f16",
    "fp8": "FP8 (e4m3), no scales",
    "i8": "i8",
    "tf32": "tf32",
    "f64": "f64",
}
"""The cases of ``tensor_cores.json`` that the table has, and what it calls them."""
SIZE = 4096
"""Of the picture."""


def rows() -> Iterator[tuple[str, ...]]:
    """Inputs, the share at each of ``SIZES``, TFLOP/s at the last one, and the rival."""
    order = tensor_shares.IN_ROWS.replace(" * ", " ")
    f32 = [line for line in shares.read() if line.checked and line.storage() == order]
    found = [next(line for line in f32 if line.spelled() == str(size)) for size in SIZES]
    speed = f"{found[-1].tflops():.0f}"
    yield "f32", *(f"{line.share:.0%}" for line in found), speed, "cuBLAS, f32 pedantic"
    best = tensor_shares.best(tensor_shares.measured())
    for what, name in TERMS.items():
        lines = [_square(best, what, size) for size in SIZES]
        cells = [f"{line.share:.0%}" for line in lines if line.checked and line.share]
        yield name, *cells, f"{lines[-1].tflops:.0f}", "cuBLAS, f32 pedantic"
    for what, name in TYPES.items():
        lines = [_square(best, what, size) for size in SIZES]
        cells = [f"{line.of_best:.0%}" for line in lines if line.checked and line.of_best]
        assert len(cells) == len(SIZES), f"a result of {what} is wrong, or has no rival"
        yield name, *cells, f"{lines[-1].tflops:.0f}", "the best of cuBLAS and cublasLt"
    yield _scaled()
    yield _chosen()


MOST_ERROR = 4e-3
"""Relative to the largest element, of FP8 with scales: a product that is off more is not shown."""


def _scaled() -> tuple[str, ...]:
    """The row of ``benchmarks/block_scales.py``: FP8 with scales of blocks, against PyTorch."""
    run = json.loads(BLOCK_SCALES.read_text(encoding="utf-8"))
    named = {tuple(row["shape"]): row for row in run["rows"]}
    found = [named[size, size, size] for size in SIZES]
    for row in found:
        assert row["errors"]["plan 0"] < MOST_ERROR, row["shape"]
    speed = 2 * SIZES[-1] ** 3 / found[-1]["us"]["plan 0"] * 1e-6
    name = "FP8 with scales of blocks of 128"
    return name, *(f"{row['share']:.0%}" for row in found), f"{speed:.0f}", "`torch._scaled_mm`"


def _chosen() -> tuple[str, ...]:
    """The row of ``benchmarks/default_path.py``: what ``suggest`` chooses, against PyTorch."""
    run = json.loads(DEFAULT_PATH.read_text(encoding="utf-8"))
    rows = run["rows"]
    named = {tuple(row["shape"]): row for row in rows[:NAMED]}
    found = [named[size, size, size] for size in SIZES]
    drawn = [row["share"] for row in rows[NAMED:]]
    mean = math.exp(fmean(map(math.log, drawn)))
    speed = 2 * SIZES[-1] ** 3 / found[-1]["ours_us"] * 1e-6
    name = f"bf16, no schedule given; {len(drawn)} random shapes: {mean:.0%}"
    return name, *(f"{row['share']:.0%}" for row in found), f"{speed:.0f}", "`torch.mm`"


def _square(lines: tuple[tensor_shares.Line, ...], what: str, size: int) -> tensor_shares.Line:
    wanted = what, tensor_shares.IN_ROWS, (size, size, size)
    return next(line for line in lines if (line.what, line.product, line.shape) == wanted)


def block() -> str:
    """The table with its marks."""
    header = ("A and B", *(f"{size}³" for size in SIZES), f"TFLOP/s, {SIZES[-1]}³", "compared with")
    return f"{BEGIN}\n{table(header, list(rows()), right=range(1, 4)).strip()}\n{END}"


def rungs() -> tuple[tuple[str, float], ...]:
    """The rungs of the ladder, in its order, and their shares of cuBLAS at ``SIZE``."""
    found = json.loads(LADDER.read_text(encoding="utf-8"))
    shares = {row["name"]: row["share"] for row in found if row["shape"]["M"] == SIZE}
    return tuple((name, shares[name]) for name in RUNGS)


WITHIN = 0.85
"""The label of a longer bar is within it: beside it, it would cross the line of cuBLAS."""
INK = "#1f2328"


def picture(*, dark: bool) -> str:
    """A bar chart of the ladder as SVG, its words as text."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    ink = "#e6edf3" if dark else INK
    style = {"svg.fonttype": "none", "svg.hashsalt": "gemmgen", "font.family": "sans-serif"}
    style |= {"text.color": ink, "axes.labelcolor": ink, "xtick.color": ink, "ytick.color": ink}
    names, values = zip(*rungs(), strict=True)
    with pyplot.rc_context(style):
        figure, axes = pyplot.subplots(figsize=(6.4, 3.4), layout="constrained")
        colors = [pyplot.get_cmap("viridis")(0.15 + 0.75 * value) for value in values]
        bars = axes.barh(names, [100 * value for value in values], color=colors)
        labels = axes.bar_label(bars, [f"{value:.1%}" for value in values], padding=4)
        for label, value in zip(labels, values, strict=True):
            if value > WITHIN:
                label.set(x=-4, horizontalalignment="right", color=INK)
        axes.axvline(100, color=ink, linewidth=1, linestyle="--")
        axes.set_xlim(0, 112)
        axes.set_xlabel(f"% of cuBLAS, f32, M = N = K = {SIZE}, NVIDIA H200")
        axes.invert_yaxis()
        axes.tick_params(left=False)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.spines["bottom"].set_color(ink)
        written = io.StringIO()
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
        pyplot.close(figure)
    return "".join(f"{line.rstrip()}\n" for line in written.getvalue().splitlines())


def path(*, dark: bool) -> Path:
    """The file of a picture."""
    return PICTURES / f"ladder_{'dark' if dark else 'light'}.svg"


def main() -> None:
    readme = ROOT / "README.md"
    text = shares.replaced(readme.read_text(encoding="utf-8"), block(), MARKS)
    readme.write_text(text, encoding="utf-8")
    PICTURES.mkdir(exist_ok=True)
    for dark in (False, True):
        path(dark=dark).write_text(picture(dark=dark), encoding="utf-8")


if __name__ == "__main__":
    main()
