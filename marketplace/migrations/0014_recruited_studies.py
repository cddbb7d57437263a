import django.db.models.deletion
import marketplace.identifiers
from django.db import migrations, models

OUTCOMES = [
    ("completed", "Completed"),
    ("no_consent", "No consent"),
    ("incompatible_device", "Incompatible device"),
    ("failed_attention", "Failed attention checks"),
    ("screened_out", "Screened out"),
    ("no_more_items", "No items left"),
    ("follow_up", "Follow-up study"),
]
KINDS = [("prolific", "Prolific"), ("panel", "Panel with links"), ("invite", "Invite links")]
STATES = [("draft", "Draft"), ("active", "Open"), ("paused", "Paused"), ("stopped", "Closed")]
SESSION_STATES = [
    ("started", "Started"),
    ("finished", "Finished"),
    ("returned", "Returned"),
    ("timed_out", "Timed out"),
    ("approved", "Approved"),
    ("rejected", "Rejected"),
    ("screened_out", "Screened out"),
]
CHARGES = [
    ("study", "Study"),
    ("reward", "Reward"),
    ("bonus", "Bonus"),
    ("screen_out", "Screen-out payment"),
]


def key():
    return ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"))


def refers(to, name, *, delete=django.db.models.deletion.CASCADE, **options):
    return models.ForeignKey(on_delete=delete, related_name=name, to=f"marketplace.{to}", **options)


def public_id():
    return models.CharField(
        default=marketplace.identifiers.new_entity_id, max_length=30, unique=True
    )


class Migration(migrations.Migration):

    dependencies = [("marketplace", "0013_one_payer")]

    operations = [
        migrations.RemoveConstraint("channel", "a_panel_names_its_workers"),
        migrations.RemoveConstraint("panelworker", "one_worker_per_panel_id"),
        migrations.RenameModel("Channel", "RecruitedStudy"),
        migrations.RenameModel("PanelWorker", "Participant"),
        migrations.RenameField("invitation", "channel", "study"),
        migrations.AlterModelOptions(
            "recruitedstudy", options={"verbose_name_plural": "recruited studies"}
        ),
        migrations.CreateModel(
            name="RecruiterConnection",
            fields=[
                key(),
                ("public_id", public_id()),
                ("kind", models.CharField(choices=KINDS, max_length=8)),
                ("name", models.CharField(max_length=100)),
                ("encrypted_token", models.TextField(blank=True)),
                ("settings", models.JSONField(blank=True, default=dict)),
                ("created_at", models.DateTimeField()),
                ("requester", refers("requester", "recruiters")),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("requester", "kind", "name"), name="one_recruiter_per_kind_and_name"
                    )
                ]
            },
        ),
        migrations.AddField(
            "recruitedstudy", "connection", refers("recruiterconnection", "studies", null=True)
        ),
        migrations.AddField(
            "participant", "connection", refers("recruiterconnection", "participants", null=True)
        ),
        migrations.AddField("participant", "seal", models.CharField(default="", max_length=64)),
        migrations.AddField(
            "recruitedstudy",
            "state",
            models.CharField(choices=STATES, default="active", max_length=7),
        ),
        migrations.AddField(
            "recruitedstudy", "external_id", models.CharField(blank=True, default="", max_length=100)
        ),
        migrations.AddField(
            "recruitedstudy", "items_per_session", models.PositiveSmallIntegerField(default=1)
        ),
        migrations.AddField(
            "recruitedstudy", "maximum_seconds", models.PositiveIntegerField(default=3600)
        ),
        migrations.AddField(
            "recruitedstudy", "discards_returned", models.BooleanField(default=False)
        ),
        migrations.CreateModel(
            name="OutcomeCode",
            fields=[
                key(),
                ("outcome", models.CharField(choices=OUTCOMES, max_length=20)),
                ("code", models.CharField(max_length=64)),
                ("study", refers("recruitedstudy", "codes")),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("study", "outcome"), name="one_code_per_outcome"
                    ),
                    models.UniqueConstraint(fields=("study", "code"), name="one_outcome_per_code"),
                ]
            },
        ),
        migrations.CreateModel(
            name="Session",
            fields=[
                key(),
                ("public_id", public_id()),
                ("submission_id", models.CharField(max_length=240)),
                ("encrypted_participant_id", models.TextField(blank=True)),
                ("external_study_id", models.CharField(blank=True, max_length=200)),
                (
                    "state",
                    models.CharField(choices=SESSION_STATES, default="started", max_length=12),
                ),
                ("outcome", models.CharField(blank=True, choices=OUTCOMES, max_length=20)),
                ("code", models.CharField(blank=True, max_length=64)),
                ("arrived_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                ("connection", refers("recruiterconnection", "sessions")),
                ("study", refers("recruitedstudy", "sessions")),
                ("worker", refers("workeraccount", "sessions")),
            ],
            options={
                "indexes": [
                    models.Index(fields=["worker", "-id"], name="session_of_worker"),
                    models.Index(
                        condition=models.Q(("state", "started")),
                        fields=["expires_at"],
                        name="session_open",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("connection", "submission_id"), name="one_session_per_submission"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("code", ""), ("outcome", "")),
                            models.Q(
                                models.Q(("outcome", ""), _negated=True),
                                models.Q(("code", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="an_outcome_has_its_code",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SessionItem",
            fields=[
                key(),
                ("position", models.PositiveSmallIntegerField()),
                (
                    "assignment",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="session_item",
                        to="marketplace.assignment",
                    ),
                ),
                ("session", refers("session", "items")),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("session", "position"), name="one_item_per_position"
                    )
                ]
            },
        ),
        migrations.CreateModel(
            name="SurplusAnswer",
            fields=[
                key(),
                ("answer", models.TextField()),
                ("received_at", models.DateTimeField()),
                (
                    "assignment",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="surplus_answer",
                        to="marketplace.assignment",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="RecruiterCharge",
            fields=[
                key(),
                ("kind", models.CharField(choices=CHARGES, max_length=10)),
                ("currency", models.CharField(max_length=3)),
                ("amount", models.DecimalField(decimal_places=4, max_digits=14)),
                ("external_id", models.CharField(max_length=100)),
                ("created_at", models.DateTimeField()),
                (
                    "connection",
                    refers(
                        "recruiterconnection",
                        "charges",
                        delete=django.db.models.deletion.PROTECT,
                    ),
                ),
                (
                    "session",
                    refers(
                        "session", "charges", delete=django.db.models.deletion.SET_NULL, null=True
                    ),
                ),
                (
                    "study",
                    refers(
                        "recruitedstudy",
                        "charges",
                        delete=django.db.models.deletion.SET_NULL,
                        null=True,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("connection", "kind", "external_id"),
                        name="one_charge_per_external_id",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("amount__gt", 0)), name="a_charge_is_money"
                    ),
                ]
            },
        ),
    ]
