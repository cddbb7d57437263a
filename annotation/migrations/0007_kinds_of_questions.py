from django.db import migrations


def name_kinds(apps, schema_editor):
    """Lines are the default; ticks and categories were known by their study and their labels."""
    questions = apps.get_model("annotation", "Question").objects
    questions.filter(study__kind="alternatives").update(kind="selection")
    questions.exclude(study__kind="alternatives").exclude(categories=[]).update(kind="category")


class Migration(migrations.Migration):
    dependencies = [("annotation", "0006_protocols")]

    operations = [migrations.RunPython(name_kinds, migrations.RunPython.noop)]
