"""What must be looked up before a launch: every item's page, and the requester's account.

Both take longer than a page may, so a job does it; what it finds is cached for the page.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256

from django.core.cache import cache
from django.db.models import Count, Q
from django.utils.translation import gettext as _

from accounts.models import User
from annotation.models import Candidate, Item, Study
from annotation.protocols.documents import fingerprint as fingerprint_of, plain_document
from annotation.protocols.practice import practised_keys
from annotation.protocols.versions import current_document
from annotation.study_facts import CHECK_LAUNCH, jobs_of, request_study_job, study_of
from hits.connections import balance_usd, client_of
from hits.exceptions import BatchUnfit, HitsError, QuestionTooLarge
from hits.models import Connection
from hits.questions import html_question
from hits.requirements import has_languages
from hits.wages import StudyTexts, study_texts
from presentation.progress import Progress, silently
from work.execution import RunningJob
from work.models import Job

# Items with their pictures that are in memory at once.
CHUNK = 20


def item_faults(study: Study, progress: Progress = silently) -> Iterator[tuple[Item, HitsError]]:
    document = current_document(study)
    items = study.items.select_related("study", "picture")
    items = items.prefetch_related("candidates__picture", "study__questions")
    for item in progress(items.iterator(chunk_size=CHUNK), items.count()):
        try:
            html_question(item, document)
        except QuestionTooLarge as error:
            yield item, error
        except ValueError as error:
            yield (
                item,
                BatchUnfit(
                    _("An item cannot be shown to workers: {error}").format(error=error),
                    code=getattr(error, "code", ""),
                ),
            )


PAGES_SECONDS = 24 * 3600
FUNDS_SECONDS = 120
MOST_FAULTS = 50


@dataclass(frozen=True)
class PageFault:
    item_id: int
    key: str
    message: str


@dataclass(frozen=True)
class PageCheck:
    # `repeats` are items with two responses of the same text; `blanks` have nothing to judge.

    n_pages: int
    n_faults: int
    faults: tuple[PageFault, ...]
    repeats: tuple[tuple[int, str], ...]
    n_responses: int
    n_empty: int
    first_empty: int | None
    n_blanks: int
    blanks: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Funds:
    available_usd: Decimal | None
    problem: str
    is_known: bool
    has_languages: bool = False


def texts_fingerprint(texts: StudyTexts) -> str:
    study = texts.study
    questions = [
        tuple(getattr(question, field.attname) for field in question._meta.concrete_fields)
        for question in texts.questions
    ]
    basis = (study.pk, study.instructions, study.justification_min_length, questions)
    counts = (texts.of_items, texts.of_candidates)
    return sha256(
        repr((basis, counts, fingerprint_of(plain_document(current_document(study))))).encode()
    ).hexdigest()


def page_check(study: Study, fingerprint: str) -> PageCheck | None:
    check: PageCheck | None = cache.get(_pages_key(study, fingerprint))
    return check


def funds_of(connection: Connection) -> Funds | None:
    funds: Funds | None = cache.get(_funds_key(connection.pk))
    return funds


def request_check(
    *, study: Study, connection: Connection, fingerprint: str, requested_by: User
) -> Job:
    last = jobs_of(study).of_kind(CHECK_LAUNCH).first()
    if last is not None and last.state == last.State.FAILED and last.basis == fingerprint:
        return last
    return request_study_job(
        study=study,
        kind=CHECK_LAUNCH,
        arguments={"connection": connection.pk},
        requested_by=requested_by,
        basis=fingerprint,
    )


def check_launch(running: RunningJob) -> str:
    study = study_of(running)
    connection = Connection.objects.get(pk=running.arguments["connection"])
    cache.set(_funds_key(connection.pk), _funds_at(connection), FUNDS_SECONDS)
    fingerprint = texts_fingerprint(study_texts(study))
    if page_check(study, fingerprint) is None:
        cache.set(_pages_key(study, fingerprint), _check_pages(running, study), PAGES_SECONDS)
    return ""


def _funds_at(connection: Connection) -> Funds:
    try:
        client = client_of(connection)
        return Funds(balance_usd(client), "", True, has_languages(client))
    except HitsError as error:
        return Funds(None, str(error), False)


def _check_pages(running: RunningJob, study: Study) -> PageCheck:
    faults = [
        PageFault(item.pk, item.key, str(error))
        for item, error in item_faults(study, running.progress("item pages"))
    ]
    texts = Candidate.objects.filter(item__study=study.pk).exclude(text="").order_by("item")
    # Two products of one title are two where their pictures differ.
    repeats = dict.fromkeys(
        (row["item"], row["item__key"])
        for row in texts.values("item", "item__key", "text", "picture")
        .annotate(n=Count("*"))
        .filter(n__gt=1)[:MOST_FAULTS]
    )
    judged = study.items.exclude(key__in=practised_keys(current_document(study)))
    responses = Candidate.objects.filter(item__in=judged)
    is_empty = Q(text="", picture=None)
    empty = responses.filter(is_empty)
    filled = responses.exclude(is_empty).order_by()
    # Every item has candidates, or its page is a fault already.
    blanks = judged.filter(context="", picture=None).exclude(pk__in=filled.values("item"))
    blanks = blanks.filter(candidates__isnull=False).distinct()
    return PageCheck(
        n_pages=judged.count(),
        n_faults=len(faults),
        faults=tuple(faults[:MOST_FAULTS]),
        repeats=tuple(repeats),
        n_responses=responses.count(),
        n_empty=empty.count(),
        first_empty=empty.order_by("item__position", "item").values_list("item", flat=True).first(),
        n_blanks=blanks.count(),
        blanks=tuple(blanks.values_list("pk", "key")[:MOST_FAULTS]),
    )


def _pages_key(study: Study, fingerprint: str) -> str:
    return f"launch-pages-2:{study.pk}:{fingerprint}"


def _funds_key(connection_id: int) -> str:
    return f"launch-funds:{connection_id}"


def forget_funds(connection_id: int) -> None:
    cache.delete(_funds_key(connection_id))
