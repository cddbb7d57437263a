from django.db import migrations, models


def fill_finished(apps, schema_editor):
    results = apps.get_model("results", "Result").objects
    results.update(finished_at=models.F("created_at"))


class Migration(migrations.Migration):
    dependencies = [("results", "0001_initial")]

    operations = [
        migrations.AddField(
            "result",
            "finished_at",
            models.DateTimeField(help_text="None while it is computed.", null=True),
        ),
        migrations.RunPython(fill_finished, migrations.RunPython.noop),
    ]
