import django.db.models.deletion
from django.db import migrations, models

# Agreement and evidence are computed again when their pages are opened.
DELETED = (
    *("UnitAgreement", "JudgedQuestion", "AgreementCoefficient", "RoundCoefficient"),
    *("ProtocolCoefficient", "PairAgreement", "AnnotatorAgreement", "PositionEffect"),
    *("AgreementVersion", "SubmissionEvidence", "AnnotatorFlag", "EvidenceVersion"),
)


class Migration(migrations.Migration):

    dependencies = [('annotation', '0003_pairs'), ('results', '0001_initial')]

    operations = [
        *(migrations.DeleteModel(name) for name in DELETED),
        migrations.CreateModel(
            name='UnitAgreement',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('round', models.PositiveSmallIntegerField()),
                ('n_judgments', models.PositiveIntegerField()),
                ('mean', models.FloatField()),
                ('low', models.FloatField()),
                ('high', models.FloatField()),
                ('spread', models.FloatField()),
                ('agreement', models.FloatField(null=True)),
                ('candidate', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='annotation.candidate')),
                ('question', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='annotation.question')),
                ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='units', to='results.result')),
            ],
            options={
                'ordering': ['agreement', 'pk'],
                'indexes': [models.Index(fields=['version', 'question', 'round', 'agreement', 'id'], name='unit_by_agreement'), models.Index(fields=['version', 'question', 'round', 'spread'], name='unit_by_spread')],
            },
        ),
        migrations.CreateModel(
            name='SubmissionEvidence',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('seconds', models.FloatField(null=True)),
                ('same_share', models.FloatField(null=True)),
                ('distance', models.FloatField(null=True)),
                ('is_fast', models.BooleanField(default=False)),
                ('is_same', models.BooleanField(default=False)),
                ('is_far', models.BooleanField(default=False)),
                ('is_pasted', models.BooleanField(default=False)),
                ('is_contradictory', models.BooleanField(default=False, help_text="Whether the answer's times contradict the server's.")),
                ('has_failed_check', models.BooleanField(default=False)),
                ('is_flagged', models.BooleanField(default=False, help_text='Whether it is any of these, or its annotator has a flag.')),
                ('is_held', models.BooleanField(default=False, help_text='Until a person has looked: by the protocol, or for contradictory times.')),
                ('submission', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='evidence', to='annotation.submission')),
                ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='evidence', to='results.result')),
            ],
        ),
        migrations.CreateModel(
            name='AnnotatorFlag',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(help_text='One of `stats.quality.FLAGS`.', max_length=20)),
                ('n', models.PositiveIntegerField(help_text='Opportunities, such as checks that were answered.')),
                ('n_hits', models.PositiveIntegerField()),
                ('expected', models.FloatField(help_text='Hits, or the value, by what other annotators do or by chance.', null=True)),
                ('value', models.FloatField(help_text='A measure that is no count, such as a correlation.', null=True)),
                ('p_value', models.FloatField()),
                ('annotator', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='quality_flags', to='annotation.annotator')),
                ('other', models.ForeignKey(help_text='The near one.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='annotation.annotator')),
                ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='annotator_flags', to='results.result')),
            ],
            options={
                'ordering': ['annotator', 'pk'],
                'constraints': [models.UniqueConstraint(fields=('version', 'annotator', 'name'), name='flag_once_an_annotator')],
            },
        ),
    ]
