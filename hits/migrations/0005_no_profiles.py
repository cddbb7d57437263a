import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("hits", "0004_batches_by_connection")]

    operations = [
        migrations.AlterField(
            model_name="batch",
            name="connection",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="batches",
                to="hits.connection",
            ),
        ),
        migrations.RemoveField(model_name="batch", name="profile"),
        migrations.AddConstraint(
            model_name="batch",
            constraint=models.UniqueConstraint(
                fields=["study", "round", "connection", "part"],
                name="one_batch_per_round_and_marketplace",
            ),
        ),
    ]
