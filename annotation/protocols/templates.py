"""Protocols to begin with, which the package ships, and protocols in files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from annotation.exceptions import FileRefused, ProtocolInvalid
from annotation.models import Study
from annotation.protocols.documents import read_document
from annotation.protocols.records import ProtocolDocument
from annotation.protocols.versions import study_faults
from annotation.protocols.yaml_files import MOST_CHARACTERS, ParsedFile, parse_yaml
from presentation.files import plain_file

FOLDER = Path(__file__).parent / "templates"


def template_names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def protocol_source(name: str) -> Path:
    """The file of that path, or the template of that name; FileRefused if there is neither."""
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


def read_text(path: Path) -> str:
    """The text of a protocol's file; FileRefused where it is none."""
    try:
        if path.stat().st_size > 4 * MOST_CHARACTERS:
            raise FileRefused(path, f"it is over {4 * MOST_CHARACTERS:,} bytes.", code="too_large")
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
    """What a file says, with every fault at its line; those that lie in a study too, if it is to
    become that one's."""
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
        message = "\n".join([head, *(f"  {fault}" for fault in parsed.faults)])
        raise ProtocolInvalid(message, parsed.faults)
    return read_document(parsed.values)
