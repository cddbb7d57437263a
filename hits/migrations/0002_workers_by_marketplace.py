"""Batches name a connection where they named a profile; workers, whose marketplace they are of."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("hits", "0001_initial")]

    operations = [
        migrations.RemoveConstraint(model_name="worker", name="worker_once_a_profile"),
        migrations.RenameField(model_name="worker", old_name="profile", new_name="marketplace"),
        migrations.AlterField(
            model_name="worker", name="marketplace", field=models.CharField(max_length=255)
        ),
        migrations.AddConstraint(
            model_name="worker",
            constraint=models.UniqueConstraint(
                fields=["marketplace", "worker_id"], name="worker_once_a_marketplace"
            ),
        ),
    ]
