from django.db import migrations

KINDS = ("Question", "System", "Pair", "Bin")


class Migration(migrations.Migration):
    """Rows of HumanResults bear its name: validations have results too."""

    dependencies = [("validation", "0005_estimated_means")]

    operations = [
        migrations.RenameModel(old_name=f"Result{kind}", new_name=f"HumanResults{kind}")
        for kind in KINDS
    ]
