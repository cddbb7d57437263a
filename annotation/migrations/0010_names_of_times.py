from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("annotation", "0009_quality_checks")]

    operations = [
        migrations.RenameField("agreementversion", "made_at", "created_at"),
        migrations.RenameField("evidenceversion", "made_at", "created_at"),
        migrations.RenameField("labelset", "made_at", "created_at"),
        migrations.RenameField("labelset", "made_by", "created_by"),
    ]
