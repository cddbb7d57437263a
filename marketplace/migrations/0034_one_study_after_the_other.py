import django.db.models.deletion
from django.db import migrations, models


def keep_studies(apps, schema_editor):
    """Each study is of what it came of."""
    studies = apps.get_model("marketplace", "RecruitedStudy").objects
    attached = apps.get_model("marketplace", "AttachedHitType").objects
    for key, study in attached.exclude(study=None).values_list("pk", "study"):
        studies.filter(pk=study).update(attached=key)


class Migration(migrations.Migration):

    dependencies = [
        ('marketplace', '0033_work_taken_back'),
    ]

    operations = [
        migrations.AddField(
            model_name='erasedsubmission',
            name='uncharged',
            field=models.CharField(blank=True, max_length=10),
        ),
        migrations.AddField(
            model_name='attachedhittype',
            name='ended_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='recruitedstudy',
            name='attached',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='studies', to='marketplace.attachedhittype'),
        ),
        migrations.RunPython(keep_studies, migrations.RunPython.noop, elidable=True),
        migrations.RemoveField(
            model_name='attachedhittype',
            name='study',
        ),
    ]
