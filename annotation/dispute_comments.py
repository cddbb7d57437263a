"""Comments between colleagues on what annotators do not agree on: written, edited, deleted."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.names import is_seen
from annotation.audit import record_in
from annotation.exceptions import CommentRefused
from annotation.models import Candidate, DisputeComment, Question
from annotation.models.comments import LONGEST_COMMENT


def add_comment(
    *,
    candidate: Candidate,
    question: Question,
    text: str,
    written_by: AbstractBaseUser,
    round: int = 1,
) -> DisputeComment:
    if candidate.item.study_id != question.study_id:
        raise CommentRefused(
            f"'{candidate}' and '{question}' are of different studies.", code="other_study"
        )
    return DisputeComment.objects.create(
        candidate=candidate,
        question=question,
        round=round,
        text=_checked(text),
        written_by_id=written_by.pk,
    )


def edit_comment(*, comment: DisputeComment, text: str, actor: AbstractBaseUser) -> None:
    """Change one's own comment, which says since when; the same text again changes nothing."""
    _require_author(comment, actor)
    text = _checked(text)
    if text != comment.text:
        comment.text, comment.edited_at = text, timezone.now()
        comment.save(update_fields=["text", "edited_at"])


@transaction.atomic
def delete_comment(*, comment: DisputeComment, actor: AbstractBaseUser) -> None:
    """Delete one's own comment; the team's log keeps that there was one, and not what it said."""
    _require_author(comment, actor)
    details: dict[str, Any] = {
        "item": comment.candidate.item.key,
        "candidate": comment.candidate.blind_name,
        "question": comment.question.name,
        "round": comment.round,
        "written_at": comment.written_at.isoformat(),
    }
    study = comment.question.study
    comment.delete()
    record_in(study, actor=actor, action="comment.delete", details=details)


def _require_author(comment: DisputeComment, actor: AbstractBaseUser) -> None:
    if comment.written_by_id != actor.pk:
        raise CommentRefused(
            _("Only who wrote a comment changes or deletes it."), code="other_writer"
        )


def _checked(text: str) -> str:
    text = text.strip()
    if not 0 < len(text) <= LONGEST_COMMENT:
        message = _("A comment has 1 to {most} characters.")
        raise CommentRefused(message.format(most=LONGEST_COMMENT), code="length")
    if not is_seen(text):
        raise CommentRefused(
            _("Nothing of this comment would be seen: write it anew."), code="unseen"
        )
    return text
