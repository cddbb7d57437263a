"""Users, who are researchers, workers and operators alike; the teams that researchers work in;
the log of what was done in a team's name; and the tokens of programs."""

from datetime import datetime
from decimal import Decimal
from typing import Self, TypeVar

from django.contrib.auth.models import AbstractUser
from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _

from accounts.exceptions import TeamUnknown, UserUnknown
from accounts.names import require_visible
from accounts.roles import SYSTEM_VIEWERS, Permission, Role, permissions_in_scopes
from work.models import BaseRow


class User(AbstractUser):
    is_read_only = models.BooleanField(
        default=False,
        help_text="To look around with, by many perhaps: it changes nothing, whatever its roles.",
    )

    class Meta(AbstractUser.Meta):
        constraints = [
            # Signing in ignores case: a second "Ada" would keep the first out.
            models.UniqueConstraint(
                Lower("username"),
                name="unique_username_ignoring_case",
                violation_error_message="A user with that username already exists.",
            )
        ]

    def clean(self) -> None:
        # Also refuse letters that are not seen, which Django takes for letters like others.
        super().clean()
        try:
            require_visible(self.username or "")  # none where the form's field was refused
        except ValidationError as error:
            raise ValidationError({"username": error}) from error

    @classmethod
    def named(cls, name: str) -> "User":
        user = cls.objects.filter(username=name).first()
        if user is None:
            raise UserUnknown(f"There is no user '{name}'.")
        return user


class CreatedRow(BaseRow):
    created_by = models.ForeignKey(
        User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        abstract = True


class TeamQuerySet(models.QuerySet["Team"]):
    def named(self, slug: str) -> "Team":
        team = self.filter(slug=slug).first()
        if team is None:
            slugs = ", ".join(self.order_by("slug").values_list("slug", flat=True)) or "none"
            raise TeamUnknown(f"There is no team '{slug}'. Teams: {slugs}.")
        return team

    def of(self, user: User) -> "TeamQuerySet":
        if user.is_superuser:
            return self
        return self.filter(pk__in=Membership.objects.filter(user=user.pk).values("team"))


class Team(BaseRow):
    name = models.CharField(_("name"), max_length=80)
    slug = models.SlugField(max_length=80, unique=True)
    wage_floor_usd = models.DecimalField(
        _("least pay an hour"),
        max_digits=6,
        decimal_places=2,
        null=True,
        blank=True,
        validators=[MinValueValidator(Decimal(0))],
        help_text=_("Pages warn where work is estimated or measured to pay less an hour."),
    )
    can_connect_this_site = models.BooleanField(
        default=False,
        help_text="Whether an operator created it, so that its managers may connect it to this "
        "site's marketplace although the site is not open to all requesters.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = TeamQuerySet.as_manager()

    class Meta:
        ordering = ["name", "pk"]


class Membership(BaseRow):
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(_("role"), max_length=12, choices=Role)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["team", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["team", "user"], name="one_role_a_member"),
        ]


RowOfTeam = TypeVar("RowOfTeam", bound=models.Model)


class TeamRowQuerySet(models.QuerySet[RowOfTeam]):
    """Rows of teams, for those whose role may see which system did what."""

    team_field = "team"

    def visible_to(self, user: User) -> Self:
        if user.is_superuser:
            return self
        teams = Membership.objects.filter(user=user.pk, role__in=SYSTEM_VIEWERS).values("team")
        return self.filter(**{f"{self.team_field}__in": teams})

    def with_role_of(self, user: User) -> Self:
        """Each row with `user_role`, the user's role in its team; "owner" for superusers."""
        if user.is_superuser:
            return self.annotate(user_role=models.Value(Role.OWNER))
        of_user = Membership.objects.filter(team=models.OuterRef(self.team_field), user=user.pk)
        return self.annotate(user_role=models.Subquery(of_user.values("role")[:1]))


class AuditEntryQuerySet(models.QuerySet["AuditEntry"]):
    def of(self, team: Team) -> "AuditEntryQuerySet":
        return self.filter(chain=chain_of(team))


def chain_of(team: Team | None) -> str:
    """The name of a team's chain of entries; what belongs to no team is in the site's."""
    return f"team:{team.pk}" if team else "site"


class AuditChain(BaseRow):
    """The end of a chain of audit entries: who appends locks it, and a cut-off end is noticed."""

    name = models.CharField(max_length=24, primary_key=True)
    length = models.PositiveBigIntegerField(default=0)
    last_hash = models.CharField(max_length=64, blank=True)
    seal = models.CharField(max_length=64, help_text="Of the end at the sealed length.")
    sealed_length = models.PositiveBigIntegerField(default=0)


class AuditEntry(BaseRow):
    """Something that was done: who, what, to what. Written by `accounts.audit.record` only.

    Each holds the hash of the one before, so that a changed or missing entry breaks the chain.
    Actors and subjects are texts as well, which outlive what they name.
    """

    chain = models.CharField(max_length=24)
    position = models.PositiveBigIntegerField()
    at = models.DateTimeField()
    actor = models.ForeignKey(
        User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    actor_name = models.CharField(max_length=150, blank=True)
    action = models.CharField(max_length=40)
    subject = models.CharField(max_length=200, blank=True)
    details = models.JSONField(default=dict, blank=True)
    previous_hash = models.CharField(max_length=64, blank=True)
    hash = models.CharField(max_length=64)
    seal = models.CharField(max_length=64)

    objects = AuditEntryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "audit entries"
        ordering = ["chain", "-position"]
        constraints = [
            models.UniqueConstraint(fields=["chain", "position"], name="audit_position_once"),
        ]


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    def personal(self, user: User) -> "ApiTokenQuerySet":
        return self.filter(user=user.pk, team=None)

    def standing(self) -> "ApiTokenQuerySet":
        return self.filter(revoked_at=None)

    def usable(self, now: datetime) -> "ApiTokenQuerySet":
        return self.standing().filter(expires_at__gt=now, user__is_active=True)


class ApiToken(CreatedRow):
    """What a program signs in with: a person's, or a team's, which has a user of its own.

    The token itself is displayed once; its digest is stored. Made by `accounts.tokens` only.
    """

    user = models.ForeignKey(
        User, on_delete=models.CASCADE, related_name="api_tokens", help_text="As whom it acts."
    )
    team = models.ForeignKey(
        Team,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="api_tokens",
        help_text="Whose it is; a person's has none.",
    )
    name = models.CharField(_("name"), max_length=80)
    prefix = models.CharField(max_length=16, help_text="By which people recognize it.")
    digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = ApiTokenQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    @property
    def permissions(self) -> frozenset[Permission]:
        return permissions_in_scopes(*self.scopes)
