"""Writes the directives and functions of the language into the TextMate grammar."""

from __future__ import annotations

import json

from tests.editors.test_grammar import GRAMMAR, expected, read


def main() -> None:
    grammar = read()
    for name, pattern in expected().items():
        grammar["repository"][name]["match"] = pattern
    GRAMMAR.write_text(json.dumps(grammar, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
