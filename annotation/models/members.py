from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.roles import Role
from annotation.models.studies import Study
from work.models import BaseRow


class StudyMembership(BaseRow):
    # An owner or manager of one study alone would be one whose team did not choose them.
    ROLES = (Role.RESEARCHER, Role.ADJUDICATOR, Role.ANALYST, Role.AUDITOR)

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="study_memberships"
    )
    role = models.CharField(
        _("role"), max_length=12, choices=[(role.value, role.label) for role in ROLES]
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["study", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["study", "user"], name="one_role_a_study_member"),
        ]


class InvitationQuerySet(models.QuerySet["Invitation"]):
    def open(self, at: datetime | None = None) -> InvitationQuerySet:
        at = at or timezone.now()
        return self.filter(accepted_at=None, revoked_at=None, expires_at__gt=at)


class Invitation(BaseRow):
    """A link by which somebody joins a team, or one study, once. Only its hash is stored."""

    team = models.ForeignKey(
        "accounts.Team", on_delete=models.CASCADE, null=True, blank=True, related_name="invitations"
    )
    study = models.ForeignKey(
        Study, on_delete=models.CASCADE, null=True, blank=True, related_name="invitations"
    )
    role = models.CharField(_("role"), max_length=12, choices=Role)
    email = models.EmailField(_("e-mail address"))
    token_hash = models.CharField(max_length=64, unique=True)
    was_mailed = models.BooleanField(
        default=False, help_text="Whoever has the link reads the mail of the address."
    )
    invited_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    accepted_at = models.DateTimeField(null=True, blank=True)
    accepted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    made_account = models.BooleanField(default=False)

    objects = InvitationQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-pk"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(team__isnull=True) ^ models.Q(study__isnull=True),
                name="invited_to_a_team_or_a_study",
            ),
        ]
