"""Writing what a reader made of a file into a study: all of it, or nothing.

Importing the same file again changes nothing; what differs from the study is refused, but
for a submission's status, which a batch that has been reviewed since may change, and for a
question, which stays as the study asks it.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Prefetch
from django.utils.translation import gettext as _, ngettext

from accounts.models import Team
from annotation.access import give_to_team, record_in
from annotation.bulk import DRAFTS_AT_ONCE, batched, insert_rows
from annotation.exceptions import AnnotationError, ImportRefused
from annotation.flags import count_judgments_change
from annotation.models import (
    Candidate,
    Item,
    Picture,
    Question,
    Study,
    new_blind_keys,
)
from annotation.pairs import set_pairs
from annotation.protocols.records import ProtocolDocument
from annotation.protocols.versions import (
    current_document,
    freezing_faults,
    require_no_faults,
    save_draft,
    write_columns,
)
from annotation.readers.drafts import (
    ItemDraft,
    PictureDraft,
    QuestionDraft,
    ReadingReport,
    StudyDraft,
)
from annotation.submission_imports import write_submissions

BATCH_SIZE = 1000
# What the column of a position can count to.
MOST_POSITIONS = 32_767


@dataclass(frozen=True)
class ImportResult:
    study: Study
    n_items: int
    n_items_known: int
    n_submissions: int
    n_submissions_known: int
    report: ReadingReport

    def record(self) -> dict[str, Any]:
        return {
            "study": self.study.slug,
            "n_items": self.n_items,
            "n_items_known": self.n_items_known,
            "n_submissions": self.n_submissions,
            "n_submissions_known": self.n_submissions_known,
            "reading": self.report.plain(),
        }

    def __str__(self) -> str:
        n, n_submissions = self.n_items, self.n_submissions
        parts = {
            "study": self.study.slug,
            "items": _with_known(
                ngettext("{n:,} item", "{n:,} items", n).format(n=n), self.n_items_known
            ),
            "submissions": _with_known(
                ngettext("{n:,} submission", "{n:,} submissions", n_submissions).format(
                    n=n_submissions
                ),
                self.n_submissions_known,
            ),
        }
        if n_submissions or self.n_submissions_known:
            sentence = _("Study '{study}': {items} and {submissions} imported.").format(**parts)
        else:
            sentence = _("Study '{study}': {items} imported.").format(**parts)
        rows = self.report.sentences() if self.report.n_rows else map(str, self.report.notes)
        return "\n".join([sentence, *rows])


def _with_known(text: str, n: int) -> str:
    if not n:
        return text
    return ngettext(
        "{new} ({n:,} more was there already)", "{new} ({n:,} more were there already)", n
    ).format(new=text, n=n)


@transaction.atomic
def import_study(
    *,
    draft: StudyDraft,
    path: Path,
    slug: str,
    title: str = "",
    owner: AbstractBaseUser | None = None,
    team: Team | None = None,
    protocol: ProtocolDocument | None = None,
    actor: AbstractBaseUser | None = None,
) -> ImportResult:
    """Create the study, or add to it, from what was read of the file at `path`.

    Drafts are written a few hundred at a time, so that a long file takes no more memory.
    """
    study = _study(draft=draft, slug=slug, title=title, owner=owner)
    if team is not None and study.team_id != team.pk:
        give_to_team(study=study, team=team, actor=None)
    if (n := len(draft.questions)) > MOST_POSITIONS:
        raise ImportRefused(
            path, f"it has {n} questions; {MOST_POSITIONS} fit.", code="too_many_questions"
        )
    if draft.submissions or not study.protocols.exists():
        _write_questions(study, draft.questions, path)
    if protocol is not None:
        _give_protocol(study, protocol)
    # Pairs are drawn again, of the items that were there and of the new ones.
    pairs = None if draft.items_only_named else current_document(study).pairs
    set_pairs(study, None, before=pairs)
    n_items = study.items.count()
    n_new = 0
    for items in batched(draft.items, draft.drafts_at_once or DRAFTS_AT_ONCE):
        known = _known_items(study, [item.key for item in items]) if n_items else {}
        if n_items and draft.items_only_named:
            _require_known(study, items, known, path)
        n_new += _write_items(study, items, known, n_items + n_new, path)
    set_pairs(study, pairs, before=None)
    counts = write_submissions(study, draft, path)
    if counts.n_changed:
        count_judgments_change(study_ids=[study.pk])
    if n_new or counts.n_new:
        record_in(
            study,
            actor=actor,
            action="study.import",
            details={"file": path.name, "n_items": n_new, "n_submissions": counts.n_new},
        )
    return ImportResult(
        study=study,
        n_items=n_new,
        n_items_known=len(draft.items) - n_new,
        n_submissions=counts.n_new,
        n_submissions_known=len(draft.submissions) - counts.n_new,
        report=draft.report,
    )


def _give_protocol(study: Study, protocol: ProtocolDocument) -> None:
    require_no_faults(freezing_faults(study, protocol))
    save_draft(study=study, document=protocol)
    write_columns(study, protocol)


def _study(*, draft: StudyDraft, slug: str, title: str, owner: AbstractBaseUser | None) -> Study:
    try:
        Study._meta.get_field("slug").clean(slug, None)
    except ValidationError:
        raise AnnotationError(
            f"'{slug}' is not a valid study name: use letters, digits, hyphens and underscores, "
            "80 at most.",
            code="invalid_slug",
        ) from None
    defaults = {"title": (title or slug)[:128], "kind": draft.kind, "owner": owner}
    # Two imports into a study take turns.
    study, _ = Study.objects.select_for_update().get_or_create(slug=slug, defaults=defaults)
    if study.kind != draft.kind and not draft.items_only_named:
        raise AnnotationError(
            f"Study '{slug}' is a study of {study.kind}; this file holds {draft.kind}. "
            "Nothing was imported.",
            code="other_kind",
        )
    return study


def _write_questions(study: Study, drafts: Sequence[QuestionDraft], path: Path) -> None:
    known = {question.name: question for question in study.questions.all()}
    for draft in drafts:
        if draft.name in known:
            _require_categories(known[draft.name], draft, path)
    fresh = [draft for draft in drafts if draft.name not in known]
    Question.objects.bulk_create(
        (
            Question(study=study, position=position, **vars(draft))
            for position, draft in enumerate(fresh, start=len(known))
        ),
        batch_size=BATCH_SIZE,
    )


def _require_categories(question: Question, draft: QuestionDraft, path: Path) -> None:
    unknown = [name for name in draft.categories if name not in question.categories]
    if unknown:
        raise ImportRefused(
            path,
            f"question '{question.name}' of study '{question.study.slug}' has the categories "
            f"{', '.join(question.categories) or '(none)'}, and not '{unknown[0]}'.",
            code="unknown_category",
        )


def _require_known(
    study: Study, drafts: list[ItemDraft], known: dict[str, Item], path: Path
) -> None:
    for draft in drafts:
        if draft.key not in known:
            raise ImportRefused(
                path,
                f"study '{study.slug}' has no item '{draft.key}'.",
                line=draft.line,
                field="item",
                code="unknown_item",
            )


def _write_items(
    study: Study, drafts: list[ItemDraft], known: dict[str, Item], position: int, path: Path
) -> int:
    for draft in drafts:
        if (n := len(draft.candidates)) > MOST_POSITIONS:
            raise ImportRefused(
                path,
                f"item '{draft.key}' has {n} candidates; {MOST_POSITIONS} fit.",
                line=draft.line,
                code="too_many_candidates",
            )
        if draft.key in known:
            _require_same(known[draft.key], draft, path)
    fresh = [draft for draft in drafts if draft.key not in known]
    pictures = _write_pictures(_pictures(fresh))
    insert_rows(
        Item,
        ("study_id", "key", "condition", "context", "reference", "picture_id", "position"),
        (
            (
                *(study.pk, draft.key, draft.condition, draft.context, draft.reference),
                _picture_id(draft.picture, pictures),
                position + n,
            )
            for n, draft in enumerate(fresh)
        ),
    )
    # An older item may have one of these positions, too. A list of keys takes longer to prepare.
    items = study.items.filter(position__range=(position, position + len(fresh))).order_by()
    insert_rows(
        Candidate,
        ("item_id", "key", "blind_key", "system", "text", "picture_id", "position", "extra"),
        _candidate_rows(fresh, dict(items.values_list("key", "pk")), pictures),
    )
    return len(fresh)


def _known_items(study: Study, keys: Sequence[str]) -> dict[str, Item]:
    candidates = Candidate.objects.select_related("picture").defer("picture__content")
    items = study.items.select_related("picture").defer("picture__content")
    items = items.filter(key__in=keys).order_by()
    return {
        item.key: item
        for item in items.prefetch_related(Prefetch("candidates", queryset=candidates))
    }


def _require_same(item: Item, draft: ItemDraft, path: Path) -> None:
    """What a file leaves empty or out makes no difference: judgments made elsewhere name items
    without their texts, and may name fewer candidates."""
    there = {candidate.key: candidate for candidate in item.candidates.all()}
    for candidate in draft.candidates:
        known = there.get(candidate.key)
        if known is None or not (
            candidate.text in ("", known.text)
            and candidate.system in ("", candidate.key, known.system)
            and _is_picture(known.picture, candidate.picture)
        ):
            raise ImportRefused(
                path,
                f"candidate '{candidate.key}' of item '{draft.key}' is not in study "
                f"'{item.study.slug}', or is another there.",
                line=draft.line,
                code="other_candidate",
            )
    for name in ("context", "reference", "condition"):
        if getattr(draft, name) not in ("", getattr(item, name)):
            raise ImportRefused(
                path,
                f"item '{draft.key}' is in the study with another {name}.",
                line=draft.line,
                field=name,
                code="differs",
            )
    if not _is_picture(item.picture, draft.picture):
        raise ImportRefused(
            path,
            f"item '{draft.key}' is in the study with another picture.",
            line=draft.line,
            code="other_picture",
        )


def _is_picture(known: Picture | None, draft: PictureDraft | None) -> bool:
    return draft is None or (known is not None and known.sha256 == _digest(draft))


def _pictures(drafts: Iterable[ItemDraft]) -> dict[str, PictureDraft]:
    pictures = [draft.picture for draft in drafts]
    pictures += [candidate.picture for draft in drafts for candidate in draft.candidates]
    return {_digest(picture): picture for picture in pictures if picture is not None}


def _digest(picture: PictureDraft) -> str:
    return hashlib.sha256(picture.content).hexdigest()


def _write_pictures(drafts: dict[str, PictureDraft]) -> dict[str, Picture]:
    Picture.objects.bulk_create(
        (Picture(sha256=digest, **vars(draft)) for digest, draft in drafts.items()),
        ignore_conflicts=True,
        batch_size=BATCH_SIZE,
    )
    return Picture.objects.defer("content").in_bulk(list(drafts), field_name="sha256")


def _picture_id(draft: PictureDraft | None, pictures: dict[str, Picture]) -> int | None:
    return pictures[_digest(draft)].pk if draft else None


def _candidate_rows(
    drafts: Sequence[ItemDraft], ids: dict[str, int], pictures: dict[str, Picture]
) -> Iterator[tuple[object, ...]]:
    blind_keys = iter(new_blind_keys(sum(len(draft.candidates) for draft in drafts)))
    for draft in drafts:
        for n, candidate in enumerate(draft.candidates):
            yield (
                *(ids[draft.key], candidate.key, next(blind_keys), candidate.system),
                *(candidate.text, _picture_id(candidate.picture, pictures), n, candidate.extra),
            )
