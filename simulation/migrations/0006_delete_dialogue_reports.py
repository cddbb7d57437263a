from django.db import migrations


class Migration(migrations.Migration):
    """Reports are stored as results from here on, and are computed again on request."""

    dependencies = [
        ("simulation", "0005_dialogue_reports"),
    ]

    operations = [
        migrations.DeleteModel(name="DialogueEstimate"),
        migrations.DeleteModel(name="DialogueReport"),
    ]
