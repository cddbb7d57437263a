"""Protocols to begin with, which the package ships, and protocols in YAML files.

Only what YAML 1.2 and JSON share is read, with the line of everything: `no` is a word and 12:30
too, no object is made, and nothing stands for something elsewhere in the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml
from django.utils.translation import gettext as _, gettext_lazy

from annotation.exceptions import FileRefused, ProtocolInvalid
from annotation.models import Study
from annotation.protocols.documents import plain_document, read_document
from annotation.protocols.faults import Fault, FaultPath
from annotation.protocols.fields import KINDS
from annotation.protocols.records import ProtocolDocument
from annotation.protocols.scales import with_labels
from annotation.protocols.validation import document_faults
from annotation.protocols.versions import study_faults
from error_codes import CodedText, require
from presentation.files import plain_file

FOLDER = Path(__file__).parent / "templates"
COMPARISONS = [name for name, kind in KINDS.items() if kind.is_comparison and name != "selection"]
SIZE_PROBLEMS = {
    "too_few_responses": gettext_lazy(
        "Annotators compare responses, but items have {n}. Choose a rating, or add responses"
    ),
    "best_worst_of_one": gettext_lazy(
        "Best and worst are two different responses, but items have {n}. Choose a rating, or add "
        "responses"
    ),
    "best_worst_of_two": gettext_lazy(
        "Best and worst of {n} responses is one choice. Choose a comparison of pairs"
    ),
    "not_two_responses": gettext_lazy(
        "Items have {n} responses, and annotators choose the best one of all. To compare two at a "
        "time, choose all pairs or balanced pairs in the protocol"
    ),
}


def template_names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def protocol_source(name: str) -> Path:
    path = Path(name)
    if path.is_file():
        return path
    if name in template_names():
        return FOLDER / f"{name}.yaml"
    known = ", ".join(template_names())
    raise FileRefused(
        path,
        f"there is no such file, and no such template. Templates: {known}.",
        code="unknown_template",
    )


def size_problems(document: ProtocolDocument, least: int, most: int) -> list[CodedText]:
    """What does not fit items of so many candidates, from the least to the most."""
    if document.pairs is not None:
        least, most = min(least, 2), min(most, 2)
    kinds = {each.kind for each in document.questions if each.kind in COMPARISONS}
    # A preference on a condition is a choice among all of them.
    is_of_two = any(each.kind == "preference" and not each.when for each in document.questions)
    problems = {
        "too_few_responses": kinds - {"best_worst"} and least < 2,
        "best_worst_of_one": "best_worst" in kinds and least < 2,
        "best_worst_of_two": "best_worst" in kinds and most == 2,
        "not_two_responses": is_of_two and most > 2,
    }
    n = str(least) if least == most else f"{least}–{most}"
    codes = [code for code, is_there in problems.items() if is_there]
    return [CodedText(SIZE_PROBLEMS[code].format(n=n), code) for code in codes]


def read_text(path: Path) -> str:
    try:
        require(
            not (path.stat().st_size > 4 * MOST_CHARACTERS),
            FileRefused(path, f"it is over {4 * MOST_CHARACTERS:,} bytes.", code="too_large"),
        )
        return plain_file(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise FileRefused(
            path, f"it cannot be read: {error.strerror}.", code="unreadable"
        ) from None
    except UnicodeDecodeError as error:
        raise FileRefused(
            path, f"byte {error.start + 1} is not UTF-8. Save it as UTF-8.", code="wrong_encoding"
        ) from None


def parse_protocol(path: Path, study: Study | None = None) -> ParsedFile:
    parsed = parse_yaml(read_text(path))
    if study is None or not isinstance(parsed.values, Mapping):
        return parsed
    faults = [*parsed.faults, *study_faults(study, read_document(parsed.values))]
    return replace(parsed, faults=tuple(parsed.at_lines(faults)))


def read_protocol(name: str, study: Study | None = None) -> ProtocolDocument:
    path = protocol_source(name)
    parsed = parse_protocol(path, study)
    if parsed.faults:
        n = len(parsed.faults)
        head = f"{path.name} has {n} {'fault' if n == 1 else 'faults'}; nothing was changed."
        raise ProtocolInvalid(
            "\n".join([head, *(f"  {fault}" for fault in parsed.faults)]), parsed.faults
        )
    return read_document(parsed.values)


MOST_CHARACTERS = 500_000
MOST_PARTS = 20_000
DEEPEST = 20
TAGS = {
    "bool": (r"true|false", "tf"),
    "int": (r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    "float": (r"[-+]?(?:0|[1-9][0-9]*)\.[0-9]*(?:[eE][-+][0-9]+)?", "-+0123456789"),
    "null": (r"~|null|", ["~", "n", ""]),
}

QUOTED = re.compile(r""""(?:\\.|[^"\\])*"|'[^']*'""")
SPECIAL = re.compile(r"[?#%@&*!>|`]|: .*: ")
# A text without quotes that goes on with # and no space, which nobody writes of a comment.
CUT = re.compile(r" +#[^\s#]")
PLAIN_TAGS = {f"tag:yaml.org,2002:{name}" for name in (*TAGS, "str", "map", "seq")}


class _PartRefused(yaml.MarkedYAMLError):
    def __init__(self, problem: str, mark: yaml.Mark, code: str) -> None:
        super().__init__(problem=problem, problem_mark=mark)
        self.line, self.code = mark.line + 1, code


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict[str, Any] = {}

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._n_parts = self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        # Else a few lines could stand for gigabytes.
        if self.check_event(yaml.AliasEvent):
            raise _PartRefused(_("write it out instead of using *"), mark, "alias")
        self._n_parts += 1
        if self._n_parts > MOST_PARTS:
            raise _PartRefused(
                (_("a protocol has at most %(n)s parts") % {"n": f"{MOST_PARTS:,}"}),
                mark,
                "too_many_parts",
            )
        self._depth += 1
        if self._depth > DEEPEST + 2:  # What lies only a little too deep is named by its path.
            raise _PartRefused(_("it lies too deep"), mark, "too_deep")
        node: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return node


for _name, (_pattern, _first) in TAGS.items():
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_name}", re.compile(f"^(?:{_pattern})$"), list(_first)
    )


class _Dumper(yaml.SafeDumper):
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    )


_Dumper.add_representer(str, _represent_text)


@dataclass(frozen=True)
class ParsedFile:
    values: Any
    faults: tuple[Fault, ...]
    lines: Mapping[FaultPath, int] = field(default_factory=dict)

    def at_lines(self, faults: Iterable[Fault]) -> list[Fault]:
        return sorted((_with_line(each, self.lines) for each in faults), key=lambda f: f.line or 0)


def parse_yaml(text: str) -> ParsedFile:
    if len(text) > MOST_CHARACTERS:
        return _refused(
            _("has %(n)s characters; %(most)s fit.")
            % {"n": f"{len(text):,}", "most": f"{MOST_CHARACTERS:,}"},
            1,
            "too_long",
        )
    try:
        root = _composed(text)
    except yaml.MarkedYAMLError as error:
        if isinstance(error, _PartRefused):
            return _refused(_not_yaml(error.problem), error.line, error.code)
        return _syntax_refused(text.splitlines(), error)
    except yaml.YAMLError as error:
        return _refused(_not_yaml(str(error).splitlines()[0]), 1, "not_yaml")
    if root is None:
        return _refused(_("is empty. Begin with 'assay_protocol: 1'."), 1, "empty")
    lines: dict[FaultPath, int] = {}
    structure = list(_structure_faults(root, (), lines))
    if structure:
        return ParsedFile(None, tuple(structure))
    try:
        values = _Loader("").construct_document(root)
    except (yaml.YAMLError, ValueError, KeyError) as error:  # such as !!int x
        return _refused(_not_yaml(str(error).splitlines()[0]), 1, "not_yaml")
    parsed = ParsedFile(values, (), lines)
    return replace(parsed, faults=tuple(parsed.at_lines(document_faults(values))))


def write_yaml(document: ProtocolDocument) -> str:
    return yaml.dump(
        with_labels(plain_document(document), document.questions),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=100,
    )


def _not_yaml(problem: str | None) -> str:
    return _("is not YAML: %(problem)s.") % {"problem": problem}


def _syntax_refused(lines: list[str], error: yaml.MarkedYAMLError) -> ParsedFile:
    at = mark.line if (mark := error.problem_mark or error.context_mark) else 0
    # If # begins a comment by mistake, YAML misses the rest of its line further down.
    start = error.context_mark.line if error.context_mark else at
    at = next((n for n in range(start, at) if "#" in QUOTED.sub("", lines[n])), at)
    problem, code = _not_yaml(error.problem), "not_yaml"
    if at < len(lines) and SPECIAL.search(QUOTED.sub("", lines[at])):
        problem += " " + _('A text that contains %(signs)s needs quotes, as in "Is it?".') % {
            "signs": "? : # % @ & * !"
        }
        code = "needs_quotes"
    return _refused(problem, at + 1, code)


def _refused(problem: str, line: int, code: str) -> ParsedFile:
    return ParsedFile(None, (Fault((), problem, line, code),))


def _composed(text: str) -> yaml.Node | None:
    loader = _Loader(text)
    try:
        root: yaml.Node | None = loader.get_single_node()
        return root
    finally:
        loader.dispose()


def _structure_faults(
    node: yaml.Node, path: FaultPath, lines: dict[FaultPath, int]
) -> Iterator[Fault]:
    line = node.start_mark.line + 1
    lines.setdefault(path, line)
    if len(path) > DEEPEST:
        yield Fault(path, _("lies too deep."), line, code="too_deep")
        return
    if node.tag not in PLAIN_TAGS:
        text = _("has the tag %(tag)s; a protocol has none. Put texts that begin with ! in quotes.")
        yield Fault(path, text % {"tag": node.tag}, line, code="has_tag")
        return
    end = node.end_mark
    if (
        isinstance(node, yaml.ScalarNode)
        and not node.style
        and CUT.match(end.buffer or "", end.pointer)
    ):
        text = _("ends at #, which begins a comment. Put the text in quotes, or a space after #.")
        yield Fault(path, text, end.line + 1, code="needs_quotes")
    if isinstance(node, yaml.SequenceNode):
        for index, each in enumerate(node.value):
            yield from _structure_faults(each, (*path, index), lines)
    if isinstance(node, yaml.MappingNode):
        yield from _mapping_faults(node, path, lines)


def _mapping_faults(
    node: yaml.MappingNode, path: FaultPath, lines: dict[FaultPath, int]
) -> Iterator[Fault]:
    seen: dict[str, int] = {}
    for name, value in node.value:
        line = name.start_mark.line + 1
        if not isinstance(name, yaml.ScalarNode):
            yield Fault(path, _("has a name that is not a word."), line, code="not_word")
            continue
        inner = (*path, str(name.value))
        if name.value in seen:
            yield Fault(
                inner,
                _("is said on line %(n)d already.") % {"n": seen[name.value]},
                line,
                code="repeated",
            )
            continue
        seen[name.value] = line
        lines[inner] = line
        yield from _structure_faults(value, inner, lines)


def _with_line(fault: Fault, lines: Mapping[FaultPath, int]) -> Fault:
    path = fault.path
    while path and path not in lines:
        path = path[:-1]
    return replace(fault, line=lines.get(path, 1))
