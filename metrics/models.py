"""Scores that automatic metrics gave to a study's candidates."""

from collections.abc import Mapping
from typing import Any, Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext, gettext_lazy as _, ngettext

from accounts.models import CreatedRow, Team
from annotation.models import Candidate, Study, StudyRowQuerySet
from annotation.models.studies import counted
from annotation.score_settings import LONGEST_SIGNATURE
from error_codes import CodedText
from work.models import BaseRow, Leased


class ScoringRunQuerySet(StudyRowQuerySet["ScoringRun"]):
    def counted(self) -> Self:
        """With `n_scores` and, among them, `n_undefined`."""
        return self.annotate(
            n_scores=counted(Score.objects.all(), "run"),
            n_undefined=counted(Score.objects.filter(value=None), "run"),
        )


def unread_text(n_replies: int, unread: Mapping[str, int]) -> str:
    if not unread:
        return ""
    names = {
        "ambiguous": gettext("ambiguous"),
        "no_number": gettext("without a number"),
        "no_score": gettext("without a score"),
        "off_scale": gettext("off the scale"),
        "other_scale": gettext("on another scale"),
    }
    # JSON columns keep no order on PostgreSQL.
    counts = sorted(unread.items(), key=lambda row: (-row[1], row[0]))
    parts = [f"{n:,} {names.get(code, code)}" for code, n in counts]
    return gettext("{n} of {total} replies could not be read: {parts}").format(
        n=f"{sum(unread.values()):,}", total=f"{n_replies:,}", parts=", ".join(parts)
    )


def warning_text(code: str, n_texts: int, n_all: int) -> str:
    """What a warning of a scorer says of scores, by its code (`metrics.scorers.errors`)."""
    if code == "untokenised":
        text = ngettext(
            "{n} text of {total} pairs is mostly outside a–z and 0–9, where ROUGE with the google "
            "tokenizer is 0. The tokenizers unicode and characters read it.",
            "{n} texts of {total} pairs are mostly outside a–z and 0–9, where ROUGE with the "
            "google tokenizer is 0. The tokenizers unicode and characters read them.",
            n_texts,
        )
    elif code == "windows":
        text = ngettext(
            "{n} of {total} texts is longer than the model reads at once; it was read in parts.",
            "{n} of {total} texts are longer than the model reads at once; they were read in "
            "parts.",
            n_texts,
        )
    elif code == "truncated":
        text = ngettext(
            "{n} of {total} texts is longer than the model reads; its end does not count.",
            "{n} of {total} texts are longer than the model reads; their ends do not count.",
            n_texts,
        )
    else:
        text = gettext(
            "The endpoint replies the same at temperature 1: several samples may be one reply "
            "several times."
        )
    return text.format(n=f"{n_texts:,}", total=f"{n_all:,}")


class ScoringRun(Leased):
    """One output of a metric, as its signature describes it, over one study.

    A scorer's outputs are scored together; the first of their runs leads the others, and bears
    the state of the work: who is at it, since when, and why it broke off.
    """

    class State(models.TextChoices):
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="scoring_runs")
    metric = models.CharField(max_length=64)
    signature = models.CharField(max_length=LONGEST_SIGNATURE)
    higher_is_better = models.BooleanField(default=True)
    is_primary = models.BooleanField(
        default=True, help_text="Not a variant, which enters no family of tests."
    )
    leader = models.ForeignKey(
        "self", on_delete=models.CASCADE, related_name="followers", null=True, blank=True
    )
    state = models.CharField(max_length=8, choices=State, default=State.DONE)
    error = models.TextField(blank=True, help_text="Why scoring broke off, if it did.")
    n_before = models.PositiveIntegerField(default=0, help_text="Scores there at the start.")
    n_total = models.PositiveIntegerField(default=0, help_text="Candidates there at the start.")
    started_at = models.DateTimeField(null=True, blank=True)
    judge = models.JSONField(
        null=True, help_text="What was asked of whom, and what it was found to do; of judges only."
    )
    warnings = models.JSONField(
        default=dict,
        blank=True,
        help_text="By a warning's code how many texts it is about, and of how many; of the leader.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ScoringRunQuerySet.as_manager()

    class Meta:
        ordering = ["study", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["study", "metric", "signature"], name="one_run_per_study_and_signature"
            )
        ]

    def __str__(self) -> str:
        return self.metric

    @property
    def unread_replies(self) -> str:
        judge: dict[str, Any] = self.judge or {}
        return unread_text(judge.get("n_replies", 0), judge.get("unread", {}))

    @property
    def coded_warnings(self) -> list[CodedText]:
        rows = sorted(self.warnings.items())
        return [CodedText(warning_text(code, *counts), code) for code, counts in rows]


class Score(BaseRow):
    """A metric's value for one candidate; without a value, the reason is said."""

    run = models.ForeignKey(ScoringRun, on_delete=models.CASCADE, related_name="scores")
    candidate = models.ForeignKey(Candidate, on_delete=models.CASCADE, related_name="scores")
    value = models.FloatField(null=True)
    reason = models.CharField(max_length=200, blank=True)
    raw = models.TextField(blank=True, help_text="What the value was read from, verbatim.")
    content = models.CharField(
        max_length=32, blank=True, help_text="Digest of the texts scored; empty if imported."
    )

    class Meta:
        indexes = [
            models.Index(fields=["content", "run"], name="score_by_content"),
            models.Index(fields=["run"], condition=Q(value=None), name="undefined_of_a_run"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["run", "candidate"], name="one_score_per_candidate"),
            models.CheckConstraint(
                condition=Q(value__isnull=False) | ~Q(reason=""), name="undefined_has_a_reason"
            ),
        ]


class JudgeVersionQuerySet(StudyRowQuerySet["JudgeVersion"]):
    def called(self, metric: str, name: str) -> Self:
        """All versions of that name, the newest first."""
        return self.filter(metric=metric, name=name).order_by("-version")


class JudgeVersion(models.Model):
    """What a study asks a language model, as it was at a time; never changed."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="judge_versions")
    metric = models.CharField(max_length=64, help_text="Who asks it: judge or geval.")
    name = models.SlugField(max_length=64)
    version = models.PositiveIntegerField(help_text="Counts from one for each name.")
    fingerprint = models.CharField(max_length=12, help_text="As scores' signatures have it.")
    content = models.JSONField(help_text="Templates, steps, and how replies are drawn.")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = JudgeVersionQuerySet.as_manager()

    class Meta:
        ordering = ["study", "metric", "name", "version"]
        constraints = [
            models.UniqueConstraint(
                fields=["study", "metric", "name", "version"], name="judge_version_once_a_name"
            )
        ]

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


class JudgeConnectionQuerySet(models.QuerySet["JudgeConnection"]):
    def of(self, team: Team) -> Self:
        return self.filter(team=team)

    def usable(self) -> Self:
        return self.filter(closed_at=None)


class JudgeConnection(CreatedRow):
    """An endpoint of language models that a team pays for; its key is encrypted under
    ENCRYPTION_KEYS."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="judge_connections")
    name = models.CharField(_("name"), max_length=40)
    base_url = models.URLField(_("address"), max_length=255)
    encrypted_key = models.TextField(blank=True, editable=False)
    length_field = models.CharField(max_length=24, default="max_tokens")
    closed_at = models.DateTimeField(null=True, blank=True)

    objects = JudgeConnectionQuerySet.as_manager()

    class Meta:
        ordering = ["team", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["team", "name"], name="judge_connection_name_once_a_team"
            )
        ]


class ScoringRequest(BaseRow):
    """A metric with its parameters that somebody wants a study scored by: first what it would
    take, then, once confirmed, the scores, and what they cost."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="scoring_requests")
    metric = models.CharField(max_length=64)
    parameters = models.JSONField(default=dict, help_text="As the registry has them.")
    connection = models.ForeignKey(
        JudgeConnection, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    model = models.CharField(max_length=128, blank=True, help_text="Of a judge.")
    usd_per_million_input = models.DecimalField(max_digits=12, decimal_places=6, default=0)
    usd_per_million_output = models.DecimalField(max_digits=12, decimal_places=6, default=0)
    max_usd = models.DecimalField(max_digits=12, decimal_places=2, null=True, blank=True)
    max_requests = models.PositiveIntegerField(null=True, blank=True)
    estimate = models.JSONField(null=True, blank=True, help_text="None until it is planned.")
    n_requests = models.PositiveIntegerField(default=0, help_text="Sent so far, probes too.")
    spent_usd = models.DecimalField(max_digits=14, decimal_places=6, default=0)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    confirmed_at = models.DateTimeField(null=True, blank=True)

    objects = StudyRowQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    @property
    def caps(self) -> dict[str, Any]:
        return {"max_usd": self.max_usd, "max_requests": self.max_requests}
