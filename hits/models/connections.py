"""Marketplaces that a team is a requester at."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts.models import Team


class ConnectionQuerySet(models.QuerySet["Connection"]):
    def of(self, team: Team) -> ConnectionQuerySet:
        return self.filter(team=team)

    def usable(self) -> ConnectionQuerySet:
        return self.filter(closed_at=None)


class Connection(models.Model):
    """A requester account at a marketplace: where it is, and the key to it.

    One without a team is the site's own, named after a profile of `hits.endpoints`; its key is
    in the environment. Its secret is encrypted under ENCRYPTION_KEYS.
    """

    class Fees(models.TextChoices):
        NONE = "none", _("No fees")
        MTURK = "mturk", _("Amazon Mechanical Turk's")

    team = models.ForeignKey(
        Team, on_delete=models.PROTECT, null=True, blank=True, related_name="connections"
    )
    name = models.CharField(_("name"), max_length=40)
    marketplace = models.CharField(
        max_length=255,
        help_text="Whose worker ids these are: a profile, or the host of another marketplace.",
    )
    endpoint_url = models.URLField(
        _("address"), blank=True, help_text="Empty where the profile's, or this site's own."
    )
    access_key_id = models.CharField(_("access key"), max_length=128, blank=True)
    encrypted_secret = models.TextField(blank=True, editable=False)
    fees = models.CharField(_("fees"), max_length=8, choices=Fees, default=Fees.NONE)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    failed_at = models.DateTimeField(null=True, blank=True, editable=False)
    problem = models.TextField(
        blank=True, editable=False, help_text="Why nothing could be collected over it last."
    )
    decisions_after = models.CharField(
        max_length=64,
        blank=True,
        editable=False,
        help_text="Up to where decisions on participants' work were heard of.",
    )
    closed_at = models.DateTimeField(
        null=True, blank=True, help_text="Since when nothing new is published over it."
    )

    objects = ConnectionQuerySet.as_manager()

    class Meta:
        ordering = ["team", "name"]
        constraints = [
            models.UniqueConstraint(fields=["team", "name"], name="connection_name_once_a_team"),
            models.UniqueConstraint(
                fields=["name"], condition=Q(team=None), name="site_connection_once_a_profile"
            ),
        ]

    def __str__(self) -> str:
        """A team may call its connection to this site what it likes; the site's own, whose name is
        that of a profile, is called what the launch page calls a team's."""
        return str(_("This site")) if self.team_id is None and self.is_on_this_site else self.name

    @property
    def is_on_this_site(self) -> bool:
        """Whether nothing spent over it leaves this site."""
        return self.marketplace == "local"
