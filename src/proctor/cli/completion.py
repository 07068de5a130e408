"""`proctor completion bash|zsh|fish`, and the completion of commands, options, cases and runs in a shell.

The script that it prints calls `proctor` with the line so far in `_PROCTOR_COMPLETE` and reads one candidate per line.
Nothing is run or written: suites are read as data, and the store is opened for reading only.
"""

from __future__ import annotations

import re
import sys

import click
from click.shell_completion import CompletionItem, ShellComplete, split_arg_string

from proctor.cli import group
from proctor.cli.help_pages import DocumentedCommand

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


@click.command("completion", cls=DocumentedCommand, examples=("proctor completion bash",))
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
"""Printed instead of candidates: the shell completes file names."""
FILE_NAMES = re.compile("FILE|DIR|PATH")


def complete(line: str) -> None:
    """Print the candidates for the last word of a line, or nothing if anything goes wrong."""
    try:
        items = candidates(line)
    except Exception:  # a traceback would only disturb someone who presses the tab key
        return
    sys.stdout.write("".join(f"{item}\n" for item in items))


def candidates(line: str) -> list[str]:
    """The completions of the last word of a line."""
    words = split_arg_string(line)[1:]
    incomplete = "" if not line or line[-1].isspace() or not words else words.pop()
    shell = _Completer(group, {}, "proctor", "_PROCTOR_COMPLETE")
    try:
        items = shell.get_completions(words, incomplete)
    except click.ClickException:  # the line is already wrong
        return []
    if any(item.type in ("file", "dir") for item in items):
        return [FILES]
    return [item.value for item in items if item.value and str(item.value).isprintable()]


class _Completer(ShellComplete):
    """Completes by click's grammar; an option whose value is called FILE, DIR or PATH completes file names."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        command: click.Command = self.cli
        context = click.Context(self.cli)
        for word in args:
            subcommand = command.get_command(context, word) if isinstance(command, click.Group) else None
            if subcommand is not None:
                command = subcommand
        for parameter in command.params:
            if parameter.type is click.STRING and FILE_NAMES.search(parameter.metavar or ""):
                parameter.type = click.Path()  # completes file names, and its values are text as before
        if command is self.cli and not incomplete.startswith("-"):
            # click would import every command to ask for its help
            names = self.cli.list_commands(context) if isinstance(self.cli, click.Group) else []
            return [CompletionItem(name) for name in names if name.startswith(incomplete)]
        return super().get_completions(args, incomplete)
