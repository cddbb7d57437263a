"""Whose study it is: its owner sees it in the console."""

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from annotation.exceptions import StudyUnfit
from annotation.models import Study


@transaction.atomic
def assign_owner(
    *, study: Study, owner: AbstractBaseUser, is_replacing: bool = False
) -> AbstractBaseUser | None:
    """Give a study its owner and return the former one, whom nothing replaces unasked."""
    former = Study.objects.select_for_update().get(pk=study.pk).owner
    if former not in (None, owner) and not is_replacing:
        raise StudyUnfit(
            f"Study '{study.slug}' belongs to '{former}'. Add --replace to give it to another "
            "user.",
            code="has_owner",
        )
    Study.objects.filter(pk=study.pk).update(owner=owner.pk)
    study.refresh_from_db(fields=["owner"])
    return former


def ownership_warning(study: Study) -> str | None:
    """What to say of a study that nobody owns; None where somebody, or a team, does."""
    if study.owner_id is not None or study.team_id is not None:
        return None
    return (
        f"Study '{study.slug}' has no owner, so the console shows it to superusers only. Give it "
        f"one with `python manage.py assign_owner {study.slug} USER`."
    )
