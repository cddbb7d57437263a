import django.db.models.deletion
from django.db import migrations, models


def refers(to, name):
    return models.ForeignKey(
        on_delete=django.db.models.deletion.CASCADE, related_name=name, to=f"marketplace.{to}"
    )


class Migration(migrations.Migration):

    dependencies = [("marketplace", "0015_channels_become_studies")]

    operations = [
        migrations.DeleteModel("Arrival"),
        *(
            migrations.RemoveField("recruitedstudy", name)
            for name in ("kind", "panel", "is_active", "completion_code")
        ),
        *(
            migrations.RemoveField("participant", name)
            for name in ("requester", "panel", "external_id")
        ),
        migrations.AlterField(
            "recruitedstudy", "connection", refers("recruiterconnection", "studies")
        ),
        migrations.AlterField(
            "recruitedstudy", "requester", refers("requester", "recruited_studies")
        ),
        migrations.AlterField("recruitedstudy", "hit_type", refers("hittype", "recruited_studies")),
        migrations.AlterField(
            "recruitedstudy", "external_id", models.CharField(blank=True, max_length=100)
        ),
        migrations.AlterField(
            "participant", "connection", refers("recruiterconnection", "participants")
        ),
        migrations.AlterField("participant", "worker", refers("workeraccount", "participations")),
        migrations.AlterField("participant", "seal", models.CharField(max_length=64)),
        migrations.AddConstraint(
            "recruitedstudy",
            models.CheckConstraint(
                condition=models.Q(("items_per_session__gte", 1)), name="a_participation_has_a_hit"
            ),
        ),
        migrations.AddConstraint(
            "participant",
            models.UniqueConstraint(fields=("connection", "seal"), name="one_account_per_seal"),
        ),
    ]
