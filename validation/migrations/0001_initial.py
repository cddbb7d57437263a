import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('annotation', '0001_initial'),
        ('results', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='ValidationOutcome',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(help_text='validation or report.', max_length=64)),
                ('fingerprint', models.CharField(max_length=64)),
                ('reason', models.TextField(blank=True, help_text='Why there is no version.')),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('study', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='outcomes', to='annotation.study')),
                ('version', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='results.result')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('study', 'name'), name='one_outcome_of_a_name_a_study')],
            },
        ),
    ]
