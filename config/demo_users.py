"""Accounts for a project's page: whoever comes may look at a study, and changes nothing."""

from collections.abc import Iterable
from secrets import token_urlsafe

from django.db import transaction

from accounts.enrolment import create_user
from accounts.exceptions import NameTaken
from accounts.models import User
from accounts.roles import Role
from annotation.access import set_study_role
from annotation.models import Study

PASSWORD_BYTES = 12
# Of which reading is left: all of a study but what its team alone sees (accounts/read_only.py).
ROLE = Role.RESEARCHER


@transaction.atomic
def create_demo_user(*, name: str, studies: Iterable[Study]) -> str:
    """Let an account look at these studies; the password of a new one, or nothing.

    NameTaken where somebody has that name who is not there to look around.
    """
    user = User.objects.filter(username=name).first()
    password = "" if user else token_urlsafe(PASSWORD_BYTES)
    if user is None:
        user = create_user(username=name, password=password)
        User.objects.filter(pk=user.pk).update(is_read_only=True)
    elif not user.is_read_only:
        raise NameTaken(f"There is a user named '{name}' already, who is no demo account.")
    for study in studies:
        set_study_role(study=study, user=user, role=ROLE, actor=None)
    return password
