"""Importing in tests: files from a line or two, and what a refusal must look like."""

import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command

from annotation.exceptions import ImportRefused

Snapshot = dict[str, list[tuple[object, ...]]]


def command_output(command: str, *arguments: object, **options: Any) -> str:
    """Run a management command and return what it says."""
    output = StringIO()
    call_command(command, *map(str, arguments), stdout=output, **options)
    return output.getvalue()


def everything() -> Snapshot:
    """Every row of the annotation app, so that two moments can be compared."""
    return {
        model.__name__: sorted(model.objects.values_list(), key=repr)
        for model in apps.get_app_config("annotation").get_models()
    }


def assert_refused(
    command: str,
    path: Path,
    problem: str,
    *,
    line: int | None = None,
    field: str | None = None,
    study: str = "s",
    **options: Any,
) -> ImportRefused:
    """The import is refused at that line and field, says so, and leaves every row as it was."""
    before = everything()
    with pytest.raises(ImportRefused, match=problem) as caught:
        command_output(command, path, study=study, **options)
    assert everything() == before
    error = caught.value
    assert (error.line, error.field) == (line, field)
    position = f"Line {line} of {path.name}" if line else path.name
    where = f"{position}, field {field}: " if field else f"{position}: "
    assert str(error).startswith(where)
    assert str(error).endswith("Fix the file and import again; nothing was imported.")
    assert not re.search(r"[Tt]raceback|Error\(|<class", str(error))
    return error
