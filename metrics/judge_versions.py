"""What a study asks its judges: versions of settings, which files and presets come in as."""

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TypeAlias

from django.db import transaction

from annotation.models import Study
from metrics.exceptions import ModelUnfit, ParameterRefused, get_code
from metrics.models import JudgeVersion
from metrics.scorers.errors import ScorerError
from metrics.scorers.judges import geval, grade
from metrics.scorers.judges.client import Client
from metrics.scorers.judges.geval_settings import GEvalSettings, with_steps
from metrics.scorers.judges.grade import GradeSettings
from metrics.scorers.judges.presets import PRESETS
from presentation.files import require_writable, write_whole

Settings: TypeAlias = GEvalSettings | GradeSettings

KINDS: dict[str, type[Settings]] = {"geval": GEvalSettings, "judge": GradeSettings}
READERS: dict[str, Callable[[str], Settings]] = {
    "geval": geval.read_settings,
    "judge": grade.read_settings,
}


def read_settings(metric: str, source: str) -> Settings:
    """The settings that a preset's name or a file's path stands for, or ParameterRefused."""
    try:
        return READERS[metric](source)
    except (ValueError, OSError) as error:
        raise ParameterRefused(f"{source}: {error}.", code=get_code(error)) from error


@transaction.atomic
def keep_judge(*, study: Study, metric: str, name: str, settings: Settings) -> JudgeVersion:
    """Give a study these settings under a name; those that the name stands for stay its newest.

    Anything else becomes the name's next version.
    """
    if not re.fullmatch(r"[\w-]{1,64}", name, re.ASCII):
        message = f"'{name}' cannot be a name: use letters, digits, - and _."
        raise ParameterRefused(message, code="name_unfit")
    Study.objects.select_for_update().get(pk=study.pk)
    newest = JudgeVersion.objects.of(study).called(metric, name).first()
    content = asdict(settings)
    if newest and newest.content == content:
        return newest
    return JudgeVersion.objects.create(
        study=study,
        metric=metric,
        name=name,
        version=newest.version + 1 if newest else 1,
        fingerprint=settings.fingerprint,
        content=content,
    )


def stored_settings(study: Study, metric: str, reference: str) -> Settings | None:
    """What a study has under ``name`` (the newest) or ``name@version``; None where nothing."""
    name, at, number = reference.partition("@")
    versions = JudgeVersion.objects.of(study).called(metric, name)
    if at:
        versions = versions.filter(version=int(number) if number.isdecimal() else 0)
    judge_version = versions.first()
    return KINDS[metric].from_json(json.dumps(judge_version.content)) if judge_version else None


def write_steps(*, source: str, output: Path | None, client: Client, anew: bool) -> Path:
    """Have the judge write G-Eval's evaluation steps into a file of settings, once.

    Steps that are there already stand, unless they are to be written `anew`.
    """
    settings = read_settings("geval", source)
    assert isinstance(settings, GEvalSettings)
    if output is None and source in PRESETS:
        message = f"Say with --output in which file {source} and its steps go."
        raise ParameterRefused(message, code="output_missing")
    path = output or Path(source)
    if path.exists() and not anew and _has_steps(path):
        raise ParameterRefused(
            f"{path} has evaluation steps, and others would make another metric of it. "
            "Say --anew to have them written anew.",
            code="has_steps",
        )
    require_writable(path)
    try:
        text = with_steps(settings, client).to_json()
    except ScorerError as error:
        raise ModelUnfit(f"{error}.", code=get_code(error)) from error
    write_whole(path, f"{text}\n")
    return path


def _has_steps(path: Path) -> bool:
    settings = read_settings("geval", str(path))
    return isinstance(settings, GEvalSettings) and bool(settings.steps)
