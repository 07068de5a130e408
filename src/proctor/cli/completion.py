"""`proctor completion bash|zsh|fish`: the script by which a shell asks for candidates."""

from __future__ import annotations

import click

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
