"""Writing what a reader made of a file into a study: all of it, or nothing.

Importing the same file again changes nothing; what differs from the study is refused, but
for a submission's status, which a batch that has been reviewed since may change, and for a
question, which stays as the study asks it.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Prefetch

from annotation.exceptions import AnnotationError, ImportRefused
from annotation.models import (
    Annotator,
    Candidate,
    Item,
    Judgment,
    Picture,
    Question,
    Study,
    Submission,
)
from annotation.pseudonyms import pseudonym
from annotation.readers.drafts import (
    ItemDraft,
    PictureDraft,
    QuestionDraft,
    StudyDraft,
    SubmissionDraft,
)

BATCH_SIZE = 1000
# What the column of a place can count to.
MOST_PLACES = 32_767


@dataclass(frozen=True)
class Imported:
    """What an import wrote, and what was there already."""

    study: Study
    n_items: int
    n_items_known: int
    n_submissions: int
    n_submissions_known: int
    repairs: tuple[str, ...]

    def __str__(self) -> str:
        told = f"Study '{self.study.slug}': {self.n_items} items"
        told += f" ({self.n_items_known} more were there already)" if self.n_items_known else ""
        if self.n_submissions or self.n_submissions_known:
            told += f" and {self.n_submissions} submissions"
        if self.n_submissions_known:
            told += f" ({self.n_submissions_known} more were there already)"
        told += " imported."
        return told + "".join(f"\nRepaired: {repair}." for repair in self.repairs)


@transaction.atomic
def import_study(
    *,
    draft: StudyDraft,
    path: Path,
    slug: str,
    title: str = "",
    owner: AbstractBaseUser | None = None,
) -> Imported:
    """Create the study, or add to it, from what was read of the file at `path`."""
    study = _study(draft=draft, slug=slug, title=title, owner=owner)
    _require_places(draft, path)
    _write_questions(study, draft.questions, path)
    if draft.items_only_named:
        _require_items(study, draft.items, path)
    known = _write_items(study, draft.items, path)
    written = _write_submissions(study, draft.submissions, draft.questions, path)
    return Imported(
        study=study,
        n_items=len(draft.items) - known,
        n_items_known=known,
        n_submissions=written,
        n_submissions_known=len(draft.submissions) - written,
        repairs=draft.repairs,
    )


def _study(*, draft: StudyDraft, slug: str, title: str, owner: AbstractBaseUser | None) -> Study:
    try:
        Study._meta.get_field("slug").clean(slug, None)
    except ValidationError:
        raise AnnotationError(
            f"'{slug}' is no name for a study: use letters, digits, hyphens and underscores, "
            "80 at most."
        ) from None
    defaults = {"title": (title or slug)[:128], "kind": draft.kind, "owner": owner}
    # Two imports into a study take turns.
    study, _ = Study.objects.select_for_update().get_or_create(slug=slug, defaults=defaults)
    if study.kind != draft.kind and not draft.items_only_named:
        raise AnnotationError(
            f"Study '{slug}' is a study of {study.kind}; this file holds {draft.kind}. "
            "Nothing was imported."
        )
    return study


def _require_places(draft: StudyDraft, path: Path) -> None:
    if (n := len(draft.questions)) > MOST_PLACES:
        raise ImportRefused(path, f"it has {n} questions; {MOST_PLACES} fit.")
    for item in draft.items:
        if (n := len(item.candidates)) > MOST_PLACES:
            told = f"item '{item.key}' has {n} candidates; {MOST_PLACES} fit."
            raise ImportRefused(path, told, line=item.line)


def _write_questions(study: Study, drafts: Sequence[QuestionDraft], path: Path) -> None:
    """Write the questions the study has not; those it asks stay as they are."""
    known = {question.name: question for question in study.questions.all()}
    for draft in drafts:
        if draft.name in known:
            _require_categories(known[draft.name], draft, path)
    fresh = [draft for draft in drafts if draft.name not in known]
    Question.objects.bulk_create(
        (
            Question(study=study, position=place, **vars(draft))
            for place, draft in enumerate(fresh, start=len(known))
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
        )


def _require_items(study: Study, drafts: Sequence[ItemDraft], path: Path) -> None:
    """A study that has items is not given more of them by a file that only names them."""
    known = set(study.items.values_list("key", flat=True))
    for draft in drafts:
        if known and draft.key not in known:
            raise ImportRefused(
                path,
                f"study '{study.slug}' has no item '{draft.key}'.",
                line=draft.line,
                field="item",
            )


def _write_items(study: Study, drafts: Sequence[ItemDraft], path: Path) -> int:
    """Write the items the study has not; return how many it had, all of them the same."""
    known = _known_items(study)
    for draft in drafts:
        if draft.key in known:
            _require_same(known[draft.key], draft, path)
    fresh = [draft for draft in drafts if draft.key not in known]
    pictures = _write_pictures(_pictures(fresh))
    items = Item.objects.bulk_create(
        (
            _new_item(study, draft, len(known) + place, pictures)
            for place, draft in enumerate(fresh)
        ),
        batch_size=BATCH_SIZE,
    )
    candidates = (
        candidate
        for item, draft in zip(items, fresh, strict=True)
        for candidate in _new_candidates(item, draft, pictures)
    )
    Candidate.objects.bulk_create(candidates, batch_size=BATCH_SIZE)
    return len(drafts) - len(fresh)


def _known_items(study: Study) -> dict[str, Item]:
    """The study's items by key, with their candidates and the names of their pictures."""
    candidates = Candidate.objects.select_related("picture").defer("picture__content")
    items = study.items.select_related("picture").defer("picture__content")
    return {
        item.key: item
        for item in items.prefetch_related(Prefetch("candidates", queryset=candidates))
    }


def _require_same(item: Item, draft: ItemDraft, path: Path) -> None:
    """What a file leaves empty or out is no difference: judgments made elsewhere name items
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
            )
    for field in ("context", "reference", "condition"):
        if getattr(draft, field) not in ("", getattr(item, field)):
            raise ImportRefused(
                path,
                f"item '{draft.key}' is in the study with another {field}.",
                line=draft.line,
                field=field,
            )
    if not _is_picture(item.picture, draft.picture):
        raise ImportRefused(
            path, f"item '{draft.key}' is in the study with another picture.", line=draft.line
        )


def _is_picture(known: Picture | None, draft: PictureDraft | None) -> bool:
    """Whether a file's picture, if it has one, is the one in the study."""
    return draft is None or (known is not None and known.sha256 == _digest(draft))


def _pictures(drafts: Iterable[ItemDraft]) -> dict[str, PictureDraft]:
    found = [draft.picture for draft in drafts]
    found += [candidate.picture for draft in drafts for candidate in draft.candidates]
    return {_digest(picture): picture for picture in found if picture is not None}


def _digest(picture: PictureDraft) -> str:
    return hashlib.sha256(picture.content).hexdigest()


def _write_pictures(drafts: dict[str, PictureDraft]) -> dict[str, Picture]:
    Picture.objects.bulk_create(
        (Picture(sha256=digest, **vars(draft)) for digest, draft in drafts.items()),
        ignore_conflicts=True,
        batch_size=BATCH_SIZE,
    )
    return Picture.objects.defer("content").in_bulk(list(drafts), field_name="sha256")


def _new_item(study: Study, draft: ItemDraft, place: int, pictures: dict[str, Picture]) -> Item:
    return Item(
        study=study,
        key=draft.key,
        condition=draft.condition,
        context=draft.context,
        reference=draft.reference,
        picture=pictures[_digest(draft.picture)] if draft.picture else None,
        position=place,
    )


def _new_candidates(
    item: Item, draft: ItemDraft, pictures: dict[str, Picture]
) -> Iterable[Candidate]:
    for place, candidate in enumerate(draft.candidates):
        picture = pictures[_digest(candidate.picture)] if candidate.picture else None
        yield Candidate(
            item=item,
            key=candidate.key,
            system=candidate.system,
            text=candidate.text,
            picture=picture,
            position=place,
        )


def _write_submissions(
    study: Study,
    drafts: Sequence[SubmissionDraft],
    asked: Sequence[QuestionDraft],
    path: Path,
) -> int:
    """Write the submissions the study has not, and return how many they were."""
    if not drafts:
        return 0
    names = {id(draft): _name(study, draft) for draft in drafts}
    annotators = _write_annotators(study, set(names.values()))
    items = {item.key: item for item in study.items.prefetch_related("candidates")}
    known = _known_submissions(study)
    fresh, decided = [], []
    for draft in drafts:
        there = known.get((names[id(draft)], draft.item, draft.round))
        if there is None:
            fresh.append(draft)
        elif there.raw != draft.raw:
            raise ImportRefused(
                draft.path or path,
                f"annotator '{names[id(draft)]}' has another submission for item "
                f"'{draft.item}' in the study.",
                line=draft.line,
            )
        elif there.status != draft.status:
            there.status = draft.status
            decided.append(there)
    Submission.objects.bulk_update(decided, ["status"], batch_size=BATCH_SIZE)
    submissions = Submission.objects.bulk_create(
        (
            _new_submission(draft, items[draft.item], annotators[names[id(draft)]])
            for draft in fresh
        ),
        batch_size=BATCH_SIZE,
    )
    _write_judgments(study, list(zip(submissions, fresh, strict=True)), items, asked, path)
    return len(fresh)


def _known_submissions(study: Study) -> dict[tuple[str, str, int], Submission]:
    """The study's submissions by annotator, item and round."""
    there = Submission.objects.of(study).select_related("annotator", "item")
    narrow = there.only("annotator__pseudonym", "item__key", "round", "raw", "status")
    return {(s.annotator.pseudonym, s.item.key, s.round): s for s in narrow}


def _name(study: Study, draft: SubmissionDraft) -> str:
    return draft.annotator or pseudonym(study, draft.identity)


def _write_annotators(study: Study, names: set[str]) -> dict[str, Annotator]:
    Annotator.objects.bulk_create(
        (Annotator(study=study, pseudonym=name) for name in sorted(names)), ignore_conflicts=True
    )
    return {annotator.pseudonym: annotator for annotator in study.annotators.all()}


def _new_submission(draft: SubmissionDraft, item: Item, annotator: Annotator) -> Submission:
    return Submission(
        item=item,
        annotator=annotator,
        round=draft.round,
        status=draft.status,
        raw=draft.raw,
        justification=draft.justification,
        accepted_at=draft.accepted_at,
        submitted_at=draft.submitted_at,
        seconds=draft.seconds,
    )


def _write_judgments(
    study: Study,
    pairs: list[tuple[Submission, SubmissionDraft]],
    items: dict[str, Item],
    asked: Sequence[QuestionDraft],
    path: Path,
) -> None:
    questions = {question.name: question for question in study.questions.all()}
    codes = _codes(questions, asked)
    candidates = {
        (item.key, candidate.key): candidate
        for item in items.values()
        for candidate in item.candidates.all()
    }
    judgments = []
    for submission, draft in pairs:
        for judgment in draft.judgments:
            question, value = questions[judgment.question], judgment.value
            if question.name in codes:
                value = codes[question.name][int(value)]
            if (problem := question.why_not(value)) is not None:
                line = judgment.line or draft.line
                raise ImportRefused(draft.path or path, problem, line=line, field=judgment.field)
            judgments.append(
                Judgment(
                    submission=submission,
                    candidate=candidates[draft.item, judgment.candidate],
                    question=question,
                    value=value,
                )
            )
    Judgment.objects.bulk_create(judgments, batch_size=BATCH_SIZE)


def _codes(
    questions: dict[str, Question], asked: Sequence[QuestionDraft]
) -> dict[str, list[float]]:
    """What each category of the file counts as in the study, which may have more of them."""
    return {
        draft.name: [float(questions[draft.name].categories.index(c)) for c in draft.categories]
        for draft in asked
        if draft.categories
    }
