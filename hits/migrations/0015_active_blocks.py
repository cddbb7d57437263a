from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("hits", "0014_assignments_of_a_hit")]

    operations = [
        migrations.RenameField("workerblock", "is_wanted", "is_active"),
    ]
