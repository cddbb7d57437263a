import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="PeriodicRun",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=40, unique=True)),
                ("next_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("last_at", models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.CreateModel(
            name="Job",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "lease_token",
                    models.CharField(
                        blank=True,
                        help_text="Of who works at it; empty where nobody does.",
                        max_length=32,
                    ),
                ),
                (
                    "leased_until",
                    models.DateTimeField(
                        blank=True, help_text="Renewed by a heartbeat beside the work.", null=True
                    ),
                ),
                ("kind", models.CharField(help_text="A name in work.registry.", max_length=40)),
                ("queue", models.CharField(max_length=20)),
                (
                    "subject",
                    models.CharField(blank=True, help_text="Such as study:12.", max_length=100),
                ),
                ("title", models.CharField(help_text="What people call it.", max_length=250)),
                ("arguments", models.JSONField(blank=True, default=dict)),
                (
                    "basis",
                    models.CharField(
                        blank=True,
                        help_text="Fingerprint of what a result was requested for.",
                        max_length=64,
                    ),
                ),
                (
                    "dedupe_key",
                    models.CharField(
                        help_text="The same for jobs that would do the same.", max_length=64
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("running", "Running"),
                            ("done", "Done"),
                            ("failed", "Failed"),
                            ("stopped", "Stopped"),
                        ],
                        default="queued",
                        max_length=8,
                    ),
                ),
                ("stop_requested", models.BooleanField(default=False)),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("max_attempts", models.PositiveIntegerField(default=1)),
                (
                    "run_after",
                    models.DateTimeField(
                        blank=True, help_text="When a failed attempt is repeated.", null=True
                    ),
                ),
                (
                    "task_id",
                    models.CharField(
                        blank=True, help_text="Of the queue's message about it.", max_length=64
                    ),
                ),
                ("enqueued_at", models.DateTimeField(blank=True, null=True)),
                ("phase", models.CharField(blank=True, max_length=200)),
                ("n_done", models.PositiveIntegerField(default=0)),
                ("n_total", models.PositiveIntegerField(blank=True, null=True)),
                (
                    "message",
                    models.TextField(blank=True, help_text="What came of it, or why nothing did."),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("progress_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "requested_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="jobs",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
                "indexes": [
                    models.Index(fields=["subject", "kind", "state"], name="job_of_a_subject"),
                    models.Index(
                        condition=models.Q(("state", "queued")),
                        fields=["queue", "enqueued_at"],
                        name="job_queued",
                    ),
                    models.Index(
                        condition=models.Q(("state", "running")),
                        fields=["leased_until"],
                        name="job_leased",
                    ),
                    models.Index(fields=["finished_at"], name="job_finished"),
                    models.Index(fields=["queue", "started_at"], name="job_begun"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(
                            ("state__in", ["queued", "running"]), ("stop_requested", False)
                        ),
                        fields=("dedupe_key",),
                        name="same_job_once_unfinished",
                    )
                ],
            },
        ),
    ]
