import django.db.models.deletion
import marketplace.identifiers
from django.db import migrations, models

PAID_BY = [("ledger", "The marketplace"), ("recruiter", "The recruiter")]


class Migration(migrations.Migration):

    dependencies = [("marketplace", "0010_ledger_audits_and_failures")]

    operations = [
        *(
            migrations.AddField(
                model_name=name,
                name="paid_by",
                field=models.CharField(choices=PAID_BY, default="ledger", max_length=9),
            )
            for name in ("assignment", "hittype", "workeraccount")
        ),
        # Filled in by the next migration, required by the one after it.
        migrations.AddField(
            model_name="workeraccount",
            name="payee_id",
            field=models.CharField(max_length=14, null=True, unique=True),
        ),
        migrations.AlterField(
            model_name="workeraccount",
            name="payee_id",
            field=models.CharField(
                default=marketplace.identifiers.new_person_id,
                max_length=14,
                null=True,
                unique=True,
            ),
        ),
        migrations.AddField(
            model_name="ledgeraccount",
            name="payee",
            field=models.OneToOneField(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="earnings_account",
                to="marketplace.workeraccount",
                to_field="payee_id",
            ),
        ),
    ]
