"""Validations and human results are stored as results; those of before are computed again."""

from django.db import migrations, models

GONE = [
    "ValidationOutcome",
    "ReportFile",
    "ScatterPoint",
    "Scatter",
    "SystemScore",
    "SystemRow",
    "WorstCandidate",
    "Disagreement",
    "EstimatedDifference",
    "EstimatedMean",
    "RatedPair",
    "RatedSystem",
    "Plan",
    "Sensitivity",
    "Ceiling",
    "Comparison",
    "Correlation",
    "LabelSource",
    "ScoreSet",
    "ValidationVersion",
    "LowestRated",
    "HumanResultsBin",
    "HumanResultsPair",
    "HumanResultsSystem",
    "HumanResultsQuestion",
    "HumanResults",
]


class Migration(migrations.Migration):
    dependencies = [
        ("annotation", "0001_initial"),
        ("results", "0002_parts"),
        ("validation", "0012_outcomes"),
    ]

    operations = [
        *(migrations.DeleteModel(name) for name in GONE),
        migrations.CreateModel(
            name="ValidationOutcome",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(help_text="validation or report.", max_length=64)),
                ("fingerprint", models.CharField(max_length=64)),
                ("reason", models.TextField(blank=True, help_text="Why there is no version.")),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "study",
                    models.ForeignKey(
                        on_delete=models.deletion.CASCADE,
                        related_name="outcomes",
                        to="annotation.study",
                    ),
                ),
                (
                    "version",
                    models.ForeignKey(
                        null=True,
                        on_delete=models.deletion.CASCADE,
                        related_name="+",
                        to="results.result",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("study", "name"), name="one_outcome_of_a_name_a_study"
                    )
                ],
            },
        ),
    ]
