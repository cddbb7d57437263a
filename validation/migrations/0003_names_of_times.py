from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("validation", "0002_rated_systems_and_new_systems")]

    operations = [
        migrations.RenameField("validationversion", "made_at", "created_at"),
        migrations.RenameField("validationversion", "made_by", "created_by"),
        migrations.RenameField("reportfile", "made_at", "updated_at"),
    ]
