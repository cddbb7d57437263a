"""The commands' reference, of their own parsers: a page an app."""

from __future__ import annotations

import re
from argparse import SUPPRESS, Action, ArgumentParser
from collections import defaultdict
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path

from django.core.management import get_commands, load_command_class
from django.core.management.base import DjangoHelpFormatter

from config.documentation.schema_tables import cell, table

FOLDER = "reference/commands"
# Options that Django gives each command; one that matters here is said in the introduction.
OF_DJANGO = DjangoHelpFormatter.show_last | {"--help"}
ABOUT = {
    "accounts": "Users, teams and the audit log",
    "annotation": "Studies, protocols, labels and agreement",
    "config": "The site as a whole",
    "console": "The whole loop, reports and datasets",
    "hits": "Publishing, collecting, reviewing, paying",
    "marketplace": "Running a marketplace",
    "metrics": "Metrics and judges",
    "replications": "Published studies",
    "results": "Computed results",
    "retrieval": "Test collections",
    "simulation": "Simulated users",
    "validation": "Metrics, judges and systems held against people",
    "work": "Background work",
}
INTRODUCTION = """# Commands

Every command of `python manage.py`, made of the commands' own parsers; `python manage.py NAME
--help` prints the same. A slip in a command's arguments, and what it refuses, end with exit code 2
and a sentence. All take `--traceback`, `--verbosity` and `--no-color` as well. Files and folders
are named from where the command is run.

"""


def command_parsers(root: Path) -> dict[str, tuple[str, ArgumentParser]]:
    """Each of the project's own commands with its app and its parser, in alphabetical order."""
    parsers: dict[str, tuple[str, ArgumentParser]] = {}
    for name, app in sorted(get_commands().items()):
        module = import_module(app) if isinstance(app, str) else app
        if root not in Path(str(module.__file__)).parents or ".venv" in str(module.__file__):
            continue
        command = load_command_class(str(module.__name__), name)
        parsers[name] = (str(module.__name__), command.create_parser("manage.py", name))
    return parsers


def command_pages(root: Path) -> dict[str, str]:
    by_app: dict[str, dict[str, ArgumentParser]] = defaultdict(dict)
    for name, (app, parser) in command_parsers(root).items():
        if app in ABOUT:
            by_app[app][name] = parser
    pages = {f"{FOLDER}/{app}.md": _app_page(app, found) for app, found in by_app.items()}
    return pages | {f"{FOLDER}/index.md": INTRODUCTION + "\n".join(_contents(by_app))}


def _contents(by_app: Mapping[str, Mapping[str, ArgumentParser]]) -> Iterator[str]:
    for app, parsers in by_app.items():
        yield f"## {ABOUT[app]}\n"
        rows = [
            [f"[`{name}`]({app}.md#{name})", cell(_first_sentence(parser.description or ""))]
            for name, parser in parsers.items()
        ]
        yield table(["command", "what it does"], rows)


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.:;])\s", text, maxsplit=1)[0].rstrip(":;")


def _app_page(app: str, parsers: Mapping[str, ArgumentParser]) -> str:
    sections = (_section(name, parser) for name, parser in parsers.items())
    return f"# {ABOUT[app]}\n\n" + "\n".join(sections)


def _section(name: str, parser: ArgumentParser) -> str:
    actions = [action for action in parser._actions if not OF_DJANGO & {*action.option_strings}]
    positional = [action for action in actions if not action.option_strings]
    options = [action for action in actions if action.option_strings]
    parts = [
        f"## {name} {{ #{name} }}\n",
        f"{_escaped(parser.description or '')}\n",
        f"    python manage.py {' '.join([name, *_usage(positional, options)])}\n",
    ]
    if actions:
        rows = [[_named(action), _meaning(action)] for action in [*positional, *options]]
        parts.append(table(["argument", "meaning"], rows))
    return "\n".join(parts)


def _usage(positional: list[Action], options: list[Action]) -> Iterator[str]:
    yield from map(_metavar, positional)
    yield from (_named_plainly(action) for action in options if action.required)
    if any(not action.required for action in options):
        yield "[options]"


def _metavar(action: Action) -> str:
    """What stands for an action's value."""
    if action.nargs == 0:
        return ""
    if isinstance(action.metavar, tuple):
        return " ".join(action.metavar)
    if action.choices is not None and not action.metavar:
        return "|".join(map(str, action.choices))
    name = action.metavar or action.dest.upper()
    return f"{name} ..." if action.nargs in ("+", "*") else name


def _named_plainly(action: Action) -> str:
    return " ".join(filter(None, [(action.option_strings or [""])[-1], _metavar(action)]))


def _named(action: Action) -> str:
    required = " (required)" if action.option_strings and action.required else ""
    return f"`{cell(_named_plainly(action))}`{required}"


def _meaning(action: Action) -> str:
    parts = []
    if action.help and action.help is not SUPPRESS:
        parts.append(_escaped(action.help.replace("%(default)s", str(action.default))))
    if _has_default(action) and "default" not in (action.help or ""):
        parts.append(f"default: {_escaped(str(action.default))}")
    return cell("; ".join(parts).replace("%%", "%"))


def _has_default(action: Action) -> bool:
    is_flag = action.nargs == 0
    return not is_flag and action.default not in (None, SUPPRESS, "", [], ())


def _escaped(text: str) -> str:
    """A sentence as Markdown: what looks like markup is text."""
    return re.sub(r"([*_<>\[\]`])", r"\\\1", text)
