
from django.db import migrations, models


def give_each_outcome_the_studys_address(apps, schema_editor):
    code = apps.get_model("marketplace", "OutcomeCode")
    study = apps.get_model("marketplace", "RecruitedStudy")
    known = study.objects.filter(pk=models.OuterRef("study"))
    code.objects.update(redirect_url=models.Subquery(known.values("redirect_url")))


class Migration(migrations.Migration):

    # PostgreSQL alters no table in a transaction that has changed rows which others refer to.
    atomic = False
    dependencies = [
        ('marketplace', '0018_calls_of_recruiters'),
    ]

    operations = [
        migrations.AddField(
            model_name='outcomecode',
            name='redirect_url',
            field=models.CharField(blank=True, max_length=1000),
        ),
        migrations.RunPython(give_each_outcome_the_studys_address, migrations.RunPython.noop),
        migrations.RemoveField(
            model_name='recruitedstudy',
            name='redirect_url',
        ),
    ]
