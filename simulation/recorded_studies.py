from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import Team, User
from annotation.imports import ImportResult, import_study
from annotation.models import Study
from annotation.new_studies import begin_study
from annotation.protocols.templates import read_protocol
from annotation.study_facts import request_study_job
from annotation.uploads import PART_BYTES, SentFile, plain_file_name, require_size
from presentation.records import group_values
from results.models import Result
from simulation.exceptions import DialoguesUnfit
from simulation.models import DialogueLogPart, DialogueStudy, StoredExperiment
from simulation.outcome_items import OutcomeItems, outcome_items
from simulation.plans import plan_of
from simulation.recorded_dialogues import SwitchingItems, log_sha256, require_log, switching_items
from simulation.run_pieces import LOG_NAME, log_lines
from simulation.stored_catalogues import read_stored
from work.execution import RunningJob

# Made of a log, with the data that workers do not see.
DialogueItems = OutcomeItems | SwitchingItems


@transaction.atomic
def import_dialogues(
    items: DialogueItems,
    *,
    log: Path,
    slug: str,
    title: str = "",
    owner: Any = None,
    team: Team | None = None,
) -> ImportResult:
    if Study.objects.filter(slug=slug).exists():
        raise DialoguesUnfit(
            _("There is a study '{study}' already. Choose another name.").format(study=slug),
            code="study_exists",
        )
    imported = import_study(
        draft=items.draft,
        path=log,
        slug=slug,
        title=title,
        owner=owner,
        team=team,
        protocol=read_protocol(items.kind),
    )
    dialogues = DialogueStudy(study=imported.study, kind=items.kind, log_name=log.name)
    _store(dialogues, items, log)
    return imported


@transaction.atomic
def fill_dialogues(dialogues: DialogueStudy, items: DialogueItems, *, log: Path) -> ImportResult:
    imported = import_study(draft=items.draft, path=log, slug=dialogues.study.slug)
    _store(dialogues, items, log)
    return imported


def _store(dialogues: DialogueStudy, items: DialogueItems, log: Path) -> None:
    for name, value in items.origin.items():
        setattr(dialogues, name, value)
    dialogues.log_sha256, dialogues.made_at = log_sha256(log), timezone.now()
    dialogues.save()
    items.store(dialogues)


MAKE_DIALOGUES = "make_dialogues"


def request_dialogue_study(
    *,
    kind: DialogueStudy.Kind,
    title: str,
    experiment: StoredExperiment,
    version: Result | None,
    file: SentFile | None,
    actor: User,
    final_user: str = "",
    per_target: int = 2,
    most_targets: int | None = None,
    seed: int = 0,
) -> DialogueStudy:
    """A study of the experiment's team. Its items come from a version's dialogues or an uploaded
    log, with the experiment's catalogue and judgments."""
    if version is None and file is None:
        raise DialoguesUnfit(_("Choose a result of the experiment, or send a log."))
    if file is not None:
        require_size(file)
    name = plain_file_name(file.name) if file else f"{experiment.slug}-{LOG_NAME}"
    if file is not None:
        # The rest is read in the background; another file altogether is noticed at once.
        first_line = next(iter(file.chunks(PART_BYTES)), b"").partition(b"\n")[0]
        require_log(name, first_line.decode(errors="replace"))
    with transaction.atomic():
        study = begin_study(title=title, owner=actor, team=experiment.team, template=kind)
        dialogues = DialogueStudy.objects.create(
            study=study,
            kind=kind,
            log_name=name,
            catalogue=experiment.catalogue.name,
            seed=seed,
            per_target=per_target if kind == DialogueStudy.Kind.SWITCHING else 0,
            final_user=final_user,
            most_targets=most_targets,
            experiment=experiment,
            version=None if file else version,
        )
        for position, part in enumerate(file.chunks(PART_BYTES) if file else ()):
            DialogueLogPart.objects.create(dialogues=dialogues, position=position, content=part)
    request_study_job(study=study, kind=MAKE_DIALOGUES, requested_by=actor)
    return dialogues


def make_dialogues(running: RunningJob) -> str:
    """Write the study's items in one transaction; then delete an uploaded log."""
    rows = DialogueStudy.objects.select_related("study", "experiment__catalogue", "version")
    dialogues = rows.filter(study=running.arguments["study"]).first()
    if dialogues is None or dialogues.experiment is None:
        raise DialoguesUnfit(_("The experiment was deleted meanwhile."))
    if dialogues.made_at is None:
        _make(running, dialogues, dialogues.experiment)
    return _("{n} items.").format(n=f"{dialogues.study.items.count():,}")


def _make(running: RunningJob, dialogues: DialogueStudy, experiment: StoredExperiment) -> None:
    if dialogues.version is None:
        _require_log(dialogues)
    with _log_on_disk(dialogues) as log:
        items = _items_of_log(dialogues, experiment, log)
        running.check()
        with transaction.atomic():
            running.hold()
            fill_dialogues(dialogues, items, log=log)
            dialogues.log_parts.all().delete()


def _require_log(dialogues: DialogueStudy) -> None:
    if not dialogues.log_parts.exists():
        raise DialoguesUnfit(
            _("The log could not be used and was forgotten. Make a study of another one.")
        )


def _items_of_log(
    dialogues: DialogueStudy, experiment: StoredExperiment, log: Path
) -> DialogueItems:
    try:
        return _items(dialogues, experiment, log)
    except DialoguesUnfit:
        dialogues.log_parts.all().delete()
        raise


@contextmanager
def _log_on_disk(dialogues: DialogueStudy) -> Iterator[Path]:
    with TemporaryDirectory(prefix="assay-dialogues-") as folder:
        path = Path(folder) / dialogues.log_name
        if dialogues.version is not None:
            with path.open("w", encoding="utf-8") as file:
                file.writelines(log_lines(dialogues.version))
        else:
            with path.open("wb") as binary:
                for part in dialogues.log_parts.order_by("position").iterator(chunk_size=4):
                    binary.write(part.content)
        yield path


def _items(dialogues: DialogueStudy, experiment: StoredExperiment, log: Path) -> DialogueItems:
    catalogue = read_stored(experiment.catalogue)
    if dialogues.kind == DialogueStudy.Kind.OUTCOMES:
        return outcome_items(
            log,
            catalogue,
            final_user=dialogues.final_user,
            n_targets=dialogues.most_targets,
            seed=dialogues.seed,
        )
    return switching_items(
        log,
        catalogue,
        _accepted(experiment, dialogues.version),
        per_target=dialogues.per_target,
        seed=dialogues.seed,
    )


def _accepted(experiment: StoredExperiment, version: Result | None) -> dict[str, list[str]]:
    """By target, from the grade that the version's users accepted (1 for a log)."""
    least = plan_of(version.settings).relevant_from if version else 1
    rows = experiment.judgments.filter(grade__gte=least).order_by("pk")
    return group_values(rows.values_list("target", "item"))
