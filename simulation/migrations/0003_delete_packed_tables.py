from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [("simulation", "0002_pack_tables")]

    operations = [
        migrations.DeleteModel(name)
        for name in ("ComparisonRow", "CauseRow", "SwitchCount", "ImprovementRow", "ExperimentNote")
    ]
