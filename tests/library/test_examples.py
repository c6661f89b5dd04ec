"""The specs under ``examples/libraries``: they are read, and what they say is compiled."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from gemmgen.library.chosen_kernels import kernels_of
from gemmgen.library.library_files import files_of
from gemmgen.library.library_spec import parse_spec

FOLDER = Path(__file__).parents[2] / "examples" / "libraries"
SPECS = sorted(path.stem for path in FOLDER.glob("*.toml"))
LAYERS = {
    "gpt2": {"qkv": (2304, 768), "projection": (768, 768), "up": (3072, 768), "down": (768, 3072)},
    "llama3_8b": {
        "qkv": (4096 + 2 * 8 * 128, 4096),
        "output": (4096, 4096),
        "up": (14336, 4096),
        "gate": (14336, 4096),
        "down": (4096, 14336),
    },
}
"""The columns and the depth of each product, of the published models."""


def text_of(name: str) -> str:
    return (FOLDER / f"{name}.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SPECS)
def test_an_example_has_the_products_of_its_model(name: str) -> None:
    spec = parse_spec(text_of(name), name)
    assert spec.name == name and {x.name for x in spec.products} == set(LAYERS[name])
    for product in spec.products:
        (span,) = product.ranges
        assert (span.low[0], span.high[0]) == (1, 4096) and product.shapes == ()
        assert span.low[1:] == span.high[1:] == LAYERS[name][product.name]


def small(name: str) -> dict[str, str]:
    """The library for 16 rows."""
    spec = parse_spec(text_of(name).replace("1..4096x", "16x"), name)
    return files_of(spec, list(kernels_of(spec)))


@pytest.mark.by_default("gpt2")
@pytest.mark.parametrize("name", SPECS)
def test_an_example_is_written_for_one_number_of_rows(name: str) -> None:
    files = small(name)
    for product in LAYERS[name]:
        assert f"def {product}(" in files[f"python/{name}/__init__.py"]
        assert f"kernels/{name}_{product}_1.cu" in files


@pytest.mark.proof
@pytest.mark.skipif(not shutil.which("nvcc"), reason="there is no nvcc")
@pytest.mark.parametrize("name", SPECS)
def test_a_product_of_an_example_compiles(name: str, tmp_path: Path) -> None:
    """The last one: its epilogue reads another matrix."""
    files = small(name)
    product = [*LAYERS[name]][-1]
    kernels = [x for x in files if re.match(rf"kernels/{name}_{product}_", x)]
    for path in (f"{name}.h", f"{product}.cu", *kernels):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(files[path], encoding="utf-8")
    options = ["-std=c++17", "-gencode=arch=compute_90a,code=sm_90a", "-I.", "-c"]
    done = subprocess.run(
        ["nvcc", *options, f"{product}.cu", *kernels], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0 and "warning" not in done.stderr, done.stderr
