"""Who may do what in a study: by its team's roles, or by a role in this study alone."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.roles import Role
from annotation.models.studies import Study


class StudyMembership(models.Model):
    """A role in one study, for somebody of another team, or beyond their role in this one."""

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

    def __str__(self) -> str:
        return f"{self.user}, {self.role} in {self.study}"
