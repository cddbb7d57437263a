import json
import re
from argparse import SUPPRESS, Action, ArgumentParser
from collections import defaultdict
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path

from django.core.management import get_commands, load_command_class
from django.core.management.base import DjangoHelpFormatter

from annotation.protocols.templates import FOLDER, read_text, template_names
from config.documentation.api_pages import api_pages, cell, field_rows, table
from metrics.scorers.registry import Description, available

COMMANDS_FOLDER = "reference/commands"
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
    pages = {
        f"{COMMANDS_FOLDER}/{app}.md": f"# {ABOUT[app]}\n\n"
        + "\n".join(_section(name, parser) for name, parser in found.items())
        for app, found in by_app.items()
    }
    return pages | {f"{COMMANDS_FOLDER}/index.md": INTRODUCTION + "\n".join(_contents(by_app))}


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
    has_default = action.nargs != 0 and action.default not in (None, SUPPRESS, "", [], ())
    if has_default and "default" not in (action.help or ""):
        parts.append(f"default: {_escaped(str(action.default))}")
    return cell("; ".join(parts).replace("%%", "%"))


def _escaped(text: str) -> str:
    return re.sub(r"([*_<>\[\]`])", r"\\\1", text)


def reference_pages(root: Path) -> dict[str, str]:
    return {
        **command_pages(root),
        **api_pages(root),
        "reference/protocol.md": protocol_page(root),
        "reference/metrics.md": metrics_page(),
        "adr/index.md": decisions_page(root),
    }


DECISIONS_INTRODUCTION = """# Decisions

What took thought, a page each: context, decision, consequences.

"""


def decisions_page(root: Path) -> str:
    lines = []
    for path in sorted((root / "docs" / "adr").glob("[0-9]*.md")):
        title = path.read_text("utf-8").partition("\n")[0].removeprefix("# ")
        number, _, name = title.partition(". ")
        lines.append(f"- {number}: [{name}]({path.name})")
    return DECISIONS_INTRODUCTION + "\n".join(lines) + "\n"


METRICS_INTRODUCTION = """# Metrics, their licences and sizes

Made of the registry in `metrics/scorers/registry.py`, as `python manage.py metrics` lists it.
[The metrics](../metrics.md) says what each computes, and [judges](../judges.md) how language
models are asked. A model that is not installed is fetched only where `download=True` says so, or
read from a folder; its licence is for you to keep.

"""


def metrics_page() -> str:
    metrics = available()
    rows = [
        [f"[`{m.name}`](#{m.name.lower()})", cell(m.summary), cell(m.licence), m.size or "none"]
        for m in metrics
    ]
    overview = table(["name", "what it is", "licence", "model on disk"], rows)
    return "\n".join(
        [METRICS_INTRODUCTION + overview, *(line for m in metrics for line in _metric_section(m))]
    )


def _metric_section(metric: Description) -> Iterator[str]:
    yield f"## {metric.name}\n"
    yield f"{metric.summary}.\n"
    lower = ", ".join(f"`{name}`" for name in metric.outputs if name in metric.lower_is_better)
    needs = ", ".join(sorted(metric.needs)) or "the response only"
    yield f"- gives {', '.join(f'`{name}`' for name in metric.outputs)}"
    yield f"- lower is better of {lower or 'none'}"
    yield f"- needs {needs}"
    if metric.requires:
        yield f"- takes {metric.requires}"
    yield f"- licence: {metric.licence}"
    parameters = (
        f"`{name}`" if default is None else f"`{name}={default}`"
        for name, default in metric.parameters.items()
    )
    yield f"- parameters: {', '.join(parameters) or 'none'}\n"


PROTOCOL_INTRODUCTION = """# Protocol schema

A protocol is one document in YAML or JSON. This page is made of
[protocol.schema.json](../protocol.schema.json), which editors can check files against;
[Protocols](../protocol.md) explains what its parts are for. `python manage.py validate_protocol
FILE` says what is wrong in one, by line and field.

"""
HEAD = ["field", "value", "required", "meaning"]


def protocol_page(root: Path) -> str:
    schema = json.loads((root / "docs" / "protocol.schema.json").read_text("utf-8"))
    parts = [PROTOCOL_INTRODUCTION, "## The document\n", table(HEAD, field_rows(schema, _link))]
    for name, part in schema["$defs"].items():
        parts += [
            f"## {name.replace('_', ' ').capitalize()}\n",
            f"{part.get('description', '')}\n",
            table(HEAD, field_rows(part, _link)),
        ]
    return "\n".join([*parts, _templates()])


def _link(name: str) -> str:
    return f"[{name.replace('_', ' ')}](#{name.replace('_', '-')})"


def _templates() -> str:
    parts = [
        "## Templates\n",
        "To begin with: by name in `--protocol`, or on a new study's page.\n",
    ]
    for name in template_names():
        lines = ["```yaml", *read_text(FOLDER / f"{name}.yaml").rstrip().split("\n"), "```"]
        parts += [f'??? example "{name}"\n', *(f"    {line}".rstrip() for line in lines), ""]
    return "\n".join(parts)
