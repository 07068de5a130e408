"""`proctor completion bash|zsh|fish`, and what a shell then offers at the tab key: commands, options, cases, runs.

The script that it prints calls `proctor` with the line so far in `_PROCTOR_COMPLETE` and reads a candidate a line.
Nothing is run and nothing is written: suites are read as data, and the store is opened for reading only.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem, ShellComplete, split_arg_string

from proctor.base.errors import InvalidSuite
from proctor.cases.formats.loading import load_file
from proctor.cli import COMMANDS, group
from proctor.cli.configuration import read_configuration
from proctor.evaluators import shipped_evaluators
from proctor.results.store.store import FILE

BASH = r"""# Completion of proctor for bash 4.4 and newer.
_proctor_complete() {
    local line="${COMP_LINE:0:COMP_POINT}" found item word cut=""
    found=$(_PROCTOR_COMPLETE="$line" "$1" 2>/dev/null)
    COMPREPLY=()
    if [ "$found" = ":file" ]; then
        compopt -o default
        return
    fi
    [ -n "$found" ] || return
    word="${line##*[[:space:]]}"
    # bash begins a new word at a colon, and replaces only that
    case "$COMP_WORDBREAKS" in *:*) cut="${word%"${word##*:}"}" ;; esac
    while IFS= read -r item; do
        printf -v item '%q' "${item#"$cut"}"
        COMPREPLY+=("$item")
    done <<< "$found"
}
complete -o nosort -F _proctor_complete proctor
"""

ZSH = r"""#compdef proctor
# Completion of proctor for zsh.
_proctor() {
    local -a found
    found=("${(@f)$(_PROCTOR_COMPLETE="${(j: :)words[1,CURRENT]}" "${words[1]}" 2>/dev/null)}")
    if [[ "$found[1]" == ":file" ]]; then
        _files
    elif [[ -n "$found[1]" ]]; then
        compadd -V proctor -a found
    fi
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _proctor "$@"
else
    compdef _proctor proctor
fi
"""

FISH = r"""# Completion of proctor for fish 3.1 and newer.
function __proctor_complete
    set -l line (commandline -cp | string collect)
    set -l found (env _PROCTOR_COMPLETE="$line" proctor 2>/dev/null)
    if test "$found[1]" = ":file"
        __fish_complete_path (commandline -ct)
    else
        printf '%s\n' $found
    end
end
complete --command proctor --no-files --keep-order --arguments "(__proctor_complete)"
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


@click.command("completion")
@click.argument("shell", type=click.Choice(sorted(SCRIPTS)))
def command(shell: str) -> int:
    """Print a script for bash, zsh or fish that completes commands, options, cases, tags, runs and evaluators.

    \b
    bash:  eval "$(proctor completion bash)"         in ~/.bashrc
    zsh:   eval "$(proctor completion zsh)"          in ~/.zshrc, after compinit
    fish:  proctor completion fish | source          in ~/.config/fish/config.fish
    """
    click.echo(SCRIPTS[shell], nl=False)
    return 0


FILES = ":file"
"""Said instead of candidates: the shell completes names of files."""
MOST_FILES, MOST_BYTES = 30, 1_000_000
"""So many files of a folder, and so large ones, are read for their cases."""
MOST_RUNS = 30


def complete(line: str) -> None:
    """Print the candidates for the last word of a line; whatever goes wrong, a shell gets none and no traceback."""
    try:
        found = candidates(line)
    except Exception:  # a person who presses the tab key cannot mend anything there
        return
    sys.stdout.write("".join(f"{item}\n" for item in found))


def candidates(line: str) -> list[str]:
    words = split_arg_string(line)[1:]
    incomplete = "" if not line or line[-1].isspace() or not words else words.pop()
    shell = _Completer(group, {}, "proctor", "_PROCTOR_COMPLETE")
    try:
        items = shell.get_completions(words, incomplete)
    except click.ClickException:  # a line that is wrong already
        return []
    if any(item.type in ("file", "dir") for item in items):
        return [FILES]
    return [item.value for item in items if item.value and str(item.value).isprintable()]


class _Completer(ShellComplete):
    """Knows click's grammar; every command that it meets is taught what its values may be."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        command: click.Command = self.cli
        context = click.Context(self.cli)
        for word in args:
            found = command.get_command(context, word) if isinstance(command, click.Group) else None
            if found is not None:
                command = found
                _teach(command)
        if command is self.cli and not incomplete.startswith("-"):
            # click would import every command to ask for its help
            return [CompletionItem(name) for name in COMMANDS if name.startswith(incomplete)]
        return super().get_completions(args, incomplete)


def _teach(command: click.Command) -> None:
    for parameter in command.params:
        find = VALUES.get((command.name or "", parameter.name or "")) or VALUES.get(("", parameter.name or ""))
        metavar = str(getattr(parameter, "metavar", "") or "")
        if find is None and isinstance(parameter, click.Option) and any(n in metavar for n in ("FILE", "DIR", "PATH")):
            find = _files
        if find is not None:
            parameter.type = _Completed(parameter.type, find)


class _Completed(click.ParamType):  # type: ignore[type-arg]
    """A type whose values can be offered."""

    def __init__(self, inner: Any, find: Callable[[click.Context, str], Iterable[str]]) -> None:
        self.name = inner.name
        self._inner = inner
        self._find = find

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return self._inner.convert(value, param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        found = dict.fromkeys(self._find(ctx, incomplete))
        if FILES in found:
            return [CompletionItem(incomplete, type="file")]
        return [CompletionItem(value) for value in found if value.startswith(incomplete)]


def _files(ctx: click.Context, incomplete: str) -> Iterator[str]:
    yield FILES


def _cases(ctx: click.Context, incomplete: str) -> Iterator[str]:
    for suite in _suites(ctx):
        yield from (case.id for case in suite.cases)


def _tags(ctx: click.Context, incomplete: str) -> Iterator[str]:
    for suite in _suites(ctx):
        yield from (tag for case in suite.cases for tag in case.tags)


def _paths(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Files, and the cases of one once `::` follows its name."""
    file, sign, _ = incomplete.partition("::")
    if not sign:
        yield FILES
        return
    for suite in _read(Path(file)):
        yield from (f"{file}::{case.id}" for case in suite.cases)


def _runs(ctx: click.Context, incomplete: str) -> Iterator[str]:
    yield "last"
    for run_id, name, _ in _run_rows(ctx):
        yield from (name, run_id) if name else (run_id,)


def _suite_names(ctx: click.Context, incomplete: str) -> Iterator[str]:
    for _, _, suites in _run_rows(ctx):
        yield from (str(suite["name"]) for suite in suites)


def _evaluators(ctx: click.Context, incomplete: str) -> Iterator[str]:
    yield from shipped_evaluators()


def _suites(ctx: click.Context) -> Iterator[Any]:
    """The suites that the line names; else those of the working folder, and those of the latest runs."""
    given = [text for name in ("paths", "source") for text in _as_list(ctx.params.get(name))]
    if given:
        files = [Path(text.partition("::")[0]) for text in given]
    else:
        kept = [suite.get("path") for _, _, suites in _run_rows(ctx) for suite in suites]
        files = [*_suite_files(Path()), *(Path(path) for path in kept if path)]
    for path in dict.fromkeys(path.resolve() for path in files):
        yield from _read(path)


def _as_list(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else [item for item in value or () if isinstance(item, str)]


def _suite_files(folder: Path) -> list[Path]:
    endings = (".yaml", ".yml", ".json", ".jsonl", ".csv")
    return sorted(path for path in folder.iterdir() if path.suffix in endings and path.is_file())[:MOST_FILES]


def _read(path: Path) -> list[Any]:
    """The suites of a file or of a folder, also of one with mistakes; Python files are not run for this."""
    if path.is_dir():
        return [suite for file in _suite_files(path) for suite in _read(file)]
    if path.suffix == ".py" or not path.is_file() or path.stat().st_size > MOST_BYTES:
        return []
    try:
        return load_file(path)
    except InvalidSuite as error:
        return list(error.read)


def _run_rows(ctx: click.Context) -> list[tuple[str, str, list[dict[str, Any]]]]:
    """Id, name and suites of the latest runs; a store of another version is left as it is."""
    path = read_configuration().store(ctx.params.get("store")) / FILE
    if not path.is_file():
        return []
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=0.2)
    try:
        rows = connection.execute("SELECT id, name, info FROM runs ORDER BY no DESC LIMIT ?", (MOST_RUNS,)).fetchall()
    except sqlite3.Error:
        return []
    finally:
        connection.close()
    return [(run_id, name, json.loads(info).get("suites", [])) for run_id, name, info in rows]


VALUES: dict[tuple[str, str], Callable[[click.Context, str], Iterable[str]]] = {
    ("", "case_ids"): _cases,
    ("", "case_id"): _cases,
    ("", "tags"): _tags,
    ("", "run_id"): _runs,
    ("", "before"): _runs,
    ("", "after"): _runs,
    ("", "evaluators"): _evaluators,
    ("evaluators", "name"): _evaluators,
    ("runs", "suite"): _suite_names,
    ("compare", "suites"): _suite_names,
    ("", "paths"): _paths,
    ("", "source"): _paths,
}
"""By command and parameter, "" being every command: where its values are found."""
