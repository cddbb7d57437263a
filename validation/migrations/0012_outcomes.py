import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("annotation", "0020_upload_reading"),
        ("console", "0007_outcomes_to_validation"),
        ("validation", "0011_ceiling_warning"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="ValidationOutcome",
                    fields=[
                        ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                        ("name", models.CharField(help_text="validation or report.", max_length=64)),
                        ("fingerprint", models.CharField(max_length=64)),
                        ("reason", models.TextField(blank=True, help_text="Why there is no version.")),
                        ("updated_at", models.DateTimeField(auto_now=True)),
                        ("study", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="outcomes", to="annotation.study")),
                        ("version", models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="validation.validationversion")),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(fields=("study", "name"), name="one_outcome_of_a_name_a_study")
                        ],
                    },
                )
            ]
        )
    ]
