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
        ('results', '0001_initial'),
    ]

    operations = [
        new_tables.CreateModels(
            models=[migrations.CreateModel(
                name='CandidateSource',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('name', models.CharField(max_length=100)),
                    ('kind', models.CharField(max_length=20)),
                    ('signature', models.TextField(blank=True)),
                    ('n_slots', models.PositiveIntegerField()),
                    ('n_documents', models.PositiveIntegerField()),
                    ('n_alone', models.PositiveIntegerField(help_text='Slots that no other source lists.')),
                    ('n_for_others', models.PositiveIntegerField(help_text="Slots of another source's quota.")),
                    ('deepest_rank', models.PositiveIntegerField()),
                    ('n_passed_over', models.PositiveIntegerField()),
                    ('n_dry_topics', models.PositiveIntegerField()),
                    ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='candidate_sources', to='results.result')),
                ],
                options={
                    'ordering': ['pk'],
                },
            ), migrations.CreateModel(
                name='Collection',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('slug', models.SlugField(max_length=80, unique=True)),
                    ('name', models.CharField(max_length=128)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('created_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='collections', to=settings.AUTH_USER_MODEL)),
                    ('studies', models.ManyToManyField(blank=True, help_text='Whose judgments make its qrels.', related_name='collections', to='annotation.study')),
                    ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='collections', to='accounts.team')),
                ],
                options={
                    'ordering': ['name', 'pk'],
                },
            ), migrations.CreateModel(
                name='CollectionFile',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('kind', models.CharField(choices=[('run', 'Run'), ('qrels', 'Qrels'), ('assessors', 'Assessors'), ('embeddings', 'Embeddings'), ('catalogue', 'Catalogue'), ('audited', 'Audited')], max_length=10)),
                    ('name', models.CharField(help_text="What tables call it; a run's tag where it has one.", max_length=100)),
                    ('family', models.CharField(blank=True, help_text='Runs of one family are left out together, such as those of one model.', max_length=100)),
                    ('made_by', models.CharField(choices=[('people', 'People'), ('machine', 'Machine'), ('simulated', 'Simulated'), ('unknown', 'Unknown')], default='people', help_text='Who judged, of qrels.', max_length=9)),
                    ('assessor', models.CharField(blank=True, max_length=100)),
                    ('round', models.CharField(blank=True, max_length=20)),
                    ('rule', models.CharField(blank=True, max_length=100)),
                    ('file_name', models.CharField(max_length=200)),
                    ('n_bytes', models.PositiveBigIntegerField()),
                    ('sha256', models.CharField(max_length=64)),
                    ('tag', models.CharField(blank=True, help_text="A run's own name.", max_length=100)),
                    ('n_lines', models.PositiveBigIntegerField(blank=True, help_text='Or vectors; empty until the file is read.', null=True)),
                    ('n_topics', models.PositiveIntegerField(default=0)),
                    ('n_documents', models.PositiveBigIntegerField(default=0)),
                    ('n_tied', models.PositiveBigIntegerField(default=0, help_text='Lines of a run with the score of another of their topic.')),
                    ('n_infinite', models.PositiveBigIntegerField(default=0)),
                    ('n_relevant', models.PositiveBigIntegerField(default=0, help_text='Grades above 0.')),
                    ('n_unjudged', models.PositiveBigIntegerField(default=0, help_text='Grades below 0: pooled and not judged.')),
                    ('n_assessors', models.PositiveIntegerField(default=0, help_text="Whom column 2 names, of several assessors' grades.")),
                    ('n_dimensions', models.PositiveIntegerField(default=0, help_text='Of embeddings.')),
                    ('signature', models.TextField(blank=True, help_text='By which model, of which catalogue, embeddings were made here.')),
                    ('faults', models.JSONField(default=list, help_text='The first of them: line and text.')),
                    ('n_faults', models.PositiveIntegerField(default=0)),
                    ('warnings', models.JSONField(default=list, help_text='The first of them: line and text; the file is used all the same.')),
                    ('n_warnings', models.PositiveBigIntegerField(default=0)),
                    ('reading', models.JSONField(default=dict, help_text='What was read and left out of a run or qrels, and why.')),
                    ('is_confirmed', models.BooleanField(default=True, help_text='False until somebody agrees to the rows that are left out.')),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('collection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='files', to='retrieval.collection')),
                    ('study', models.ForeignKey(blank=True, help_text='Whose judgments qrels were made of.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='annotation.study')),
                    ('uploaded_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'ordering': ['collection', 'kind', 'name', 'pk'],
                    'constraints': [models.UniqueConstraint(fields=('collection', 'kind', 'name'), name='file_name_once_a_collection_and_kind')],
                },
            ), migrations.CreateModel(
                name='EvaluatedMeasure',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('name', models.CharField(max_length=200)),
                    ('is_primary', models.BooleanField(help_text='Whether its tests are corrected together.')),
                    ('is_binary', models.BooleanField(help_text="Whether a topic's value is 0 or 1.")),
                    ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='measures', to='results.result')),
                ],
                options={
                    'ordering': ['pk'],
                },
            ), migrations.CreateModel(
                name='EvaluationWeights',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('name', models.CharField(max_length=200)),
                    ('has_strata', models.BooleanField()),
                    ('effective_n', models.FloatField(help_text='Topics of equal weight that would say as much.')),
                    ('sample', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='results.result')),
                    ('version', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='weights', to='results.result')),
                ],
                options={
                    'abstract': False,
                },
            ), migrations.CreateModel(
                name='FileFit',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('n_documents', models.PositiveBigIntegerField()),
                    ('n_known', models.PositiveBigIntegerField()),
                    ('n_topics', models.PositiveIntegerField()),
                    ('n_known_topics', models.PositiveIntegerField()),
                    ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='retrieval.collectionfile')),
                    ('source', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='fits', to='retrieval.collectionfile')),
                ],
                options={
                    'ordering': ['source', 'run'],
                    'constraints': [models.UniqueConstraint(fields=('source', 'run'), name='fit_once_a_source_and_run')],
                },
            ), migrations.CreateModel(
                name='FilePart',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('position', models.PositiveIntegerField()),
                    ('content', models.BinaryField()),
                    ('file', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='parts', to='retrieval.collectionfile')),
                ],
                options={
                    'ordering': ['file', 'position'],
                    'constraints': [models.UniqueConstraint(fields=('file', 'position'), name='part_once_a_file')],
                },
            ), migrations.CreateModel(
                name='FileTopic',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('topic', models.TextField()),
                    ('file', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='topics', to='retrieval.collectionfile')),
                ],
                options={
                    'ordering': ['file', 'pk'],
                    'indexes': [models.Index(fields=['file', 'topic'], name='topic_of_a_file')],
                },
            ), migrations.CreateModel(
                name='PooledTopic',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('topic', models.TextField()),
                    ('docno', models.TextField(blank=True)),
                    ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='pooled_topics', to='results.result')),
                ],
                options={
                    'ordering': ['pk'],
                },
            ), migrations.CreateModel(
                name='DryPoolSource',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('source', models.CharField(max_length=100)),
                    ('quota', models.PositiveIntegerField()),
                    ('n_listed', models.PositiveIntegerField()),
                    ('n_missing', models.PositiveIntegerField()),
                    ('filled_by', models.TextField(blank=True, help_text='Names of sources.')),
                    ('topic', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='dry', to='retrieval.pooledtopic')),
                ],
                options={
                    'ordering': ['pk'],
                },
            ), migrations.CreateModel(
                name='PoolFinding',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('name', models.CharField(max_length=16)),
                    ('problem', models.TextField()),
                    ('topic', models.TextField(blank=True)),
                    ('docno', models.TextField(blank=True)),
                    ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='pool_findings', to='results.result')),
                ],
                options={
                    'ordering': ['pk'],
                },
            ), migrations.CreateModel(
                name='PoolReplacement',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('slot', models.PositiveIntegerField()),
                    ('source', models.CharField(max_length=100)),
                    ('source_rank', models.PositiveIntegerField()),
                    ('docno', models.TextField()),
                    ('reason', models.CharField(max_length=16)),
                    ('other', models.TextField(blank=True)),
                    ('topic', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='replacements', to='retrieval.pooledtopic')),
                ],
                options={
                    'ordering': ['pk'],
                },
            ), migrations.CreateModel(
                name='PoolSlot',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('slot', models.PositiveIntegerField()),
                    ('position', models.PositiveIntegerField()),
                    ('docno', models.TextField()),
                    ('source', models.CharField(max_length=100)),
                    ('source_rank', models.PositiveIntegerField()),
                    ('quota', models.CharField(blank=True, max_length=100)),
                    ('inclusion', models.FloatField()),
                    ('also', models.TextField(blank=True, help_text="Sources and ranks, as in the pool's file.")),
                    ('topic', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='slots', to='retrieval.pooledtopic')),
                ],
                options={
                    'ordering': ['pk'],
                },
            ), migrations.CreateModel(
                name='PoolStudy',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('allowed', models.CharField(blank=True, help_text='Names of faults.', max_length=200)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('study', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='pools', to='annotation.study')),
                    ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='pool_studies', to='results.result')),
                ],
                options={
                    'ordering': ['pk'],
                },
            ), migrations.CreateModel(
                name='PoolSummary',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('n_slots', models.PositiveIntegerField()),
                    ('n_documents', models.PositiveIntegerField()),
                    ('n_catalogue', models.PositiveIntegerField()),
                    ('n_planned', models.PositiveIntegerField(help_text='Candidates of each topic.', null=True)),
                    ('n_least', models.PositiveIntegerField()),
                    ('n_most', models.PositiveIntegerField()),
                    ('n_short', models.PositiveIntegerField(help_text='Topics with fewer than planned.')),
                    ('n_unmet', models.PositiveIntegerField(help_text='Topics of which a quota is not met.')),
                    ('n_replacements', models.PositiveIntegerField()),
                    ('n_hubs', models.PositiveIntegerField()),
                    ('hub_share', models.FloatField(help_text='Of the topics, from which on it is a hub.')),
                    ('hub_slots', models.FloatField(help_text='Share of all slots that hubs take.')),
                    ('anti_hubs', models.FloatField(help_text='Share of the catalogue that is in no pool.')),
                    ('skewness', models.FloatField(help_text='Of how many pools a document is in.', null=True)),
                    ('n_faults', models.PositiveIntegerField(default=0)),
                    ('version', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='pool_summary', to='results.result')),
                ],
            ), migrations.CreateModel(
                name='ResultFile',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('kind', models.CharField(choices=[('run', 'Run'), ('qrels', 'Qrels'), ('assessors', 'Assessors'), ('embeddings', 'Embeddings'), ('catalogue', 'Catalogue'), ('audited', 'Audited')], max_length=10)),
                    ('name', models.CharField(max_length=100)),
                    ('family', models.CharField(blank=True, max_length=100)),
                    ('made_by', models.CharField(choices=[('people', 'People'), ('machine', 'Machine'), ('simulated', 'Simulated'), ('unknown', 'Unknown')], max_length=9)),
                    ('sha256', models.CharField(max_length=64)),
                    ('n_topics', models.PositiveIntegerField(default=0, help_text='That count.')),
                    ('n_missing', models.PositiveIntegerField(default=0, help_text='That a run lacks.')),
                    ('n_foreign', models.PositiveIntegerField(default=0, help_text='That the qrels do not know.')),
                    ('file', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='retrieval.collectionfile')),
                    ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='files', to='results.result')),
                ],
                options={
                    'ordering': ['pk'],
                },
            ), migrations.CreateModel(
                name='RunPair',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('delta', models.FloatField(null=True)),
                    ('ci_low', models.FloatField(null=True)),
                    ('ci_high', models.FloatField(null=True)),
                    ('test', models.CharField(max_length=40)),
                    ('p', models.FloatField(null=True)),
                    ('p_adjusted', models.FloatField(null=True)),
                    ('n_topics', models.PositiveIntegerField()),
                    ('n_better', models.PositiveIntegerField()),
                    ('n_worse', models.PositiveIntegerField()),
                    ('reason', models.CharField(blank=True, max_length=300)),
                    ('a', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='retrieval.resultfile')),
                    ('b', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='retrieval.resultfile')),
                    ('measure', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='pairs', to='retrieval.evaluatedmeasure')),
                    ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='pairs', to='results.result')),
                ],
                options={
                    'ordering': ['pk'],
                },
            ), migrations.CreateModel(
                name='RunResult',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('mean', models.FloatField(null=True)),
                    ('mean_complete', models.FloatField(help_text='With 0 for topics the run lacks.', null=True)),
                    ('mean_other_ties', models.FloatField(help_text='If ties were broken the other way.', null=True)),
                    ('ci_low', models.FloatField(null=True)),
                    ('ci_high', models.FloatField(null=True)),
                    ('ci_method', models.CharField(blank=True, max_length=40)),
                    ('reason', models.CharField(blank=True, max_length=300)),
                    ('judged', models.FloatField(help_text='Share of judged documents it looks at.', null=True)),
                    ('n_topics', models.PositiveIntegerField()),
                    ('group', models.PositiveSmallIntegerField(help_text='From 1, the best; groups apart differ. Of primary measures.', null=True)),
                    ('measure', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='results', to='retrieval.evaluatedmeasure')),
                    ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='results', to='retrieval.resultfile')),
                    ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='results', to='results.result')),
                ],
                options={
                    'ordering': ['pk'],
                },
            ), migrations.CreateModel(
                name='SampledTarget',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('topic', models.TextField()),
                    ('docno', models.TextField(blank=True, help_text='The document that the topic is about.')),
                    ('value', models.FloatField(help_text='By which the strata were made.', null=True)),
                    ('stratum', models.CharField(blank=True, max_length=200)),
                    ('inclusion', models.FloatField(default=1.0, help_text='The probability that it was drawn.')),
                    ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='sampled_targets', to='results.result')),
                ],
                options={
                    'ordering': ['pk'],
                },
            ), migrations.CreateModel(
                name='SampleFit',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('n_targets', models.PositiveIntegerField()),
                    ('n_known', models.PositiveIntegerField()),
                    ('sample', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='source_fits', to='results.result')),
                    ('source', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='sample_fits', to='retrieval.collectionfile')),
                ],
                options={
                    'ordering': ['source', 'sample'],
                    'constraints': [models.UniqueConstraint(fields=('source', 'sample'), name='fit_once_a_source_and_sample')],
                },
            ), migrations.CreateModel(
                name='TopicValue',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('topic', models.TextField()),
                    ('value', models.FloatField()),
                    ('result', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='topic_values', to='retrieval.runresult')),
                ],
                options={
                    'ordering': ['pk'],
                },
            ), migrations.CreateModel(
                name='WeightedResult',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('value', models.FloatField(null=True)),
                    ('ci_low', models.FloatField(null=True)),
                    ('ci_high', models.FloatField(null=True)),
                    ('ci_method', models.CharField(blank=True, max_length=40)),
                    ('n_topics', models.PositiveIntegerField()),
                    ('reason', models.CharField(blank=True, max_length=300)),
                    ('measure', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='retrieval.evaluatedmeasure')),
                    ('other', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='retrieval.resultfile')),
                    ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='retrieval.resultfile')),
                    ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='weighted_results', to='results.result')),
                ],
                options={
                    'ordering': ['pk'],
                },
            )],
        ),
    ]
