"""`lift completion`: a script for bash or zsh that completes commands, options, their values and scenario names."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from lift_ros.scenario import scenario_names

SHELLS = ("bash", "zsh")
_ZSH_HEAD = "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"
_SCRIPT = """\
# Completion of lift for {shell}; made by `lift completion {shell}`. To have it in every shell:
#   echo 'eval "$(lift completion {shell})"' >> ~/.{shell}rc
{head}_lift() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}"
    local scenarios="{scenarios}"
    local command="" words="" files="" index=1
    while (( index < COMP_CWORD )); do
        case "${{COMP_WORDS[index]}}" in
            -*) ;;
            *) command="${{COMP_WORDS[index]}}"; break ;;
        esac
        index=$(( index + 1 ))
    done
    case "$command $previous" in
{values}
        *)
            case "$command" in
{commands}
            esac
            ;;
    esac
    COMPREPLY=( $(compgen -W "$words" -- "$word") )
    if [ -n "$files" ]; then
        local IFS=$'\\n'
        compopt -o filenames 2>/dev/null
        COMPREPLY+=( $(compgen -f -- "$word") )
    fi
}}
complete -F _lift lift
"""
_VALUE_INDENT, _COMMAND_INDENT = 8 * " ", 16 * " "


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `lift completion`."""
    parser.add_argument("shell", choices=SHELLS, help="print the script for this shell")


def run(arguments: argparse.Namespace) -> int:
    """Print the script."""
    print(completion_script(arguments.shell, arguments.build_parser), end="")
    return 0


def completion_script(shell: str, build_parser: Callable[[str | None], argparse.ArgumentParser]) -> str:
    """Return the script, made from the parser with each of the commands selected; zsh takes the function of bash."""
    names = list(_subparsers(build_parser(None)))
    values: dict[str, list[str]] = {}  # options by what they offer
    commands = [f'{_COMMAND_INDENT}"") words="{" ".join([*names, "--help", "--version"])}" ;;']
    for name in names:
        actions = _subparsers(build_parser(name))[name]._actions
        for action in actions:
            if action.option_strings and action.nargs != 0:
                values.setdefault(_offers(action), []).extend(f'"{name} {word}"' for word in action.option_strings)
        commands.append(f"{_COMMAND_INDENT}{name}) {_anything(actions)} ;;")
    head = _ZSH_HEAD if shell == "zsh" else ""
    cases = [f"{_VALUE_INDENT}{'|'.join(options)}) {offers} ;;" for offers, options in values.items()]
    return _SCRIPT.format(
        shell=shell,
        head=head,
        scenarios=" ".join(scenario_names()),
        values="\n".join(cases),
        commands="\n".join(commands),
    )


def _subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    table = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return dict(table.choices)


def _anything(actions: Sequence[argparse.Action]) -> str:
    """Return what may stand where no option waits for its value: an option, or what the command is about."""
    options = " ".join(word for action in actions for word in action.option_strings if word.startswith("--"))
    about = [_offers(action) for action in actions if not action.option_strings]
    if not about:
        return f'words="{options}"'
    return f'case "$word" in -*) words="{options}" ;; *) {"; ".join(about)} ;; esac'


def _offers(action: argparse.Action) -> str:
    """Return the assignments that say what an option or an argument may be."""
    if action.choices:
        return f'words="{" ".join(map(str, action.choices))}"'
    if "SCENARIO" in str(action.metavar) or action.dest == "scenario":
        return 'words="$scenarios" files=yes'
    return "files=yes" if action.type is Path else ":"
