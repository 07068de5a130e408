"""List the text that users read, and check it for words we do not use.

    python scripts/user_strings.py                  # every string with its file and line
    python scripts/user_strings.py --check          # only those with a word from `AVOID`; exit 1 if there are any

What counts as text for users: in Python files, every string of two or more words that is not a docstring, and the
docstrings of commands (click prints them as help); all of the templates, workflows and Markdown pages. Docstrings of
other functions are for the reader of the code and are checked, too, but listed only with `--docstrings`.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

AVOID = {
    r"\bexamin(e|es|ed|er|ing|ation|ations)\b": "test",
    r"\bbroken instrument|\bthe instrument\b": "infrastructure error",
    r"\b(what|as|than) (is|was) usual\b|\bas usual\b|\bthan usual\b": "baseline",
    r"\bspeaks? of\b": "is about",
    r"\bparts at\b|\bhere they part\b": "diverges at, first difference",
    r"\bno such call\b": "not called",
    r"\bthat says something\b": "non-empty",
    r"\bwhere there (is|are) none\b": "if there is none",
    r"(?<!\bthere )(?<!\bthat )\bis no (?!longer|more\b|other|way\b|reason\b|need\b)\w+": "is not a",
    r"\banew\b": "again",
    r"\bmend(s|ed|ing)?\b": "fix",
    r"\b(un)?heed(s|ed|ing)?\b": "follow",
    r"\bdear(er|est)\b": "most expensive",
    r"\bof (one's|its|their|his|your|our) own\b": "your own, its own",
    r"\bwhat (is|was|are|were) (told|asked|kept|held|given|said|made|wanted)\b": "name the thing",
    r"\b(is|are|be) told\b": "shown, printed, reported",
    r"\bheld against\b|\bhold(s|ing)? .{0,30}\bagainst\b": "compared with",
    r"\bwhoever\b|\bin so many words\b|\bif need be\b|\bthereof\b": "say it plainly",
    r"\bvacuous(ly)?\b": "ineffective",
    r"\bdecides nothing\b|\binforms\b": "report only, does not affect the verdict",
    r"\bonce more\b": "again",
    r"\bAfter this page\b": "begin with the thing",
}
"""Words and phrases that sound translated or mean something private to us, and what to write instead."""

WORD_LISTS = ("src/proctor/evaluators/injection.py",)
"""Modules with lists of words and patterns to look for in answers. Their strings are data and nobody reads them."""

TEXT_FILES = ("*.md", "*.html", "*.tmpl", "*.yml", "*.yaml", "*.txt", "*.jinja", "*.css", "*.js")


@dataclass(frozen=True)
class Text:
    path: Path
    line: int
    text: str
    is_docstring: bool = False


def texts_in_python(path: Path) -> Iterator[Text]:
    """The strings of a module. An f-string is one text, with `{}` for each value."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in node.body:
                # The first string of a block, and a string after a field, which documents it.
                if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                    docstrings[id(statement.value)] = not _is_command(node)
    parts_of_f_strings: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts_of_f_strings |= {id(part) for part in node.values}
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts_of_f_strings:
            text = node.value
        else:
            continue
        if len(text.split()) > 1:
            yield Text(path, node.lineno, text, docstrings.get(id(node), False))


def _is_command(node: ast.AST) -> bool:
    decorators = getattr(node, "decorator_list", [])
    return any("command" in ast.unparse(decorator) or "group" in ast.unparse(decorator) for decorator in decorators)


def texts_in_file(path: Path) -> Iterator[Text]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip():
            yield Text(path, number, line.strip())


def all_texts(docstrings: bool) -> Iterator[Text]:
    for path in _tracked("src/*.py", "examples/*.py"):
        if str(path.relative_to(ROOT)) in WORD_LISTS:
            continue
        yield from (text for text in texts_in_python(path) if docstrings or not text.is_docstring)
    for path in _tracked(*TEXT_FILES):
        if not {"assets", "tests", "benchmarks"} & set(path.relative_to(ROOT).parts):
            yield from texts_in_file(path)


def _tracked(*patterns: str) -> list[Path]:
    listing = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in sorted(set(listing.stdout.split("\n"))) if name and (ROOT / name).is_file()]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--check", action="store_true", help="print only texts with a word to avoid; exit 1 if any")
    parser.add_argument(
        "--docstrings", action="store_true", help="include docstrings that only readers of the code see"
    )
    options = parser.parse_args()
    avoid = {re.compile(pattern, re.IGNORECASE): better for pattern, better in AVOID.items()}
    count = 0
    for text in all_texts(options.docstrings or options.check):
        place = f"{text.path.relative_to(ROOT)}:{text.line}"
        if not options.check:
            print(f"{place}: {' '.join(text.text.split())}".encode("utf-8", "backslashreplace").decode())
            continue
        for pattern, better in avoid.items():
            if match := pattern.search(text.text):
                count += 1
                print(f"{place}: {match.group()!r}; write: {better}")
    if options.check:
        print(f"{count} to rewrite" if count else "no words to avoid")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
