import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import numpy as np
from django.db import IntegrityError, transaction
from django.db.models import F, Max
from django.utils.text import slugify
from django.utils.translation import gettext as _

from accounts.audit import record
from accounts.models import Team, User
from annotation.models import Study
from annotation.relevance import Judged
from results.computing import find_result, lock_subject, number_result
from results.models import Result
from simulation.catalogue import Targets, from_judgments, targets_of
from simulation.exceptions import ExperimentUnfit
from simulation.models import (
    StoredCatalogue,
    StoredExperiment,
    StoredRecommender,
    TargetJudgment,
)
from simulation.plans import (
    EMBEDDING,
    RANDOM,
    TRAINED,
    Plan,
    named_twice,
    plan_of,
    require_bearable,
)
from simulation.stored_catalogues import read_stored
from work.models import Job
from work.tasks import request_job, stop_job

RUN_EXPERIMENT = "run_experiment"
KIND = "experiment"
# Results of another form are not reused. Since 3, each seed draws first items and random orders of
# its own. Since 4, the article's users have the target among the alternatives.
FORM = 4
LONGEST_SLUG, ROWS_AT_ONCE, MOST_TRIES = 80, 2000, 5
MOST_JUDGMENTS = 500_000


@transaction.atomic
def create_experiment(
    *,
    team: Team,
    name: str,
    catalogue: StoredCatalogue,
    judgments: Sequence[Judged],
    made_of: str,
    actor: User | None,
    study: Study | None = None,
    collection: str = "",
) -> StoredExperiment:
    """Judgments are copied. Raises ExperimentUnfit if none can be used, or TargetsUnfit if the
    catalogue lacks an item."""
    if not judgments:
        raise ExperimentUnfit(_("There is no judgment to simulate users by."))
    if len(judgments) > MOST_JUDGMENTS:
        raise ExperimentUnfit(
            _("These are more than {n} judgments. Choose fewer targets.").format(
                n=f"{MOST_JUDGMENTS:,}"
            )
        )
    _targets(catalogue, judgments, relevant_from=1)
    lines = "".join(f"{target} {item} {grade}\n" for target, item, grade in judgments)
    row = _create_row(
        name,
        team=team,
        catalogue=catalogue,
        made_of=made_of[:250],
        study=study,
        collection=collection,
        sha256=sha256(lines.encode()).hexdigest(),
        n_targets=len({target for target, _item, _grade in judgments}),
        n_judgments=len(judgments),
        created_by=actor,
    )
    TargetJudgment.objects.bulk_create(
        (
            TargetJudgment(experiment=row, target=target, item=item, grade=grade)
            for target, item, grade in judgments
        ),
        batch_size=ROWS_AT_ONCE,
    )
    record(team=team, actor=actor, action="experiment.create", subject=row.slug)
    return row


def _create_row(name: str, **fields: Any) -> StoredExperiment:
    """Waits for an uncommitted row of the same slug, then takes another slug."""
    for _try in range(MOST_TRIES):
        try:
            with transaction.atomic():
                return StoredExperiment.objects.create(
                    slug=_free_slug(name), name=name.strip(), **fields
                )
        except IntegrityError:
            continue
    raise ExperimentUnfit(_("Others make experiments of this name at this moment. Try again."))


def targets_of_experiment(experiment: StoredExperiment, plan: Plan) -> Targets:
    rows = experiment.judgments.order_by("pk").values_list("target", "item", "grade")
    return _targets(experiment.catalogue, list(rows), relevant_from=plan.relevant_from)


def _targets(
    catalogue: StoredCatalogue, judgments: Sequence[Judged], *, relevant_from: int
) -> Targets:
    topics = list(dict.fromkeys(target for target, _item, _grade in judgments))
    documents = list(dict.fromkeys(item for _target, item, _grade in judgments))
    topic_number = {name: number for number, name in enumerate(topics)}
    document_number = {name: number for number, name in enumerate(documents)}
    accepted, rejected = from_judgments(
        topics,
        documents,
        np.array([topic_number[target] for target, _item, _grade in judgments]),
        np.array([document_number[item] for _target, item, _grade in judgments]),
        np.array([grade for *_names, grade in judgments]),
        relevant_from=relevant_from,
    )
    return targets_of(read_stored(catalogue), accepted, rejected=rejected)


def request_run(
    *, experiment: StoredExperiment, rules: Mapping[str, Any], actor: User | None
) -> Result:
    """Run an experiment in the background. Equal settings continue the existing version."""
    version = store_run(experiment=experiment, rules=rules, actor=actor)
    resume_run(version=version, actor=actor)
    return version


@transaction.atomic
def store_run(
    *, experiment: StoredExperiment, rules: Mapping[str, Any], actor: User | None
) -> Result:
    """Store the version without requesting its jobs. Raises ExperimentUnfit."""
    plan = plan_of(rules)
    require_bearable(plan, experiment.n_targets)
    _require_alternatives(experiment, plan)
    return _version(experiment, rules, plan, _trained(experiment, plan), actor)


def same_experiment(version: Result) -> StoredExperiment | None:
    """An earlier experiment of the same name, inputs and settings: the form was sent twice."""
    row = find_experiment(version)
    same = StoredExperiment.objects.filter(
        team=row.team_id, name=row.name, catalogue=row.catalogue_id, made_of=row.made_of,
        versions__fingerprint=version.fingerprint,
    )  # fmt: skip
    return same.exclude(pk=row.pk).order_by("pk").first()


def _require_alternatives(experiment: StoredExperiment, plan: Plan) -> None:
    """Without a relevant alternative all users act like SimBase."""
    if all(user.kind == "base" for user in plan.users):
        return
    accepted = experiment.judgments.filter(grade__gte=plan.relevant_from)
    if not accepted.exclude(item=F("target")).exists():
        highest = experiment.judgments.aggregate(highest=Max("grade"))["highest"]
        raise ExperimentUnfit(
            _(
                "No target has an alternative of grade {grade} or above, so that every user would "
                "do as SimBase does. The highest grade is {highest}: choose a lower one from which "
                "an alternative is accepted, or SimBase alone."
            ).format(grade=plan.relevant_from, highest=highest)
        )


def _trained(experiment: StoredExperiment, plan: Plan) -> dict[str, StoredRecommender]:
    found = {}
    for spec in plan.recommenders:
        kind, _colon, key = spec.partition(":")
        if spec in (RANDOM, EMBEDDING):
            continue
        if kind != TRAINED:
            # Elsewhere a name may be a file's, which nobody may name to this machine.
            text = _("{name} is no recommender; there are {names} and {trained}:NUMBER.")
            names = f"{RANDOM}, {EMBEDDING}"
            raise ExperimentUnfit(text.format(name=spec, names=names, trained=TRAINED))
        rows = StoredRecommender.objects.filter(catalogue=experiment.catalogue_id)
        row = rows.filter(pk=int(key)).first() if key.isdecimal() else None
        if row is None or row.finished_at is None:
            raise ExperimentUnfit(
                _("{name} must have been trained on this catalogue, to the last epoch.").format(
                    name=row.name if row else _elsewhere(experiment, key)
                )
            )
        found[spec] = row
    # Rows of a result are told apart by name: one may be trained:05, or was called as another is.
    known = [found[spec].name if spec in found else spec for spec in plan.recommenders]
    if faults := [*named_twice(_("Recommender"), known)]:
        raise ExperimentUnfit(" ".join(faults))
    return found


def _elsewhere(experiment: StoredExperiment, key: str) -> str:
    rows = StoredRecommender.objects.filter(catalogue__team=experiment.team_id)
    row = rows.select_related("catalogue").filter(pk=int(key)).first() if key.isdecimal() else None
    return f"{row.name} ({row.catalogue})" if row else f"{TRAINED}:{key}"


def _version(
    experiment: StoredExperiment,
    rules: Mapping[str, Any],
    plan: Plan,
    trained: Mapping[str, StoredRecommender],
    actor: User | None,
) -> Result:
    lock_subject(experiment)
    inputs = [
        FORM,
        experiment.catalogue.sha256,
        experiment.sha256,
        {spec: row.sha256 for spec, row in trained.items()},
        dict(rules),
    ]
    fingerprint = sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()
    if same := find_result(experiment, KIND, fingerprint):
        return same
    version = number_result(
        subject=experiment,
        kind=KIND,
        form=FORM,
        fingerprint=fingerprint,
        settings=rules,
        actor=actor,
    )
    version.facts = {
        "users": [user.record() for user in plan.users],
        "recommenders": [_recommender(spec, trained.get(spec)) for spec in plan.recommenders],
    }
    version.save()
    record(
        team=experiment.team,
        actor=actor,
        action="experiment.run",
        subject=experiment.slug,
        details={"version": version.number},
    )
    return version


def _recommender(spec: str, trained: StoredRecommender | None) -> dict[str, Any]:
    """A trained recommender keeps the checkpoint that it had at the time."""
    if trained is None:
        return {"name": spec, "spec": spec, "trained": None, "sha256": ""}
    return {"name": trained.name, "spec": spec, "trained": trained.pk, "sha256": trained.sha256}


def find_experiment(version: Result) -> StoredExperiment:
    experiment = version.subject
    assert isinstance(experiment, StoredExperiment)
    return experiment


def subject_of(experiment: int) -> str:
    return f"experiment:{experiment}"


def jobs_of(version: Result) -> list[Job]:
    """The newest job of each part of a version."""
    jobs = Job.objects.about(subject_of(version.subject_id)).order_by("pk")
    newest = {job.dedupe_key: job for job in jobs if job.arguments["version"] == version.pk}
    return list(newest.values())


def resume_run(*, version: Result, actor: User | None) -> None:
    if version.finished_at is not None:
        return
    request_job(
        kind=RUN_EXPERIMENT,
        subject=subject_of(version.subject_id),
        arguments={"version": version.pk},
        title=_("Running {name}").format(name=find_experiment(version).name),
        requested_by=actor,
    )


def stop_run(*, version: Result) -> None:
    """Finished pieces stay."""
    for job in jobs_of(version):
        if job.is_unfinished:
            stop_job(job=job)


@transaction.atomic
def delete_experiment(*, experiment: StoredExperiment, actor: User | None) -> None:
    """Running jobs end at their next step."""
    for job in Job.objects.about(subject_of(experiment.pk)).unfinished():
        stop_job(job=job)
    team, slug = experiment.team, experiment.slug
    details = {"name": experiment.name, "versions": experiment.versions.count()}
    experiment.delete()
    record(team=team, actor=actor, action="experiment.delete", subject=slug, details=details)


def _free_slug(name: str) -> str:
    base = slugify(name)[: LONGEST_SLUG - 6].strip("-_") or "experiment"
    rows = StoredExperiment.objects.filter(slug__startswith=base)
    taken = set(rows.values_list("slug", flat=True))
    n, slug = 1, base
    while slug in taken:
        n += 1
        slug = f"{base}-{n}"
    return slug
