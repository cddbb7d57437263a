from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("metrics", "0001_initial")]

    operations = [
        migrations.RenameField("judgeversion", "made_at", "created_at"),
    ]
