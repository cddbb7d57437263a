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
                name='StoredCatalogue',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('name', models.CharField(max_length=128)),
                    ('kind', models.CharField(choices=[('drawn', 'Drawn'), ('stand-in', 'Stand In'), ('files', 'Files')], max_length=8)),
                    ('n_items', models.PositiveIntegerField()),
                    ('seed', models.PositiveBigIntegerField(default=0)),
                    ('sha256', models.CharField(help_text='Of all that decides what the items are.', max_length=64)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('created_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='catalogues', to='accounts.team')),
                ],
                options={
                    'ordering': ['team', 'name', 'pk'],
                    'constraints': [models.UniqueConstraint(fields=('team', 'sha256'), name='catalogue_once_a_team')],
                },
            ), migrations.CreateModel(
                name='StoredExperiment',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('slug', models.SlugField(max_length=80, unique=True)),
                    ('name', models.CharField(max_length=128)),
                    ('made_of', models.CharField(help_text='Which judgments, in words.', max_length=250)),
                    ('collection', models.CharField(blank=True, help_text='Short name of the collection whose qrels they are.', max_length=80)),
                    ('sha256', models.CharField(help_text='Of the judgments.', max_length=64)),
                    ('n_targets', models.PositiveIntegerField()),
                    ('n_judgments', models.PositiveIntegerField()),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('catalogue', models.ForeignKey(on_delete=django.db.models.deletion.RESTRICT, related_name='experiments', to='simulation.storedcatalogue')),
                    ('created_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('study', models.ForeignKey(blank=True, help_text='Whose judgments they are.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='experiments', to='annotation.study')),
                    ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='experiments', to='accounts.team')),
                ],
                options={
                    'ordering': ['-pk'],
                },
            ), migrations.CreateModel(
                name='ExperimentVersion',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('number', models.PositiveIntegerField(help_text='Counts from one in the experiment.')),
                    ('form', models.PositiveSmallIntegerField(help_text='Of the rows, as the code writes them.')),
                    ('fingerprint', models.CharField(help_text='SHA-256 of catalogue, judgments, checkpoints and settings.', max_length=64)),
                    ('rules', models.JSONField(help_text='The settings it was made by.')),
                    ('n_pieces', models.PositiveIntegerField(default=0)),
                    ('finished_at', models.DateTimeField(blank=True, null=True)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('created_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('experiment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='versions', to='simulation.storedexperiment')),
                ],
                options={
                    'ordering': ['experiment', '-number'],
                    'constraints': [models.UniqueConstraint(fields=('experiment', 'number'), name='version_number_once_an_experiment'), models.UniqueConstraint(fields=('experiment', 'fingerprint'), name='settings_once_an_experiment')],
                },
            ), migrations.CreateModel(
                name='ExperimentNote',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('text', models.TextField()),
                    ('is_fault', models.BooleanField(default=False)),
                    ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='notes', to='simulation.experimentversion')),
                ],
                options={
                    'ordering': ['pk'],
                },
            ), migrations.CreateModel(
                name='DialogueStudy',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('kind', models.CharField(choices=[('switching', 'Switching'), ('outcomes', 'Outcomes')], default='switching', max_length=9)),
                    ('log_name', models.CharField(max_length=255)),
                    ('log_sha256', models.CharField(max_length=64)),
                    ('catalogue', models.CharField(max_length=255)),
                    ('seed', models.PositiveBigIntegerField()),
                    ('per_target', models.PositiveIntegerField(default=0, help_text='Turns, of a switching study.')),
                    ('final_user', models.CharField(blank=True, help_text='Whose final items an outcome study shows.', max_length=255)),
                    ('n_targets_left_out', models.PositiveIntegerField(default=0)),
                    ('most_targets', models.PositiveIntegerField(blank=True, help_text='To draw, of an outcome study; all where empty.', null=True)),
                    ('made_at', models.DateTimeField(help_text='When the study got its items.', null=True)),
                    ('study', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='dialogues', to='annotation.study')),
                    ('version', models.ForeignKey(blank=True, help_text='Whose dialogues they are; empty where a log was sent.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='dialogue_studies', to='simulation.experimentversion')),
                    ('experiment', models.ForeignKey(blank=True, help_text='Whose catalogue and judgments the items are made with.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='dialogue_studies', to='simulation.storedexperiment')),
                ],
            ), migrations.CreateModel(
                name='ComparisonRow',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('what', models.CharField(choices=[('users', 'Users'), ('recommenders', 'Recommenders')], max_length=12)),
                    ('within', models.CharField(help_text='Name of the recommender, or the user.', max_length=200)),
                    ('a', models.CharField(max_length=200)),
                    ('b', models.CharField(max_length=200)),
                    ('measure', models.CharField(max_length=100)),
                    ('turn', models.PositiveSmallIntegerField()),
                    ('delta', models.FloatField(null=True)),
                    ('ci_low', models.FloatField(null=True)),
                    ('ci_high', models.FloatField(null=True)),
                    ('test', models.CharField(max_length=40)),
                    ('p', models.FloatField(null=True)),
                    ('p_adjusted', models.FloatField(null=True)),
                    ('n_targets', models.PositiveIntegerField()),
                    ('n_better', models.PositiveIntegerField()),
                    ('n_worse', models.PositiveIntegerField()),
                    ('reason', models.CharField(blank=True, max_length=300)),
                    ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='comparisons', to='simulation.experimentversion')),
                ],
                options={
                    'ordering': ['pk'],
                },
            ), migrations.CreateModel(
                name='RecordedTurn',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('recommender', models.CharField(max_length=255)),
                    ('user', models.CharField(max_length=255)),
                    ('target', models.CharField(max_length=255)),
                    ('turn', models.PositiveIntegerField()),
                    ('previous', models.CharField(max_length=255)),
                    ('shown', models.CharField(max_length=255)),
                    ('delta', models.FloatField()),
                    ('nearest', models.CharField(max_length=255)),
                    ('dialogues', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='turns', to='simulation.dialoguestudy')),
                    ('item', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='recorded_turn', to='annotation.item')),
                ],
                options={
                    'ordering': ['dialogues', 'item'],
                },
            ), migrations.CreateModel(
                name='SimulatedOutcome',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('user', models.CharField(max_length=255)),
                    ('recommender', models.CharField(max_length=255)),
                    ('value', models.FloatField()),
                    ('dialogues', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='simulated_outcomes', to='simulation.dialoguestudy')),
                    ('item', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='simulated_outcomes', to='annotation.item')),
                ],
                options={
                    'ordering': ['pk'],
                },
            ), migrations.CreateModel(
                name='StoredRecommender',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('name', models.CharField(max_length=128)),
                    ('kind', models.CharField(help_text='gru-sl, gru-rl, gru-rl-later or ege.', max_length=12)),
                    ('rules', models.JSONField(help_text='The settings it is trained by.')),
                    ('n_epochs', models.PositiveIntegerField(help_text='To be trained.')),
                    ('checkpoint', models.BinaryField(blank=True, null=True)),
                    ('sha256', models.CharField(blank=True, help_text='Of the checkpoint.', max_length=64)),
                    ('finished_at', models.DateTimeField(blank=True, null=True)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('catalogue', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='recommenders', to='simulation.storedcatalogue')),
                    ('created_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('start_from', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.RESTRICT, related_name='successors', to='simulation.storedrecommender')),
                ],
                options={
                    'ordering': ['-pk'],
                    'constraints': [models.UniqueConstraint(fields=('catalogue', 'name'), name='recommender_name_once_a_catalogue')],
                },
            ), migrations.CreateModel(
                name='SimulatedRecommender',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('position', models.PositiveSmallIntegerField()),
                    ('name', models.CharField(max_length=128)),
                    ('spec', models.CharField(max_length=40)),
                    ('sha256', models.CharField(blank=True, help_text='Of the checkpoint.', max_length=64)),
                    ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='recommenders', to='simulation.experimentversion')),
                    ('trained', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.RESTRICT, related_name='uses', to='simulation.storedrecommender')),
                ],
                options={
                    'ordering': ['version', 'position'],
                    'constraints': [models.UniqueConstraint(fields=('version', 'position'), name='recommender_once_a_version')],
                },
            ), migrations.CreateModel(
                name='ImprovementRow',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('measure', models.CharField(max_length=100)),
                    ('base', models.FloatField()),
                    ('best', models.FloatField()),
                    ('best_user', models.CharField(max_length=200)),
                    ('percent_of_base', models.FloatField(null=True)),
                    ('percent_symmetric', models.FloatField(null=True)),
                    ('best_of', models.PositiveSmallIntegerField()),
                    ('expected_gain_se', models.FloatField(help_text='Standard errors by which the best of so many equal rows exceeds their mean.')),
                    ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='improvements', to='simulation.experimentversion')),
                    ('recommender', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='simulation.simulatedrecommender')),
                ],
                options={
                    'ordering': ['pk'],
                },
            ), migrations.CreateModel(
                name='SimulatedUser',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('position', models.PositiveSmallIntegerField()),
                    ('name', models.CharField(max_length=200)),
                    ('kind', models.CharField(max_length=4)),
                    ('mode', models.CharField(max_length=8)),
                    ('tolerance', models.PositiveSmallIntegerField()),
                    ('p_switch', models.FloatField()),
                    ('turn_base', models.PositiveSmallIntegerField()),
                    ('switches_on', models.CharField(max_length=4)),
                    ('on_equal', models.CharField(max_length=6)),
                    ('alternative', models.CharField(max_length=7)),
                    ('target_among', models.BooleanField()),
                    ('sticky', models.BooleanField()),
                    ('accepts', models.CharField(max_length=30)),
                    ('leave_hazard', models.FloatField()),
                    ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='users', to='simulation.experimentversion')),
                ],
                options={
                    'ordering': ['version', 'position'],
                    'constraints': [models.UniqueConstraint(fields=('version', 'position'), name='user_once_a_version')],
                },
            ), migrations.CreateModel(
                name='SensitivityRow',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('measure', models.CharField(max_length=100)),
                    ('choice', models.CharField(help_text='qrels, carry, turn, share judged or user.', max_length=20)),
                    ('value', models.CharField(max_length=200)),
                    ('mean', models.FloatField()),
                    ('tau', models.FloatField(null=True)),
                    ('tau_low', models.FloatField(null=True)),
                    ('tau_high', models.FloatField(null=True)),
                    ('reason', models.CharField(blank=True, max_length=300)),
                    ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='sensitivity', to='simulation.experimentversion')),
                    ('recommender', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='simulation.simulatedrecommender')),
                    ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='simulation.simulateduser')),
                ],
                options={
                    'ordering': ['pk'],
                },
            ), migrations.CreateModel(
                name='SeedResult',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('seed', models.PositiveBigIntegerField()),
                    ('measure', models.CharField(max_length=100)),
                    ('turn', models.PositiveSmallIntegerField()),
                    ('mean', models.FloatField()),
                    ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='seed_results', to='simulation.experimentversion')),
                    ('recommender', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='simulation.simulatedrecommender')),
                    ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='simulation.simulateduser')),
                ],
                options={
                    'ordering': ['pk'],
                },
            ), migrations.CreateModel(
                name='CauseRow',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('measure', models.CharField(max_length=100)),
                    ('turn', models.PositiveSmallIntegerField()),
                    ('base_target', models.FloatField(null=True)),
                    ('base_all', models.FloatField(null=True)),
                    ('meta_target', models.FloatField(null=True)),
                    ('meta_all', models.FloatField(null=True)),
                    ('user_delta', models.FloatField(null=True)),
                    ('user_ci_low', models.FloatField(null=True)),
                    ('user_ci_high', models.FloatField(null=True)),
                    ('qrels_delta', models.FloatField(null=True)),
                    ('qrels_ci_low', models.FloatField(null=True)),
                    ('qrels_ci_high', models.FloatField(null=True)),
                    ('total_delta', models.FloatField(null=True)),
                    ('total_ci_low', models.FloatField(null=True)),
                    ('total_ci_high', models.FloatField(null=True)),
                    ('interaction_delta', models.FloatField(null=True)),
                    ('interaction_ci_low', models.FloatField(null=True)),
                    ('interaction_ci_high', models.FloatField(null=True)),
                    ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='causes', to='simulation.experimentversion')),
                    ('recommender', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='simulation.simulatedrecommender')),
                    ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='simulation.simulateduser')),
                ],
                options={
                    'ordering': ['pk'],
                },
            ), migrations.CreateModel(
                name='CataloguePart',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('position', models.PositiveIntegerField()),
                    ('content', models.BinaryField()),
                    ('catalogue', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='parts', to='simulation.storedcatalogue')),
                ],
                options={
                    'ordering': ['catalogue', 'position'],
                    'constraints': [models.UniqueConstraint(fields=('catalogue', 'position'), name='part_once_a_catalogue')],
                },
            ), migrations.CreateModel(
                name='SwitchCount',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('n_switches', models.PositiveIntegerField(help_text='Critiques with an alternative in mind.')),
                    ('n_dialogues', models.PositiveIntegerField()),
                    ('n_found', models.PositiveIntegerField(help_text='Dialogues that ended with an accepted item.')),
                    ('n_left', models.PositiveIntegerField(help_text='Dialogues whose user left before that.')),
                    ('recommender', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='simulation.simulatedrecommender')),
                    ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='simulation.simulateduser')),
                    ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='switches', to='simulation.experimentversion')),
                ],
                options={
                    'ordering': ['pk'],
                },
            ), migrations.CreateModel(
                name='TargetJudgment',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('target', models.TextField()),
                    ('item', models.TextField()),
                    ('grade', models.SmallIntegerField()),
                    ('experiment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='judgments', to='simulation.storedexperiment')),
                ],
                options={
                    'ordering': ['experiment', 'pk'],
                },
            ), migrations.CreateModel(
                name='TargetValue',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('measure', models.CharField(max_length=100)),
                    ('target', models.TextField()),
                    ('value', models.FloatField()),
                    ('recommender', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='simulation.simulatedrecommender')),
                    ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='simulation.simulateduser')),
                    ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='target_values', to='simulation.experimentversion')),
                ],
                options={
                    'ordering': ['pk'],
                },
            ), migrations.CreateModel(
                name='TrainingEpoch',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('epoch', models.PositiveIntegerField(help_text='From 1.')),
                    ('loss', models.FloatField()),
                    ('validation', models.FloatField()),
                    ('seconds', models.FloatField()),
                    ('recommender', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='epochs', to='simulation.storedrecommender')),
                ],
                options={
                    'ordering': ['recommender', 'epoch'],
                    'constraints': [models.UniqueConstraint(fields=('recommender', 'epoch'), name='epoch_once_a_training')],
                },
            ), migrations.CreateModel(
                name='TurnResult',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('measure', models.CharField(max_length=100)),
                    ('turn', models.PositiveSmallIntegerField()),
                    ('mean', models.FloatField(null=True)),
                    ('ci_low', models.FloatField(null=True)),
                    ('ci_high', models.FloatField(null=True)),
                    ('ci_method', models.CharField(blank=True, max_length=40)),
                    ('reason', models.CharField(blank=True, max_length=300)),
                    ('n_targets', models.PositiveIntegerField()),
                    ('judged', models.FloatField(help_text='Share judged of the first ten items.', null=True)),
                    ('recommender', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='simulation.simulatedrecommender')),
                    ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='simulation.simulateduser')),
                    ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='results', to='simulation.experimentversion')),
                ],
                options={
                    'ordering': ['pk'],
                },
            ), migrations.CreateModel(
                name='DialogueLogPart',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('position', models.PositiveIntegerField()),
                    ('content', models.BinaryField()),
                    ('dialogues', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='log_parts', to='simulation.dialoguestudy')),
                ],
                options={
                    'ordering': ['dialogues', 'position'],
                    'constraints': [models.UniqueConstraint(fields=('dialogues', 'position'), name='part_once_a_log')],
                },
            ), migrations.CreateModel(
                name='FinalItem',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('recommender', models.CharField(blank=True, max_length=255)),
                    ('shown', models.CharField(max_length=255)),
                    ('turn', models.PositiveIntegerField()),
                    ('is_target', models.BooleanField()),
                    ('dialogues', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='final_items', to='simulation.dialoguestudy')),
                    ('item', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='final_items', to='annotation.item')),
                ],
                options={
                    'ordering': ['pk'],
                    'constraints': [models.UniqueConstraint(fields=('item', 'recommender'), name='final_item_once')],
                },
            ), migrations.CreateModel(
                name='DialoguePiece',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('seed', models.PositiveBigIntegerField()),
                    ('first_user', models.PositiveSmallIntegerField()),
                    ('n_users', models.PositiveSmallIntegerField()),
                    ('log', models.BinaryField(null=True)),
                    ('n_dialogues', models.PositiveIntegerField(default=0)),
                    ('seconds', models.FloatField(null=True)),
                    ('done_at', models.DateTimeField(blank=True, null=True)),
                    ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='pieces', to='simulation.experimentversion')),
                    ('recommender', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='pieces', to='simulation.simulatedrecommender')),
                ],
                options={
                    'ordering': ['version', 'pk'],
                    'constraints': [models.UniqueConstraint(fields=('version', 'recommender', 'seed', 'first_user'), name='piece_once_a_version')],
                },
            )],
        ),
    ]
