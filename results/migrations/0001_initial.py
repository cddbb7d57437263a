import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('accounts', '__first__'),
        ('contenttypes', '0002_remove_content_type_name'),
    ]

    operations = [
        migrations.CreateModel(
            name='Result',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('subject_id', models.PositiveBigIntegerField()),
                ('kind', models.CharField(max_length=40)),
                ('number', models.PositiveIntegerField(help_text='Counts from one per subject and kind.')),
                ('form', models.PositiveSmallIntegerField(help_text="Version of the record's layout.")),
                ('fingerprint', models.CharField(help_text='SHA-256 of the inputs and settings.', max_length=64)),
                ('settings', models.JSONField(default=dict)),
                ('seed', models.PositiveBigIntegerField(default=0, help_text='All random draws start from it.')),
                ('facts', models.JSONField(default=dict, help_text='Counts that pages list, such as n_topics.')),
                ('notes', models.JSONField(default=list, help_text='Warnings for readers: text and code.')),
                ('packed_record', models.BinaryField(help_text='The record as compressed JSON.', null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('created_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('subject_type', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='contenttypes.contenttype')),
            ],
            options={
                'ordering': ['subject_type', 'subject_id', 'kind', 'number'],
                'constraints': [models.UniqueConstraint(fields=('subject_type', 'subject_id', 'kind', 'number'), name='result_number_once')],
            },
        ),
        migrations.CreateModel(
            name='ResultPart',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=64)),
                ('content', models.BinaryField()),
                ('result', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='parts', to='results.result')),
            ],
            options={
                'ordering': ['pk'],
                'constraints': [models.UniqueConstraint(fields=('result', 'name'), name='part_once_a_result')],
            },
        ),
    ]
