from django.db import migrations


class Migration(migrations.Migration):
    """The outcomes of validations are a model of `validation`; the rows stay where they are."""

    dependencies = [("console", "0006_access_of_stored_answers")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.AlterModelTable("ValidationOutcome", "validation_validationoutcome")
            ],
            state_operations=[migrations.DeleteModel("ValidationOutcome")],
        )
    ]
