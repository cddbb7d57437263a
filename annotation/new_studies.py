from collections.abc import Collection

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import Team, User
from annotation.access import record_in
from annotation.exceptions import StudyUnfit
from annotation.models import Question, Study
from annotation.pairs import copy_items
from annotation.protocols.documents import read_document
from annotation.protocols.records import ProtocolDocument
from annotation.protocols.templates import read_protocol
from annotation.protocols.versions import newest_version, save_draft, write_columns
from annotation.uploads import free_slug


def kind_of_protocol(document: ProtocolDocument) -> str:
    is_pool = any(question.kind == "selection" for question in document.questions)
    return Study.Kind.ALTERNATIVES if is_pool else Study.Kind.RATING


@transaction.atomic
def begin_study(*, title: str, owner: User, team: Team | None, template: str) -> Study:
    document = read_protocol(template)
    study = _new_study(title, owner, team, kind_of_protocol(document))
    save_draft(study=study, document=document)
    write_columns(study, document)
    record_in(study, actor=owner, action="study.create", details={"template": template})
    return study


@transaction.atomic
def copy_study(*, source: Study, title: str, owner: User, team: Team | None) -> Study:
    study = _new_study(title, owner, team, source.kind)
    study.instructions = source.instructions
    study.justification_min_length = source.justification_min_length
    study.save()
    copy_items(source, study)
    if (version := newest_version(source)) is not None:
        document = read_document(version.document)
        save_draft(study=study, document=document)
        write_columns(study, document)
    else:
        names = [field.name for field in Question._meta.fields if field.name not in ("id", "study")]
        Question.objects.bulk_create(
            Question(study=study, **{name: getattr(question, name) for name in names})
            for question in source.questions.all()
        )
    record_in(study, actor=owner, action="study.create", details={"copy_of": source.slug})
    return study


@transaction.atomic
def copy_for_rehearsal(
    *, source: Study, slug: str, document: ProtocolDocument, keys: Collection[str]
) -> Study:
    """The hidden study that simulated annotators answer: these imported items of the source under
    this protocol. It shares the pictures, and has neither a team nor an owner."""
    title = _("Rehearsal of {title}").format(title=source.title)
    study = Study.objects.create(
        slug=slug,
        title=title[: Study._meta.get_field("title").max_length],
        kind=source.kind,
        instructions=source.instructions,
        justification_min_length=source.justification_min_length,
        rehearsal_of=source,
    )
    copy_items(source, study, keys=keys)
    save_draft(study=study, document=document)
    write_columns(study, document)
    return study


@transaction.atomic
def rename_study(*, study: Study, title: str, actor: User | None) -> None:
    former, words = study.title, title.strip()
    most = Study._meta.get_field("title").max_length or 0
    if not words or len(words) > most:
        raise StudyUnfit(
            _("A study's name has 1 to {n} characters.").format(n=most), code="title_length"
        )
    if words != former:
        Study.objects.filter(pk=study.pk).update(title=words)
        study.title = words
        record_in(study, actor=actor, action="study.rename", details={"from": former, "to": words})


def _new_study(title: str, owner: User, team: Team | None, kind: str) -> Study:
    return Study.objects.create(
        slug=free_slug(title), title=title, owner=owner, team=team, kind=kind
    )
