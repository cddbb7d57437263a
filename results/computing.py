"""Computing results: requested as jobs, computed once for the same input, stored in one step."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import models, transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from presentation.progress import Reporter, without_bars
from results.kinds import Chosen, Computed, Given, ResultKind
from results.models import Result, ResultPart, pack_record, plain_record
from work.execution import RunningJob
from work.models import Job
from work.tasks import request_job

# Items of a list in a signature; the whole list is in the fingerprint.
MOST_LISTED = 20


class ComputedMeanwhile(Exception):
    def __init__(self, result: Result) -> None:
        self.result = result
        super().__init__(str(result))


def name_subject(subject: models.Model) -> str:
    return f"{subject._meta.model_name}:{subject.pk}"


def request_result(
    *,
    kind: ResultKind[Any],
    subject: models.Model,
    chosen: Chosen,
    settings: Mapping[str, Any],
    actor: User | None,
) -> Job:
    """Have a result computed in the background; an error of `kind.refusals` if it cannot be.

    `chosen` are rows by the name of the input.
    """
    settings = {**settings, **kind.name_inputs(chosen)}
    kind.check_settings(settings)
    kind.check_request(chosen, settings)
    inputs = {
        row.pk
        for name, rows in chosen.items()
        if name not in kind.inputs or not kind.inputs[name].is_subset
        for row in rows
    }
    return request_job(
        kind=kind.job,
        subject=name_subject(subject),
        arguments={
            "kind": kind.name,
            "subject": subject.pk,
            "inputs": sorted(inputs),
            "settings": settings,
        },
        requested_by=actor,
    )


def compute_result(kind: ResultKind[Any], running: RunningJob) -> str:
    """Compute the result of a job, or find the one that was computed of the same before.

    Returns
    -------
    str
        A sentence for the job's page.
    """
    arguments = running.arguments
    subject = kind.open_subject(arguments["subject"])
    result, is_new = compute_variants(
        kind,
        subject,
        kind.load_inputs(subject, arguments["inputs"]),
        arguments["settings"],
        progress=running.progress,
        actor=running.job.requested_by,
        # In the same transaction: a second attempt could find its inputs gone.
        complete=lambda result: running.complete(_name_result(result, is_new=True)),
    )
    return _name_result(result, is_new=is_new)


def compute_variants(
    kind: ResultKind[Any],
    subject: models.Model,
    inputs: Sequence[Any],
    settings: Mapping[str, Any],
    *,
    progress: Reporter,
    actor: User | None = None,
    complete: Callable[[Result], object] = lambda result: None,
) -> tuple[Result, bool]:
    """The result with its variants after it; `complete` is called for the last of them."""
    *others, last = variants = [settings, *kind.list_variants(subject, settings)]
    if not others:
        return compute_once(
            kind, subject, inputs, settings, progress=progress, actor=actor, complete=complete
        )
    computed = [
        compute_once(
            kind,
            subject,
            inputs,
            each,
            actor=actor,
            complete=complete if each is last else lambda result: None,
        )
        for each in progress(_("variant"))(variants, len(variants))
    ]
    return computed[0]


def compute_once(
    kind: ResultKind[Any],
    subject: models.Model,
    inputs: Sequence[Any],
    settings: Mapping[str, Any],
    *,
    progress: Reporter = without_bars,
    actor: User | None = None,
    complete: Callable[[Result], object] = lambda result: None,
    is_repeated: bool = False,
) -> tuple[Result, bool]:
    """The result, and whether it is new. `complete` is called in the transaction that stores it."""
    fingerprint = digest_inputs(kind, subject, inputs, settings)
    may_exist = not (kind.is_repeated or is_repeated)
    if may_exist and (before := find_result(subject, kind.name, fingerprint)):
        return before, False
    try:
        computed = kind.compute(Given(subject, inputs, settings, progress))
        with transaction.atomic():
            result = store_result(
                subject=subject,
                kind=kind,
                fingerprint=fingerprint,
                settings=settings,
                computed=computed,
                actor=actor,
            )
            kind.keep_inputs(result, inputs)
            if computed.write_rows is not None:
                computed.write_rows(result)
            kind.finish(subject, inputs)
            complete(result)
    except ComputedMeanwhile as meanwhile:
        return meanwhile.result, False
    return result, True


def store_result(
    *,
    subject: models.Model,
    kind: ResultKind[Any],
    fingerprint: str,
    settings: Mapping[str, Any],
    computed: Computed,
    actor: User | None,
) -> Result:
    """Store the next result of its kind; ComputedMeanwhile if the same is stored already."""
    lock_subject(subject)
    if not kind.is_repeated and (same := find_result(subject, kind.name, fingerprint)):
        raise ComputedMeanwhile(same)
    if computed.settings is None:
        computed = replace(computed, settings=settings)
    return create_result(
        subject=subject,
        kind=kind.name,
        form=kind.form,
        fingerprint=fingerprint,
        computed=computed,
        actor=actor,
    )


def lock_subject(subject: models.Model) -> None:
    """Let one process at a time store results of a subject, so that numbers have no gaps and the
    same is not stored twice."""
    type(subject)._default_manager.select_for_update().get(pk=subject.pk)


def create_result(
    *,
    subject: models.Model,
    kind: str,
    form: int,
    fingerprint: str,
    computed: Computed,
    actor: AbstractBaseUser | None = None,
) -> Result:
    result = number_result(
        subject=subject,
        kind=kind,
        form=form,
        fingerprint=fingerprint,
        settings=computed.settings or {},
        actor=actor,
    )
    finish_result(result, computed)
    return result


def number_result(
    *,
    subject: models.Model,
    kind: str,
    form: int,
    fingerprint: str,
    settings: Mapping[str, Any],
    actor: AbstractBaseUser | None,
) -> Result:
    """The next result of its kind, not stored yet."""
    return Result(
        subject=subject,
        kind=kind,
        number=(Result.objects.of(subject, kind).aggregate(last=Max("number"))["last"] or 0) + 1,
        form=form,
        fingerprint=fingerprint,
        settings=dict(settings),
        created_by_id=actor.pk if actor else None,
    )


def finish_result(result: Result, computed: Computed) -> None:
    result.seed, result.finished_at = computed.seed, timezone.now()
    result.facts |= plain_record(computed.facts)
    result.notes = [{"text": str(one), "code": getattr(one, "code", "")} for one in computed.notes]
    if computed.record is not None:
        result.packed_record = pack_record(computed.record)
    result.save(force_update=result.pk is not None)
    ResultPart.objects.bulk_create(
        ResultPart(result=result, name=name, content=content)
        for name, content in computed.parts.items()
    )


def find_result(subject: models.Model, kind: str, fingerprint: str) -> Result | None:
    return Result.objects.of(subject, kind).filter(fingerprint=fingerprint).first()


def find_computed(
    kind: ResultKind[Any],
    subject: models.Model,
    inputs: Sequence[Any],
    settings: Mapping[str, Any],
) -> Result | None:
    return find_result(subject, kind.name, digest_inputs(kind, subject, inputs, settings))


def find_job_result(kind: ResultKind[Any], job: Job) -> Result:
    subject = kind.open_subject(job.arguments["subject"])
    results = Result.objects.of(subject, kind.name)
    if not kind.is_repeated:
        inputs = kind.load_inputs(subject, job.arguments["inputs"])
        fingerprint = digest_inputs(kind, subject, inputs, job.arguments["settings"])
        results = results.filter(fingerprint=fingerprint)
    return results.latest("number")


def digest_inputs(
    kind: ResultKind[Any],
    subject: models.Model,
    inputs: Sequence[Any],
    settings: Mapping[str, Any],
) -> str:
    """SHA-256 of everything that a result depends on."""
    described = kind.describe_inputs(subject, inputs)
    return sha256(json.dumps([kind.form, described, settings], sort_keys=True).encode()).hexdigest()


def sign_result(result: Result) -> str:
    settings = (
        f"{name}:{_plain(value)}"
        for name, value in sorted(result.settings.items())
        if value not in (None, "", [], {})
    )
    return "|".join([result.kind, *settings, f"sha256:{result.fingerprint[:12]}"])


def _name_result(result: Result, *, is_new: bool) -> str:
    text = _("Result {number}.").format(number=result.number)
    return text if is_new else " ".join([text, _("It was computed of the same before.")])


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{name}={_plain(each)}" for name, each in sorted(value.items()))
    if isinstance(value, list | tuple):
        shown = ",".join(map(_plain, value[:MOST_LISTED]))
        return f"{shown},+{len(value) - MOST_LISTED}" if len(value) > MOST_LISTED else shown
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
