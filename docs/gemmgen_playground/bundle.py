"""Builds what the page loads at run time into ``build/playground``, from where the site takes it.

    python docs/gemmgen_playground/bundle.py

Fetches Pyodide from npm, at one version with one digest, and puts gemmgen, the packages it needs
and Python's library into two archives of bytecode, compiled by that Pyodide in Node.  The packages
are those of this environment, without their compiled parts.  Nothing is fetched when the page runs.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import io
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BUILT = ROOT / "build" / "playground"
MANIFEST = "manifest.json"
VERSION = "314.0.7"
DIGEST = (
    "sha512-0YvXxEhfEdpLfb/XkM2BFAeMROq0iMUX2bzzH9pO"
    "ttyMcWkwq+HbE5uyuGD82LN7y2q+SNvi/6V5JEsOlD2R1A=="
)
"""Of npm's archive: its ``integrity``."""
PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "pyodide-lock.json")
PACKAGES = ("lark", "jinja2", "markupsafe", "click", "svg.py")
LEFT_OUT = (".so", ".pyc", ".cpp", ".h", ".pyi")
"""Suffixes of files that a page has no use for."""
MISSING = "The playground is not part of this site: it was built without `make playground`."


def main() -> int:
    if shutil.which("npm") is None or shutil.which("node") is None:
        print("the playground is built with npm and node, and one is missing", file=sys.stderr)
        return 3
    with tempfile.TemporaryDirectory() as folder:
        found = build(Path(folder))
    print(f"{BUILT.relative_to(ROOT)}: {sum(found.values()) / 1e6:.1f} MB")
    for name, size in found.items():
        print(f"  {size / 1e6:6.2f} MB  {name}")
    return 0


def build(work: Path) -> dict[str, int]:
    """Fill ``BUILT``; return its files and their sizes."""
    fetched = fetch(work)
    app = work / "app"
    gather(app)
    made = work / "made"
    made.mkdir()
    compiler = [shutil.which("node") or "node", str(HERE / "compile.mjs"), fetched, app, made]
    subprocess.run([str(part) for part in compiler], check=True)
    shutil.rmtree(BUILT, ignore_errors=True)
    BUILT.mkdir(parents=True)
    runtime = f"pyodide-{VERSION}"
    (BUILT / runtime).mkdir()
    for name in PYODIDE:
        shutil.copy(fetched / name, BUILT / runtime / name)
    names = {key: _put(made / f"{key}.zip") for key in ("stdlib", "app")}
    manifest = {"ready": True, "runtime": runtime, **names}
    (BUILT / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    files = sorted(path for path in BUILT.rglob("*") if path.is_file())
    return {path.relative_to(BUILT).as_posix(): path.stat().st_size for path in files}


def _put(path: Path) -> str:
    """A file in ``BUILT`` under a name that changes with its content, for caches."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    name = f"{path.stem}-{digest}{path.suffix}"
    shutil.copy(path, BUILT / name)
    return name


def fetch(work: Path) -> Path:
    """The folder of npm's package, unpacked; raises ``ValueError`` for another digest."""
    command = [shutil.which("npm") or "npm", "pack", "--silent", f"pyodide@{VERSION}"]
    subprocess.run(command, cwd=work, check=True, stdout=subprocess.DEVNULL)
    archive = (work / f"pyodide-{VERSION}.tgz").read_bytes()
    digest = f"sha512-{base64.b64encode(hashlib.sha512(archive).digest()).decode()}"
    if digest != DIGEST:
        raise ValueError(f"pyodide {VERSION} has the digest {digest}, not {DIGEST}")
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(work, filter="data")
    return work / "package"


def gather(app: Path) -> None:
    """Copies all Python that the page runs into ``app``."""
    sources = [
        *_folder(ROOT / "gemmgen", "gemmgen"),
        *_folder(ROOT / "examples", "gemmgen/_examples"),
        *_folder(HERE, "gemmgen_playground", skip="arrays"),
        *_folder(HERE / "arrays", "numpy"),
        *_folder(HERE.parent / "playground" / "puzzles", "playground/puzzles"),
    ]
    for name in PACKAGES:
        sources += _installed(name)
    for source, target in sources:
        path = app / target
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, path)


def _folder(folder: Path, to: str, skip: str = "") -> Iterator[tuple[Path, str]]:
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        kept = path.suffix not in LEFT_OUT and inside.parts[0] != skip
        if path.is_file() and kept:
            yield path, f"{to}/{inside.as_posix()}"


def _installed(name: str) -> Iterator[tuple[Path, str]]:
    """The files of an installed package, its license among them."""
    for file in importlib.metadata.distribution(name).files or ():
        if file.suffix not in LEFT_OUT and ".." not in file.parts:
            yield Path(str(file.locate())), file.as_posix()


def put_into(site: Path) -> None:
    """Copies ``BUILT`` to where the page looks for it; without it, a manifest that says so."""
    target = site / "playground" / "runtime"
    shutil.rmtree(target, ignore_errors=True)
    if (BUILT / MANIFEST).exists():
        shutil.copytree(BUILT, target)
    else:
        target.mkdir(parents=True)
        manifest = {"ready": False, "reason": MISSING}
        (target / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
