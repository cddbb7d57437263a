import django.db.models.deletion
import new_tables
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('accounts', '0001_initial'),
        ('accounts', '__first__'),
        ('annotation', '0001_initial'),
    ]

    operations = [
        new_tables.CreateModels(
            models=[migrations.CreateModel(
                name='JudgeConnection',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('name', models.CharField(max_length=40, verbose_name='name')),
                    ('base_url', models.URLField(max_length=255, verbose_name='address')),
                    ('encrypted_key', models.TextField(blank=True, editable=False)),
                    ('length_field', models.CharField(default='max_tokens', max_length=24)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('closed_at', models.DateTimeField(blank=True, null=True)),
                    ('created_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='judge_connections', to='accounts.team')),
                ],
                options={
                    'ordering': ['team', 'name'],
                    'constraints': [models.UniqueConstraint(fields=('team', 'name'), name='judge_connection_name_once_a_team')],
                },
            ), migrations.CreateModel(
                name='JudgeVersion',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('metric', models.CharField(help_text='Who asks it: judge or geval.', max_length=64)),
                    ('name', models.SlugField(max_length=64)),
                    ('version', models.PositiveIntegerField(help_text='Counts from one for each name.')),
                    ('fingerprint', models.CharField(help_text="As scores' signatures have it.", max_length=12)),
                    ('content', models.JSONField(help_text='Templates, steps, and how replies are drawn.')),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('study', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='judge_versions', to='annotation.study')),
                ],
                options={
                    'ordering': ['study', 'metric', 'name', 'version'],
                    'constraints': [models.UniqueConstraint(fields=('study', 'metric', 'name', 'version'), name='judge_version_once_a_name')],
                },
            ), migrations.CreateModel(
                name='ScoringRequest',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('metric', models.CharField(max_length=64)),
                    ('parameters', models.JSONField(default=dict, help_text='As the registry has them.')),
                    ('model', models.CharField(blank=True, help_text='Of a judge.', max_length=128)),
                    ('usd_per_million_input', models.DecimalField(decimal_places=6, default=0, max_digits=12)),
                    ('usd_per_million_output', models.DecimalField(decimal_places=6, default=0, max_digits=12)),
                    ('max_usd', models.DecimalField(blank=True, decimal_places=2, max_digits=12, null=True)),
                    ('max_requests', models.PositiveIntegerField(blank=True, null=True)),
                    ('estimate', models.JSONField(blank=True, help_text='None until it is planned.', null=True)),
                    ('n_requests', models.PositiveIntegerField(default=0, help_text='Sent so far, probes too.')),
                    ('spent_usd', models.DecimalField(decimal_places=6, default=0, max_digits=14)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('confirmed_at', models.DateTimeField(blank=True, null=True)),
                    ('connection', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='metrics.judgeconnection')),
                    ('requested_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('study', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='scoring_requests', to='annotation.study')),
                ],
                options={
                    'ordering': ['-pk'],
                },
            ), migrations.CreateModel(
                name='ScoringRun',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('lease_token', models.CharField(blank=True, help_text='Of who works at it; empty where nobody does.', max_length=32)),
                    ('leased_until', models.DateTimeField(blank=True, help_text='Renewed by a heartbeat beside the work.', null=True)),
                    ('metric', models.CharField(max_length=64)),
                    ('signature', models.CharField(max_length=500)),
                    ('higher_is_better', models.BooleanField(default=True)),
                    ('is_primary', models.BooleanField(default=True, help_text='Not a variant, which enters no family of tests.')),
                    ('state', models.CharField(choices=[('running', 'Running'), ('done', 'Done'), ('failed', 'Failed')], default='done', max_length=8)),
                    ('error', models.TextField(blank=True, help_text='Why scoring broke off, if it did.')),
                    ('n_before', models.PositiveIntegerField(default=0, help_text='Scores there at the start.')),
                    ('n_total', models.PositiveIntegerField(default=0, help_text='Candidates there at the start.')),
                    ('started_at', models.DateTimeField(blank=True, null=True)),
                    ('judge', models.JSONField(help_text='What was asked of whom, and what it was found to do; of judges only.', null=True)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('leader', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='followers', to='metrics.scoringrun')),
                    ('study', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='scoring_runs', to='annotation.study')),
                ],
                options={
                    'ordering': ['study', 'pk'],
                    'constraints': [models.UniqueConstraint(fields=('study', 'metric', 'signature'), name='one_run_per_study_and_signature')],
                },
            ), migrations.CreateModel(
                name='Score',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('value', models.FloatField(null=True)),
                    ('reason', models.CharField(blank=True, max_length=200)),
                    ('raw', models.TextField(blank=True, help_text='What the value was read from, verbatim.')),
                    ('content', models.CharField(blank=True, help_text='Digest of the texts scored; empty if imported.', max_length=32)),
                    ('candidate', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='scores', to='annotation.candidate')),
                    ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='scores', to='metrics.scoringrun')),
                ],
                options={
                    'indexes': [models.Index(fields=['content', 'run'], name='score_by_content'), models.Index(condition=models.Q(('value', None)), fields=['run'], name='undefined_of_a_run')],
                    'constraints': [models.UniqueConstraint(fields=('run', 'candidate'), name='one_score_per_candidate'), models.CheckConstraint(condition=models.Q(('value__isnull', False), models.Q(('reason', ''), _negated=True), _connector='OR'), name='undefined_has_a_reason')],
                },
            )],
        ),
    ]
