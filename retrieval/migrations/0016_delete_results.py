from django.db import migrations


def delete_results(apps, schema_editor):
    """Results are stored in another form from here on, and are computed again on request."""
    apps.get_model("retrieval", "CollectionVersion").objects.all().delete()


class Migration(migrations.Migration):

    dependencies = [
        ("retrieval", "0015_reading_of_files"),
    ]

    operations = [
        migrations.RunPython(delete_results, migrations.RunPython.noop),
    ]
