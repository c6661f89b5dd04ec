// node compile.mjs PYODIDE APP OUT: archives of bytecode, OUT/stdlib.zip and OUT/app.zip, compiled
// by the Python of PYODIDE from its own library and from the folder APP.
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [pyodide, app, out] = process.argv.slice(2).map((path) => resolve(path));
const { loadPyodide } = await import(pathToFileURL(`${pyodide}/pyodide.mjs`).href);
const python = await loadPyodide({ indexURL: `${pyodide}/` });
for (const [name, folder] of Object.entries({ pyodide, app, out })) {
  python.FS.mkdir(`/${name}`);
  python.mountNodeFS(`/${name}`, folder);
}
python.runPython(`
import importlib._bootstrap_external as external
import os
import zipfile
from importlib.util import source_hash

def entries_of_archive(path):
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if not info.is_dir():
                yield info.filename, archive.read(info)

def entries_of_folder(root):
    for folder, _, files in sorted(os.walk(root)):
        for file in sorted(files):
            path = os.path.join(folder, file)
            with open(path, "rb") as opened:
                yield os.path.relpath(path, root), opened.read()

def write(path, entries, optimize):
    """Modules as bytecode that is never compared with a source, other files as they are."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in entries:
            if name.endswith(".py"):
                code = compile(data, name, "exec", dont_inherit=True, optimize=optimize)
                data = external._code_to_hash_pyc(code, source_hash(data), False)
                name += "c"
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)

write("/out/stdlib.zip", entries_of_archive("/pyodide/python_stdlib.zip"), 2)
write("/out/app.zip", entries_of_folder("/app"), 0)
`);
