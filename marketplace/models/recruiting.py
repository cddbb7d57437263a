from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from marketplace.identifiers import new_token
from marketplace.models.hits import HitType
from marketplace.models.people import Requester, WorkerAccount


class Channel(models.Model):
    """A channel through which a requester's own participants come to a HIT type: an invite
    link that signs them in, or the link a panel such as Prolific sends them to."""

    class Kind(models.TextChoices):
        INVITE = "invite", _("Invite link")
        PANEL = "panel", _("Panel")

    requester = models.ForeignKey(Requester, on_delete=models.CASCADE, related_name="channels")
    hit_type = models.ForeignKey(HitType, on_delete=models.CASCADE, related_name="channels")
    token = models.CharField(max_length=32, unique=True, default=new_token)
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=6, choices=Kind)
    # Of a panel: its name, by which participants are known again from one channel to the next,
    # and the URL parameters it sends.
    panel = models.CharField(max_length=100, blank=True)
    worker_parameter = models.CharField(max_length=64, blank=True)
    study_parameter = models.CharField(max_length=64, blank=True)
    session_parameter = models.CharField(max_length=64, blank=True)
    completion_code = models.CharField(max_length=64, blank=True)
    redirect_url = models.CharField(max_length=1000, blank=True)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(kind="invite") | ~Q(worker_parameter="") & ~Q(panel=""),
                name="a_panel_names_its_workers",
            )
        ]

    def __str__(self) -> str:
        return self.name


class Invitation(models.Model):
    """One participant's own link through an invite channel."""

    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="invitations")
    token = models.CharField(max_length=32, unique=True, default=new_token)
    label = models.CharField(max_length=100, blank=True)
    worker = models.ForeignKey(
        WorkerAccount, null=True, on_delete=models.SET_NULL, related_name="invitations"
    )
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.label or self.token


class PanelWorker(models.Model):
    """Whom a panel's id stands for. It holds for one requester alone, because whoever knows
    the id can come in with it."""

    requester = models.ForeignKey(Requester, on_delete=models.CASCADE, related_name="panel_workers")
    panel = models.CharField(max_length=100)
    external_id = models.CharField(max_length=200)
    worker = models.ForeignKey(
        WorkerAccount, on_delete=models.CASCADE, related_name="panel_identities"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["requester", "panel", "external_id"], name="one_worker_per_panel_id"
            )
        ]

    def __str__(self) -> str:
        return f"{self.panel} {self.external_id}"


class Arrival(models.Model):
    """One time that somebody came in through a channel."""

    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="arrivals")
    worker = models.ForeignKey(WorkerAccount, on_delete=models.CASCADE, related_name="arrivals")
    external_worker_id = models.CharField(max_length=200, blank=True)
    study_id = models.CharField(max_length=200, blank=True)
    session_id = models.CharField(max_length=200, blank=True)
    arrived_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["worker", "-id"], name="arrival_of_worker")]

    def __str__(self) -> str:
        return f"{self.worker} through {self.channel}"
