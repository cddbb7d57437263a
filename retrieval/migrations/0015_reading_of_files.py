from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0014_who_judged_qrels")]

    operations = [
        migrations.AddField(
            model_name="collectionfile",
            name="reading",
            field=models.JSONField(
                default=dict, help_text="What was read and left out of a run or qrels, and why."
            ),
        ),
    ]
