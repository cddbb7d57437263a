"""Judges in scoring runs: probed first, held to a common cap, and recorded with the run."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from django.conf import settings
from django.db import transaction

from annotation.models import Study
from metrics.exceptions import ModelUnfit, ParameterRefused, get_code
from metrics.models import JudgeVersion, Score, ScoringRun
from metrics.scorers.errors import EndpointError, ScorerError
from metrics.scorers.interface import Scorer
from metrics.scorers.judges import geval, grade
from metrics.scorers.judges.capabilities import Capabilities, capabilities_of, stored_capabilities
from metrics.scorers.judges.client import Client, client_from
from metrics.scorers.judges.geval import PRESETS, GEvalSettings, with_steps
from metrics.scorers.judges.grade import EndpointJudge, GradeSettings
from metrics.scorers.registry import SCORERS
from presentation.files import require_writable, write_whole

# How a distribution may have been obtained, as raw records begin with it.
WAYS = ("one call", "n", "n calls", "top_logprobs")


class Caps(NamedTuple):
    """What the judges of a command may spend together; None leaves it to the settings."""

    max_requests: int | None = None
    max_usd: Decimal | None = None


def is_judge(metric: str) -> bool:
    factory = SCORERS[metric].factory if metric in SCORERS else None
    return isinstance(factory, type) and issubclass(factory, EndpointJudge)


def judges_client(caps: Caps = Caps()) -> Client:  # noqa: B008 -- immutable
    limits = {"JUDGE_MAX_REQUESTS": caps.max_requests, "JUDGE_MAX_USD": caps.max_usd}
    changed = {name: str(value) for name, value in limits.items() if value is not None}
    try:
        return client_from(settings.JUDGE | changed)
    except ValueError as error:
        raise ParameterRefused(f"{error}.", code=get_code(error)) from error


def prepare(scorer: Scorer, *, only_estimates: bool = False) -> None:
    """Let a judge know its endpoint, which is probed where nobody did and it matters.

    For estimates it need not answer: then one reply to a request is counted on.
    """
    if not isinstance(scorer, EndpointJudge):
        return
    try:
        if capabilities := _capabilities(scorer, only_estimates):
            scorer.learn(capabilities)
        elif scorer.is_probed_first:
            scorer.expect_several_replies(False)
        scorer.fit_batches()
    except ScorerError as error:
        raise ModelUnfit(f"{scorer.name}: {error}", code=get_code(error)) from error


def _capabilities(scorer: EndpointJudge, only_estimates: bool) -> Capabilities | None:
    if not scorer.is_probed_first:
        return stored_capabilities(scorer.client.endpoint, settings.JUDGE_PROBES)
    try:
        return capabilities_of(scorer.client, settings.JUDGE_PROBES)
    except EndpointError:
        if only_estimates:
            return None
        raise


def judge_record(scorer: Scorer) -> dict[str, Any] | None:
    if not isinstance(scorer, EndpointJudge):
        return None
    endpoint, capabilities = scorer.client.endpoint, scorer.capabilities
    return {
        "base_url": endpoint.base_url,
        "model": endpoint.model,
        "settings": json.loads(scorer.settings.to_json()),
        "fingerprint": scorer.settings.fingerprint,
        "capabilities": asdict(capabilities) if capabilities else None,
    }


def ways_obtained(run: ScoringRun) -> dict[str, int]:
    counts = {
        way: Score.objects.filter(run=run, raw__startswith=f'{{"obtained": "{way}",').count()
        for way in WAYS
    }
    return {way: count for way, count in counts.items() if count}


def count_replies(run: ScoringRun) -> dict[str, Any]:
    rows = Score.objects.filter(run=run).exclude(raw="").values_list("raw", flat=True)
    return count_replies_in(rows.iterator(chunk_size=500))


def count_replies_in(records: Iterable[str]) -> dict[str, Any]:
    """The same of raw records; older ones, which have no counts, are left out."""
    n_replies, unread = 0, Counter[str]()
    for raw in records:
        record = json.loads(raw)
        if "unread" in record:
            n_replies += len(record["replies"])
            unread.update(record["unread"])
    return {"n_replies": n_replies, "unread": dict(unread.most_common())}


def probe_anew(client: Client) -> Capabilities:
    try:
        return capabilities_of(client, settings.JUDGE_PROBES, anew=True)
    except ScorerError as error:
        raise ModelUnfit(f"{error}.", code=get_code(error)) from error


def study_judges(study: Study) -> dict[str, list[dict[str, Any]]]:
    fields = ("metric", "name", "version", "fingerprint", "content")
    return {
        "settings": list(JudgeVersion.objects.of(study).values(*fields)),
        "runs": [
            {"metric": run.metric, "signature": run.signature, "obtained": ways_obtained(run)}
            | count_replies(run)
            | (run.judge or {})
            for run in ScoringRun.objects.of(study).exclude(judge=None)
        ],
    }


Settings: TypeAlias = GEvalSettings | GradeSettings

KINDS: dict[str, type[Settings]] = {"geval": GEvalSettings, "judge": GradeSettings}
READERS: dict[str, Callable[[str], Settings]] = {
    "geval": geval.read_settings,
    "judge": grade.read_settings,
}


def read_settings(metric: str, source: str) -> Settings:
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
        raise ParameterRefused(
            f"'{name}' cannot be a name: use letters, digits, - and _.", code="name_unfit"
        )
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
        raise ParameterRefused(
            f"Say with --output in which file {source} and its steps go.", code="output_missing"
        )
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
