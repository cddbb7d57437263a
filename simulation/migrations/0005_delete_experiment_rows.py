import django.db.models.deletion
from django.db import migrations, models

ROWS = ("SeedResult", "TurnResult", "TargetValue", "SensitivityRow")
OWNERS = ("SimulatedUser", "SimulatedRecommender", "ExperimentVersion")


class Migration(migrations.Migration):

    dependencies = [("simulation", "0004_results_of_experiments")]

    operations = [
        migrations.RemoveConstraint("dialoguepiece", "piece_once_a_version"),
        migrations.RemoveField("dialoguepiece", "version"),
        migrations.RemoveField("dialoguepiece", "recommender"),
        migrations.RemoveField("dialoguestudy", "version"),
        migrations.RenameField("dialoguepiece", "result", "version"),
        migrations.RenameField("dialoguepiece", "position", "recommender"),
        migrations.RenameField("dialoguestudy", "result", "version"),
        migrations.AlterField(
            "dialoguepiece",
            "version",
            models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="pieces",
                to="results.result",
            ),
        ),
        migrations.AlterField(
            "dialoguepiece",
            "recommender",
            models.PositiveSmallIntegerField(help_text="Its position in the version."),
        ),
        migrations.AlterField(
            "dialoguepiece",
            "trained",
            models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.RESTRICT,
                related_name="uses",
                to="simulation.storedrecommender",
            ),
        ),
        migrations.AlterField(
            "dialoguestudy",
            "version",
            models.ForeignKey(
                blank=True,
                help_text="Whose dialogues they are; empty where a log was sent.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="results.result",
            ),
        ),
        migrations.AddConstraint(
            "dialoguepiece",
            models.UniqueConstraint(
                fields=("version", "recommender", "seed", "first_user"),
                name="piece_once_a_version",
            ),
        ),
        *(migrations.DeleteModel(name) for name in (*ROWS, *OWNERS)),
    ]
