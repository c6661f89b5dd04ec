"""A site of the playground alone, which is built in a second."""

from __future__ import annotations

import shutil
from pathlib import Path

import yaml
from gemmgen_playground import bundle

DOCS = bundle.HERE.parent
CONFIG = DOCS.parent / "mkdocs.yml"
LEFT_OUT = ("nav", "hooks", "watch", "markdown_extensions", "exclude_docs", "validation", "plugins")


class Plain(yaml.SafeLoader):
    """Leaves out Python's names, which MkDocs reads."""


Plain.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


def build(folder: Path) -> Path:
    """Builds the page with the site's theme and styles; the folder of the site."""
    from mkdocs.commands.build import build as build_site
    from mkdocs.config import load_config

    docs, config = folder / "docs", folder / "mkdocs.yml"
    docs.mkdir()
    shutil.copy(DOCS / "playground.md", docs)
    for name in ("index", "commands", "proof"):
        (docs / f"{name}.md").write_text(f"# {name}\n", encoding="utf-8")
    settings = yaml.load(CONFIG.read_text(encoding="utf-8"), Plain)
    assets = [*settings["extra_css"], *settings["extra_javascript"], "playground/page.js"]
    for name in {Path(asset).parts[0] for asset in assets}:
        shutil.copytree(DOCS / name, docs / name)
    kept = {key: value for key, value in settings.items() if key not in LEFT_OUT}
    kept |= {"site_dir": str(folder / "site"), "docs_dir": str(docs), "strict": True}
    kept["markdown_extensions"] = ["attr_list", "md_in_html"]
    config.write_text(yaml.safe_dump(kept), encoding="utf-8")
    build_site(load_config(str(config)))
    bundle.put_into(folder / "site")
    return folder / "site"
