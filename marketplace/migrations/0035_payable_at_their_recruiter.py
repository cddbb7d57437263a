from django.db import migrations, models


def count_settled(apps, schema_editor):
    """Of those where nothing waits nobody may be paid; the others are looked at in a minute."""
    studies = apps.get_model("marketplace", "RecruitedStudy").objects
    studies.filter(is_settled_there=True).update(n_payable_there=0)


class Migration(migrations.Migration):

    dependencies = [
        ('marketplace', '0034_one_study_after_the_other'),
    ]

    operations = [
        migrations.AddField(
            model_name='recruitedstudy',
            name='n_payable_there',
            field=models.PositiveIntegerField(null=True),
        ),
        migrations.RunPython(count_settled, migrations.RunPython.noop, elidable=True),
    ]
