"""Links with which co-authors and ethics boards see the annotators' pages without an account."""

import secrets
from datetime import timedelta
from hashlib import sha256

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from accounts.audit import record
from accounts.models import User
from annotation.models import Item, Study
from hits.models import PreviewLink

LIFETIME = timedelta(days=30)
TOKEN_BYTES = 32


@transaction.atomic
def create_preview_link(*, study: Study, actor: User) -> str:
    """Store a link and return its token, which is not stored."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    _record(
        PreviewLink.objects.create(
            study=study,
            token_hash=_hash(token),
            created_by=actor,
            expires_at=timezone.now() + LIFETIME,
        ),
        actor,
        "study.preview_link",
    )
    return token


@transaction.atomic
def revoke_preview_link(*, link: PreviewLink, actor: User) -> None:
    """Revoking a link that has been revoked or has expired changes nothing."""
    if PreviewLink.objects.active().filter(pk=link.pk).update(revoked_at=timezone.now()):
        _record(link, actor, "study.preview_link_revoked")


def active_preview_links(study: Study) -> QuerySet[PreviewLink]:
    return PreviewLink.objects.of(study).active().select_related("created_by")


def previewed_study(token: str) -> Study | None:
    """The study of an active link; None if the link has expired, was revoked or never existed."""
    link = (
        PreviewLink.objects.active().select_related("study").filter(token_hash=_hash(token)).first()
    )
    return link.study if link else None


def previewed_item(study: Study, number: int) -> Item | None:
    """The study's item at that position, from 1."""
    items = Item.objects.filter(study=study).select_related("study", "picture")
    return items.order_by("position", "pk")[number - 1 : number].first() if number > 0 else None


def _hash(token: str) -> str:
    return sha256(token.encode()).hexdigest()


def _record(link: PreviewLink, actor: User, action: str) -> None:
    study = link.study
    record(
        team=study.team,
        actor=actor,
        action=action,
        subject=study.slug,
        details={"link": link.pk, "expires_at": link.expires_at.isoformat()},
    )
