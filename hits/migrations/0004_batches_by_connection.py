"""Every profile that batches name becomes a connection of the site's own."""

from django.db import migrations


def name_connections(apps, schema_editor):
    Batch = apps.get_model("hits", "Batch")
    Connection = apps.get_model("hits", "Connection")
    profiles = Batch.objects.order_by().values_list("profile", flat=True).distinct()
    for profile in ("local", "sandbox", "production", *profiles):
        connection, _ = Connection.objects.get_or_create(
            team=None,
            name=profile,
            defaults={
                "marketplace": profile,
                "fees": "none" if profile == "local" else "mturk",
            },
        )
        Batch.objects.filter(profile=profile).update(connection=connection)


class Migration(migrations.Migration):
    dependencies = [("hits", "0003_connections_and_payments")]

    operations = [migrations.RunPython(name_connections, migrations.RunPython.noop)]
