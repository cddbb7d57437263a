from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("console", "0003_page_preferences")]

    operations = [
        migrations.RenameField("validationoutcome", "made_at", "updated_at"),
    ]
