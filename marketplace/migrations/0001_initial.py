import django.db.models.deletion
import marketplace.identifiers
import new_tables
from decimal import Decimal
from django.conf import settings
from django.db import migrations, models


HAS_LZ4 = (
    "SELECT 1 FROM pg_settings WHERE name = 'default_toast_compression' AND 'lz4' = ANY(enumvals)"
)


def compress_fast(apps, editor):
    """A page of 40 KB takes PostgreSQL a third of the time with LZ4, where it was built with it."""
    connection = editor.connection
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        cursor.execute(HAS_LZ4)
        if cursor.fetchone():
            cursor.execute("ALTER TABLE marketplace_hit ALTER COLUMN question SET COMPRESSION lz4")


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('accounts', '__first__'),
    ]

    operations = [
        new_tables.CreateModels(
            models=[migrations.CreateModel(
                name='Requester',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('public_id', models.CharField(default=marketplace.identifiers.new_person_id, max_length=14, unique=True)),
                    ('name', models.CharField(max_length=150, unique=True)),
                    ('display_name', models.CharField(blank=True, max_length=150)),
                    ('more_time_percent', models.PositiveSmallIntegerField(default=50)),
                    ('encrypted_webhook_secret', models.TextField(blank=True)),
                    ('created_at', models.DateTimeField()),
                    ('owners', models.ManyToManyField(blank=True, related_name='owned_requesters', to=settings.AUTH_USER_MODEL)),
                    ('users', models.ManyToManyField(blank=True, related_name='marketplace_requesters', to=settings.AUTH_USER_MODEL)),
                ],
            ), migrations.CreateModel(
                name='AccessKey',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('access_key_id', models.CharField(default=marketplace.identifiers.new_access_key_id, max_length=20, unique=True)),
                    ('encrypted_secret', models.TextField(blank=True)),
                    ('label', models.CharField(blank=True, max_length=100)),
                    ('created_at', models.DateTimeField()),
                    ('last_used_at', models.DateTimeField(null=True)),
                    ('revoked_at', models.DateTimeField(null=True)),
                    ('requester', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='access_keys', to='marketplace.requester')),
                ],
            ), migrations.CreateModel(
                name='HitType',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('public_id', models.CharField(default=marketplace.identifiers.new_entity_id, max_length=30, unique=True)),
                    ('group_id', models.CharField(default=marketplace.identifiers.new_entity_id, max_length=30, unique=True)),
                    ('title', models.CharField(max_length=128)),
                    ('description', models.CharField(max_length=2000)),
                    ('keywords', models.CharField(blank=True, max_length=1000)),
                    ('reward_usd', models.DecimalField(decimal_places=2, max_digits=12)),
                    ('assignment_duration_seconds', models.PositiveIntegerField()),
                    ('auto_approval_delay_seconds', models.PositiveIntegerField()),
                    ('paid_by', models.CharField(choices=[('ledger', 'The marketplace'), ('recruiter', 'The recruiter')], default='ledger', max_length=9)),
                    ('digest', models.CharField(max_length=64)),
                    ('created_at', models.DateTimeField()),
                    ('requester', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='hit_types', to='marketplace.requester')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('requester', 'digest'), name='one_hit_type_per_set_of_values')],
                },
            ), migrations.CreateModel(
                name='Hit',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('public_id', models.CharField(default=marketplace.identifiers.new_entity_id, max_length=30, unique=True)),
                    ('question', models.TextField()),
                    ('max_assignments', models.PositiveIntegerField()),
                    ('fee_usd', models.DecimalField(decimal_places=2, default=Decimal('0.00'), max_digits=12)),
                    ('requester_annotation', models.CharField(blank=True, max_length=255)),
                    ('unique_request_token', models.CharField(max_length=64, null=True)),
                    ('created_at', models.DateTimeField()),
                    ('expiration', models.DateTimeField()),
                    ('expired_at', models.DateTimeField(null=True)),
                    ('status', models.CharField(choices=[('Assignable', 'Assignable'), ('Unassignable', 'Unassignable'), ('Reviewable', 'Reviewable'), ('Reviewing', 'Reviewing'), ('Disposed', 'Disposed')], default='Assignable', max_length=12)),
                    ('next_transition_at', models.DateTimeField(null=True)),
                    ('hit_type', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='hits', to='marketplace.hittype')),
                    ('requester', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='hits', to='marketplace.requester')),
                ],
                options={
                    'indexes': [models.Index(fields=['requester', '-id'], name='hit_of_requester'), models.Index(condition=models.Q(('status', 'Assignable')), fields=['hit_type', 'id'], name='hit_assignable_in_group'), models.Index(condition=models.Q(('next_transition_at__isnull', False)), fields=['next_transition_at'], name='hit_due')],
                    'constraints': [models.UniqueConstraint(fields=('requester', 'unique_request_token'), name='one_hit_per_request_token'), models.CheckConstraint(condition=models.Q(('max_assignments__gte', 1)), name='hit_asks_for_an_assignment')],
                },
            ), migrations.CreateModel(
                name='WorkerAccount',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('worker_id', models.CharField(default=marketplace.identifiers.new_person_id, max_length=14, unique=True)),
                    ('created_at', models.DateTimeField()),
                    ('country', models.CharField(blank=True, max_length=2)),
                    ('subdivision', models.CharField(blank=True, max_length=3)),
                    ('languages', models.JSONField(blank=True, default=list)),
                    ('adult_confirmed_at', models.DateTimeField(null=True)),
                    ('paid_by', models.CharField(choices=[('ledger', 'The marketplace'), ('recruiter', 'The recruiter')], default='ledger', max_length=9)),
                    ('payee_id', models.CharField(default=marketplace.identifiers.new_person_id, max_length=14, null=True, unique=True)),
                    ('master_since', models.DateTimeField(null=True)),
                    ('erased_at', models.DateTimeField(null=True)),
                    ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='worker_account', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('paid_by', 'ledger'), ('payee_id__isnull', False)), models.Q(('paid_by', 'recruiter'), ('payee_id', None)), _connector='OR'), name='a_recruiters_participant_is_no_payee')],
                },
            ), migrations.CreateModel(
                name='Assignment',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('public_id', models.CharField(default=marketplace.identifiers.new_entity_id, max_length=30, unique=True)),
                    ('status', models.CharField(choices=[('Accepted', 'Accepted'), ('Submitted', 'Submitted'), ('Approved', 'Approved'), ('Rejected', 'Rejected'), ('Returned', 'Returned'), ('Abandoned', 'Abandoned')], default='Accepted', max_length=9)),
                    ('slot', models.PositiveIntegerField(null=True)),
                    ('reward_usd', models.DecimalField(decimal_places=2, max_digits=12)),
                    ('fee_usd', models.DecimalField(decimal_places=2, max_digits=12)),
                    ('paid_by', models.CharField(choices=[('ledger', 'The marketplace'), ('recruiter', 'The recruiter')], default='ledger', max_length=9)),
                    ('accepted_at', models.DateTimeField()),
                    ('deadline', models.DateTimeField()),
                    ('extended_at', models.DateTimeField(null=True)),
                    ('submitted_at', models.DateTimeField(null=True)),
                    ('auto_approval_at', models.DateTimeField(null=True)),
                    ('approved_at', models.DateTimeField(null=True)),
                    ('rejected_at', models.DateTimeField(null=True)),
                    ('closed_at', models.DateTimeField(null=True)),
                    ('withdrawn_at', models.DateTimeField(null=True)),
                    ('answer', models.TextField(blank=True)),
                    ('requester_feedback', models.CharField(blank=True, max_length=1024)),
                    ('hit', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='assignments', to='marketplace.hit')),
                    ('worker', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='assignments', to='marketplace.workeraccount')),
                ],
                options={
                    'indexes': [models.Index(fields=['hit', 'status'], name='assignment_of_hit'), models.Index(fields=['worker', '-id'], name='assignment_of_worker'), models.Index(fields=['worker', 'status'], name='assignment_record')],
                    'constraints': [models.UniqueConstraint(condition=models.Q(('status__in', ['Returned', 'Abandoned']), _negated=True), fields=('hit', 'worker'), name='one_live_assignment_per_hit_and_worker'), models.CheckConstraint(condition=models.Q(models.Q(('status__in', ['Accepted', 'Returned', 'Abandoned']), ('submitted_at', None)), models.Q(('auto_approval_at__isnull', False), ('status__in', ['Submitted', 'Approved', 'Rejected']), ('submitted_at__isnull', False)), _connector='OR'), name='assignment_handed_in_has_its_times'), models.CheckConstraint(condition=models.Q(('paid_by', 'ledger'), models.Q(('fee_usd', 0), ('paid_by', 'recruiter'), ('reward_usd', 0)), _connector='OR'), name='a_recruiters_assignment_promises_no_money')],
                },
            ), migrations.CreateModel(
                name='ClockShift',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('ahead', models.DurationField()),
                ],
            ), migrations.CreateModel(
                name='Fault',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('operation', models.CharField(max_length=64)),
                    ('kind', models.CharField(choices=[('throttle', 'Answer ThrottlingException'), ('drop', 'Commit, then drop the connection'), ('delay', 'Answer late')], max_length=8)),
                    ('remaining', models.PositiveIntegerField()),
                    ('delay_seconds', models.FloatField(default=0)),
                ],
            ), migrations.CreateModel(
                name='LedgerAccount',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('kind', models.CharField(choices=[('outside', 'Outside the marketplace'), ('available', "A requester's available balance"), ('held', "A requester's money held for published HITs"), ('earnings', "A worker's earnings"), ('payouts', 'Earnings on their way out of the marketplace'), ('fees', "The marketplace's fees")], max_length=10)),
                    ('requester', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='ledger_accounts', to='marketplace.requester')),
                    ('payee', models.OneToOneField(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='earnings_account', to='marketplace.workeraccount', to_field='payee_id')),
                    ('worker', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='ledger_accounts', to='marketplace.workeraccount')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(condition=models.Q(('requester', None), ('worker', None)), fields=('kind',), name='one_ledger_account_of_a_kind'), models.UniqueConstraint(fields=('requester', 'kind'), name='one_ledger_account_per_requester_and_kind'), models.UniqueConstraint(fields=('worker', 'kind'), name='one_ledger_account_per_worker_and_kind'), models.CheckConstraint(condition=models.Q(models.Q(('kind__in', ['outside', 'fees', 'payouts']), ('payee', None), ('requester', None), ('worker', None)), models.Q(('kind__in', ['available', 'held']), ('payee', None), ('requester__isnull', False), ('worker', None)), models.Q(('kind', 'earnings'), ('payee__isnull', False), ('requester', None), ('worker__isnull', False)), _connector='OR'), name='ledger_account_has_its_owner')],
                },
            ), migrations.CreateModel(
                name='LedgerAudit',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('created_at', models.DateTimeField()),
                    ('duration_seconds', models.FloatField()),
                    ('n_problems', models.PositiveIntegerField()),
                    ('problems', models.JSONField(default=list)),
                ],
                options={
                    'get_latest_by': 'pk',
                },
            ), migrations.CreateModel(
                name='QualificationType',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('public_id', models.CharField(default=marketplace.identifiers.new_entity_id, max_length=30, unique=True)),
                    ('name', models.CharField(max_length=200)),
                    ('description', models.CharField(max_length=2000)),
                    ('keywords', models.CharField(blank=True, max_length=1000)),
                    ('status', models.CharField(choices=[('Active', 'Active'), ('Inactive', 'Inactive')], default='Active', max_length=8)),
                    ('test', models.TextField(blank=True)),
                    ('answer_key', models.TextField(blank=True)),
                    ('test_duration_seconds', models.PositiveIntegerField(null=True)),
                    ('retry_delay_seconds', models.PositiveIntegerField(null=True)),
                    ('auto_granted', models.BooleanField(default=False)),
                    ('auto_granted_value', models.IntegerField(default=1)),
                    ('created_at', models.DateTimeField()),
                    ('deleted_at', models.DateTimeField(null=True)),
                    ('requester', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='qualification_types', to='marketplace.requester')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(condition=models.Q(('deleted_at', None)), fields=('requester', 'name'), name='one_qualification_type_of_a_name'), models.CheckConstraint(condition=models.Q(('auto_granted', False), ('test', ''), _connector='OR'), name='an_auto_granted_qualification_has_no_test')],
                },
            ), migrations.CreateModel(
                name='Qualification',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('status', models.CharField(choices=[('Granted', 'Granted'), ('Revoked', 'Revoked')], default='Granted', max_length=7)),
                    ('integer_value', models.IntegerField(null=True)),
                    ('country', models.CharField(blank=True, max_length=2)),
                    ('subdivision', models.CharField(blank=True, max_length=3)),
                    ('granted_at', models.DateTimeField()),
                    ('revoked_at', models.DateTimeField(null=True)),
                    ('qualification_type', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='qualifications', to='marketplace.qualificationtype')),
                    ('worker', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='qualifications', to='marketplace.workeraccount')),
                ],
                options={
                    'indexes': [models.Index(fields=['worker', 'status'], name='qualification_of_worker')],
                    'constraints': [models.UniqueConstraint(fields=('qualification_type', 'worker'), name='one_qualification_per_type_and_worker')],
                },
            ), migrations.CreateModel(
                name='RecruiterConnection',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('public_id', models.CharField(default=marketplace.identifiers.new_entity_id, max_length=30, unique=True)),
                    ('kind', models.CharField(choices=[('prolific', 'Prolific'), ('panel', 'Panel with links'), ('invite', 'Invite links')], max_length=8)),
                    ('name', models.CharField(max_length=100)),
                    ('encrypted_token', models.TextField(blank=True)),
                    ('encrypted_offer', models.TextField(blank=True)),
                    ('encrypted_webhook_secret', models.TextField(blank=True)),
                    ('webhooks_checked_at', models.DateTimeField(null=True)),
                    ('blocked_group_id', models.CharField(blank=True, max_length=100)),
                    ('blocked_worker_ids', models.JSONField(blank=True, default=list)),
                    ('blocked_group_anew_at', models.DateTimeField(null=True)),
                    ('settings', models.JSONField(blank=True, default=dict)),
                    ('created_at', models.DateTimeField()),
                    ('problem', models.TextField(blank=True)),
                    ('called_at', models.DateTimeField(null=True)),
                    ('turn_until', models.DateTimeField(null=True)),
                    ('turn_token', models.CharField(blank=True, max_length=32)),
                    ('stopped_looked_at', models.DateTimeField(null=True)),
                    ('requester', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='recruiters', to='marketplace.requester')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('requester', 'kind', 'name'), name='one_recruiter_per_kind_and_name')],
                },
            ), migrations.CreateModel(
                name='RateBucket',
                fields=[
                    ('access_key', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='rate_bucket', serialize=False, to='marketplace.accesskey')),
                    ('tokens', models.FloatField()),
                    ('filled_at', models.DateTimeField()),
                ],
            ), migrations.CreateModel(
                name='AssignmentDraft',
                fields=[
                    ('assignment', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='draft', serialize=False, to='marketplace.assignment')),
                    ('content', models.TextField()),
                    ('progress', models.CharField(blank=True, max_length=100)),
                    ('revision', models.PositiveIntegerField(default=1)),
                    ('saved_at', models.DateTimeField()),
                ],
            ), migrations.CreateModel(
                name='Appeal',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('reason', models.TextField()),
                    ('created_at', models.DateTimeField()),
                    ('answer', models.TextField(blank=True)),
                    ('answered_at', models.DateTimeField(null=True)),
                    ('assignment', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='appeal', to='marketplace.assignment')),
                ],
            ), migrations.CreateModel(
                name='RecruitingRule',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('words', models.CharField(blank=True, max_length=100)),
                    ('reward', models.DecimalField(decimal_places=2, max_digits=10, null=True)),
                    ('minutes', models.PositiveSmallIntegerField()),
                    ('items_per_session', models.PositiveSmallIntegerField(default=1)),
                    ('most_cost', models.DecimalField(decimal_places=2, max_digits=14)),
                    ('created_at', models.DateTimeField()),
                    ('ended_at', models.DateTimeField(null=True)),
                    ('connection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='rules', to='marketplace.recruiterconnection')),
                    ('requester', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='recruiting_rules', to='marketplace.requester')),
                ],
                options={
                    'constraints': [models.CheckConstraint(condition=models.Q(('most_cost__gt', 0)), name='a_rule_has_an_amount'), models.CheckConstraint(condition=models.Q(('items_per_session__gte', 1)), name='a_ruled_participation_has_a_hit')],
                },
            ), migrations.CreateModel(
                name='AttachedHitType',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('ended_at', models.DateTimeField(null=True)),
                    ('pending_cost', models.DecimalField(decimal_places=4, max_digits=14, null=True)),
                    ('problem', models.TextField(blank=True)),
                    ('hit_type', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='attached', to='marketplace.hittype')),
                    ('rule', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='attached', to='marketplace.recruitingrule')),
                ],
            ), migrations.CreateModel(
                name='LedgerTransaction',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('kind', models.CharField(choices=[('deposit', 'Deposit'), ('hold', 'Hold for published work'), ('release', 'Release of a hold'), ('reversal', 'Deposit taken out again'), ('payment', 'Payment of an approved assignment'), ('bonus', 'Bonus'), ('payout', 'Payout of earnings')], max_length=10)),
                    ('created_at', models.DateTimeField()),
                    ('assignment', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='ledger_transactions', to='marketplace.assignment')),
                    ('hit', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='ledger_transactions', to='marketplace.hit')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(condition=models.Q(('kind', 'payment')), fields=('assignment',), name='an_assignment_is_paid_at_most_once')],
                },
            ), migrations.CreateModel(
                name='LedgerEntry',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('amount_usd', models.DecimalField(decimal_places=2, max_digits=14)),
                    ('balance_usd', models.DecimalField(decimal_places=2, max_digits=14, null=True)),
                    ('account', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='entries', to='marketplace.ledgeraccount')),
                    ('transaction', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='entries', to='marketplace.ledgertransaction')),
                ],
                options={
                    'indexes': [models.Index(fields=['account', '-id'], name='ledger_entry_statement')],
                    'constraints': [models.CheckConstraint(condition=models.Q(('amount_usd', 0), _negated=True), name='ledger_entry_moves_money'), models.UniqueConstraint(fields=('transaction', 'account'), name='one_ledger_entry_per_account')],
                },
            ), migrations.CreateModel(
                name='NotificationSetting',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('destination', models.CharField(max_length=1024)),
                    ('transport', models.CharField(choices=[('Email', 'Email'), ('SQS', 'Sqs'), ('SNS', 'Sns'), ('HTTPS', 'Https')], max_length=5)),
                    ('version', models.CharField(max_length=20)),
                    ('event_types', models.JSONField(default=list)),
                    ('is_active', models.BooleanField(default=True)),
                    ('hit_type', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='notification_setting', to='marketplace.hittype')),
                ],
            ), migrations.CreateModel(
                name='PayoutBatch',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('created_at', models.DateTimeField()),
                    ('exported_at', models.DateTimeField(null=True)),
                    ('paid_at', models.DateTimeField(null=True)),
                    ('note', models.CharField(blank=True, max_length=200)),
                    ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'verbose_name_plural': 'payout batches',
                },
            ), migrations.CreateModel(
                name='ProblemReport',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('text', models.CharField(max_length=500)),
                    ('created_at', models.DateTimeField()),
                    ('assignment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='problem_reports', to='marketplace.assignment')),
                ],
            ), migrations.CreateModel(
                name='QualificationChange',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('status', models.CharField(choices=[('Granted', 'Granted'), ('Revoked', 'Revoked')], max_length=7)),
                    ('integer_value', models.IntegerField(null=True)),
                    ('reason', models.TextField(blank=True)),
                    ('created_at', models.DateTimeField()),
                    ('qualification', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='changes', to='marketplace.qualification')),
                ],
            ), migrations.CreateModel(
                name='QualificationRequirement',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('position', models.PositiveSmallIntegerField()),
                    ('system_id', models.CharField(blank=True, max_length=30)),
                    ('comparator', models.CharField(choices=[('LessThan', 'Less Than'), ('LessThanOrEqualTo', 'Less Than Or Equal To'), ('GreaterThan', 'Greater Than'), ('GreaterThanOrEqualTo', 'Greater Than Or Equal To'), ('EqualTo', 'Equal To'), ('NotEqualTo', 'Not Equal To'), ('Exists', 'Exists'), ('DoesNotExist', 'Does Not Exist'), ('In', 'In'), ('NotIn', 'Not In')], max_length=20)),
                    ('integer_values', models.JSONField(default=list)),
                    ('locale_values', models.JSONField(default=list)),
                    ('actions_guarded', models.CharField(choices=[('Accept', 'Accept'), ('PreviewAndAccept', 'Preview And Accept'), ('DiscoverPreviewAndAccept', 'Discover Preview And Accept')], default='Accept', max_length=24)),
                    ('hit_type', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='requirements', to='marketplace.hittype')),
                    ('qualification_type', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='requirements', to='marketplace.qualificationtype')),
                ],
                options={
                    'ordering': ['hit_type', 'position'],
                    'constraints': [models.UniqueConstraint(fields=('hit_type', 'position'), name='requirements_are_numbered'), models.CheckConstraint(condition=models.Q(('qualification_type', None), ('system_id', ''), _connector='XOR'), name='requirement_names_one_qualification')],
                },
            ), migrations.CreateModel(
                name='RecruitedStudy',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('token', models.CharField(default=marketplace.identifiers.new_token, max_length=32, unique=True)),
                    ('name', models.CharField(max_length=100)),
                    ('state', models.CharField(choices=[('draft', 'Draft'), ('active', 'Open'), ('paused', 'Paused'), ('stopped', 'Closed')], default='active', max_length=7)),
                    ('external_id', models.CharField(blank=True, max_length=100)),
                    ('items_per_session', models.PositiveSmallIntegerField(default=1)),
                    ('maximum_seconds', models.PositiveIntegerField(default=3600)),
                    ('discards_returned', models.BooleanField(default=False)),
                    ('annotation_prefix', models.CharField(blank=True, max_length=255)),
                    ('reward', models.DecimalField(decimal_places=2, max_digits=10, null=True)),
                    ('minutes', models.PositiveSmallIntegerField(null=True)),
                    ('places', models.PositiveIntegerField(default=0)),
                    ('devices', models.JSONField(blank=True, default=list)),
                    ('filters', models.JSONField(blank=True, default=list)),
                    ('labels', models.JSONField(blank=True, default=list)),
                    ('screen_out_reward', models.DecimalField(decimal_places=2, max_digits=10, null=True)),
                    ('screen_out_places', models.PositiveIntegerField(default=0)),
                    ('reward_there', models.DecimalField(decimal_places=2, max_digits=10, null=True)),
                    ('screen_out_reward_there', models.DecimalField(decimal_places=2, max_digits=10, null=True)),
                    ('external_group_id', models.CharField(blank=True, max_length=100)),
                    ('group_size', models.PositiveIntegerField(default=0)),
                    ('group_anew_at', models.DateTimeField(null=True)),
                    ('quoted_places', models.PositiveIntegerField(null=True)),
                    ('quoted_cost', models.DecimalField(decimal_places=4, max_digits=14, null=True)),
                    ('quoted_bonus', models.DecimalField(decimal_places=2, max_digits=10, null=True)),
                    ('quoted_bonus_cost', models.DecimalField(decimal_places=4, max_digits=14, null=True)),
                    ('action', models.CharField(blank=True, choices=[('draft', 'Draft it'), ('price', 'Ask what more places cost'), ('publish', 'Publish it'), ('places', 'Add places'), ('pause', 'Pause it'), ('resume', 'Resume it'), ('stop', 'Stop it'), ('discard', 'Discard the draft'), ('bonus', 'Ask what a bonus costs')], max_length=7)),
                    ('action_values', models.JSONField(blank=True, default=dict)),
                    ('action_number', models.PositiveIntegerField(default=0)),
                    ('action_token', models.CharField(blank=True, max_length=64)),
                    ('n_payable_there', models.PositiveIntegerField(null=True)),
                    ('problem', models.TextField(blank=True)),
                    ('request_token', models.CharField(blank=True, max_length=64)),
                    ('worker_parameter', models.CharField(blank=True, max_length=64)),
                    ('study_parameter', models.CharField(blank=True, max_length=64)),
                    ('session_parameter', models.CharField(blank=True, max_length=64)),
                    ('created_at', models.DateTimeField()),
                    ('attached', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='studies', to='marketplace.attachedhittype')),
                    ('excluded', models.ManyToManyField(blank=True, related_name='excluded_by', to='marketplace.recruitedstudy')),
                    ('hit_type', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='recruited_studies', to='marketplace.hittype')),
                    ('connection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='studies', to='marketplace.recruiterconnection')),
                    ('requester', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='recruited_studies', to='marketplace.requester')),
                ],
                options={
                    'verbose_name_plural': 'recruited studies',
                    'constraints': [models.CheckConstraint(condition=models.Q(('items_per_session__gte', 1)), name='a_participation_has_a_hit'), models.UniqueConstraint(condition=models.Q(('request_token', ''), _negated=True), fields=('requester', 'request_token'), name='one_study_per_request_token')],
                },
            ), migrations.CreateModel(
                name='OutcomeCode',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('outcome', models.CharField(choices=[('completed', 'Completed'), ('no_consent', 'No consent'), ('incompatible_device', 'Incompatible device'), ('failed_attention', 'Failed attention checks'), ('screened_out', 'Screened out'), ('no_more_items', 'No items left'), ('follow_up', 'Follow-up study')], max_length=20)),
                    ('code', models.CharField(max_length=64)),
                    ('redirect_url', models.CharField(blank=True, max_length=1000)),
                    ('study', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='codes', to='marketplace.recruitedstudy')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('study', 'outcome'), name='one_code_per_outcome'), models.UniqueConstraint(fields=('study', 'code'), name='one_outcome_per_code')],
                },
            ), migrations.CreateModel(
                name='ErasedSubmission',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('seal', models.CharField(max_length=64)),
                    ('uncharged', models.CharField(blank=True, max_length=10)),
                    ('is_unpaid', models.BooleanField(default=False)),
                    ('holds_place', models.BooleanField(default=True)),
                    ('study', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='erased_submissions', to='marketplace.recruitedstudy')),
                    ('connection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='erased_submissions', to='marketplace.recruiterconnection')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('connection', 'seal'), name='one_erased_submission_per_seal')],
                },
            ), migrations.CreateModel(
                name='RecruiterEvent',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('event_id', models.CharField(max_length=100)),
                    ('kind', models.CharField(blank=True, max_length=100)),
                    ('submission_id', models.CharField(blank=True, max_length=100)),
                    ('external_study_id', models.CharField(blank=True, max_length=100)),
                    ('received_at', models.DateTimeField()),
                    ('followed_at', models.DateTimeField(null=True)),
                    ('connection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='events', to='marketplace.recruiterconnection')),
                ],
                options={
                    'indexes': [models.Index(condition=models.Q(('followed_at', None)), fields=['id'], name='event_unfollowed'), models.Index(fields=['received_at'], name='event_received')],
                    'constraints': [models.UniqueConstraint(fields=('connection', 'event_id'), name='one_event_per_event_id')],
                },
            ), migrations.CreateModel(
                name='Notification',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('event_doc_id', models.CharField(default=marketplace.identifiers.new_entity_id, max_length=30, unique=True)),
                    ('destination', models.CharField(max_length=1024)),
                    ('transport', models.CharField(choices=[('Email', 'Email'), ('SQS', 'Sqs'), ('SNS', 'Sns'), ('HTTPS', 'Https')], max_length=5)),
                    ('event_type', models.CharField(max_length=24)),
                    ('body', models.TextField()),
                    ('created_at', models.DateTimeField()),
                    ('attempts', models.PositiveSmallIntegerField(default=0)),
                    ('next_attempt_at', models.DateTimeField(null=True)),
                    ('sent_at', models.DateTimeField(null=True)),
                    ('last_error', models.TextField(blank=True)),
                    ('requester', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='notifications', to='marketplace.requester')),
                ],
                options={
                    'indexes': [models.Index(condition=models.Q(('next_attempt_at__isnull', False)), fields=['next_attempt_at'], name='notification_due'), models.Index(condition=models.Q(('next_attempt_at', None), ('sent_at', None)), fields=['created_at'], name='notification_given_up')],
                },
            ), migrations.CreateModel(
                name='HitExtension',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('public_id', models.CharField(default=marketplace.identifiers.new_entity_id, max_length=30, unique=True)),
                    ('additional_assignments', models.PositiveIntegerField()),
                    ('unique_request_token', models.CharField(max_length=64, null=True)),
                    ('created_at', models.DateTimeField()),
                    ('hit', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='extensions', to='marketplace.hit')),
                    ('requester', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='hit_extensions', to='marketplace.requester')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('requester', 'unique_request_token'), name='one_extension_per_request_token')],
                },
            ), migrations.CreateModel(
                name='DevicePrint',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('digest', models.CharField(max_length=64)),
                    ('created_at', models.DateTimeField(db_index=True)),
                    ('assignment', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='device_print', to='marketplace.assignment')),
                    ('requester', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='marketplace.requester')),
                ],
                options={
                    'indexes': [models.Index(fields=['requester', 'digest'], name='device_of_requester')],
                },
            ), migrations.CreateModel(
                name='Deposit',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('public_id', models.CharField(default=marketplace.identifiers.new_entity_id, max_length=30, unique=True)),
                    ('amount_usd', models.DecimalField(decimal_places=2, max_digits=12)),
                    ('reference', models.CharField(blank=True, max_length=200)),
                    ('form_token', models.CharField(max_length=64, null=True)),
                    ('created_at', models.DateTimeField()),
                    ('reversal', models.OneToOneField(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='reversed_deposit', to='marketplace.ledgertransaction')),
                    ('transaction', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='deposit', to='marketplace.ledgertransaction')),
                    ('requester', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='deposits', to='marketplace.requester')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(condition=models.Q(models.Q(('reference', ''), _negated=True), ('reversal', None)), fields=('requester', 'reference'), name='one_standing_deposit_per_reference'), models.UniqueConstraint(fields=('requester', 'form_token'), name='one_deposit_per_form_token'), models.CheckConstraint(condition=models.Q(('amount_usd__gt', 0)), name='a_deposit_is_money')],
                },
            ), migrations.CreateModel(
                name='BonusPayment',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('public_id', models.CharField(default=marketplace.identifiers.new_entity_id, max_length=30, unique=True)),
                    ('amount_usd', models.DecimalField(decimal_places=2, max_digits=12)),
                    ('fee_usd', models.DecimalField(decimal_places=2, max_digits=12)),
                    ('reason', models.TextField()),
                    ('unique_request_token', models.CharField(max_length=64, null=True)),
                    ('created_at', models.DateTimeField()),
                    ('assignment', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='bonus_payments', to='marketplace.assignment')),
                    ('transaction', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='bonus_payment', to='marketplace.ledgertransaction')),
                    ('requester', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='bonus_payments', to='marketplace.requester')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('requester', 'unique_request_token'), name='one_bonus_per_request_token'), models.CheckConstraint(condition=models.Q(('amount_usd__gt', 0)), name='a_bonus_is_money')],
                },
            ), migrations.CreateModel(
                name='AuditEntry',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('created_at', models.DateTimeField()),
                    ('action', models.CharField(max_length=64)),
                    ('subject', models.CharField(blank=True, max_length=200)),
                    ('detail', models.JSONField(default=dict)),
                    ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('requester', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='marketplace.requester')),
                ],
                options={
                    'verbose_name_plural': 'audit entries',
                    'indexes': [models.Index(fields=['requester', '-id'], name='audit_of_requester')],
                },
            ), migrations.CreateModel(
                name='ReviewPolicy',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('level', models.CharField(choices=[('Assignment', 'Assignment'), ('HIT', 'Hit')], max_length=10)),
                    ('name', models.CharField(max_length=64)),
                    ('parameters', models.JSONField(default=list)),
                    ('hit', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='review_policies', to='marketplace.hit')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('hit', 'level'), name='one_review_policy_per_level')],
                },
            ), migrations.CreateModel(
                name='ReviewAction',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('action_id', models.CharField(default=marketplace.identifiers.new_entity_id, max_length=30, unique=True)),
                    ('name', models.CharField(max_length=64)),
                    ('target_type', models.CharField(choices=[('Assignment', 'Assignment'), ('HIT', 'Hit')], max_length=10)),
                    ('target_id', models.CharField(max_length=30)),
                    ('status', models.CharField(choices=[('Intended', 'Intended'), ('Succeeded', 'Succeeded'), ('Failed', 'Failed'), ('Cancelled', 'Cancelled')], max_length=9)),
                    ('result', models.TextField(blank=True)),
                    ('error_code', models.CharField(blank=True, max_length=64)),
                    ('completed_at', models.DateTimeField()),
                    ('policy', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='actions', to='marketplace.reviewpolicy')),
                ],
            ), migrations.CreateModel(
                name='ReviewResult',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('action_id', models.CharField(max_length=30)),
                    ('subject_type', models.CharField(choices=[('Assignment', 'Assignment'), ('HIT', 'Hit')], max_length=10)),
                    ('subject_id', models.CharField(max_length=30)),
                    ('question_id', models.CharField(blank=True, max_length=128)),
                    ('key', models.CharField(max_length=64)),
                    ('value', models.TextField()),
                    ('created_at', models.DateTimeField()),
                    ('policy', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='results', to='marketplace.reviewpolicy')),
                ],
            ), migrations.CreateModel(
                name='Session',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('public_id', models.CharField(default=marketplace.identifiers.new_entity_id, max_length=30, unique=True)),
                    ('submission_id', models.CharField(max_length=240)),
                    ('encrypted_participant_id', models.TextField(blank=True)),
                    ('external_study_id', models.CharField(blank=True, max_length=200)),
                    ('state', models.CharField(choices=[('started', 'Started'), ('finished', 'Finished'), ('returned', 'Returned'), ('timed_out', 'Timed out'), ('approved', 'Approved'), ('rejected', 'Rejected'), ('screened_out', 'Screened out')], default='started', max_length=12)),
                    ('outcome', models.CharField(blank=True, choices=[('completed', 'Completed'), ('no_consent', 'No consent'), ('incompatible_device', 'Incompatible device'), ('failed_attention', 'Failed attention checks'), ('screened_out', 'Screened out'), ('no_more_items', 'No items left'), ('follow_up', 'Follow-up study')], max_length=20)),
                    ('code', models.CharField(blank=True, max_length=64)),
                    ('arrived_at', models.DateTimeField()),
                    ('expires_at', models.DateTimeField()),
                    ('ended_at', models.DateTimeField(null=True)),
                    ('reported', models.CharField(blank=True, max_length=20)),
                    ('is_proven', models.BooleanField(default=False)),
                    ('connection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='sessions', to='marketplace.recruiterconnection')),
                    ('study', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='sessions', to='marketplace.recruitedstudy')),
                    ('worker', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='sessions', to='marketplace.workeraccount')),
                ],
                options={
                    'indexes': [models.Index(fields=['worker', '-id'], name='session_of_worker'), models.Index(condition=models.Q(('state', 'started')), fields=['expires_at'], name='session_open')],
                    'constraints': [models.UniqueConstraint(fields=('connection', 'submission_id'), name='one_session_per_submission'), models.CheckConstraint(condition=models.Q(models.Q(('code', ''), ('outcome', '')), models.Q(models.Q(('outcome', ''), _negated=True), models.Q(('code', ''), _negated=True)), _connector='OR'), name='an_outcome_has_its_code')],
                },
            ), migrations.CreateModel(
                name='RecruiterCharge',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('kind', models.CharField(choices=[('study', 'Study'), ('reward', 'Reward'), ('bonus', 'Bonus'), ('screen_out', 'Screen-out payment')], max_length=10)),
                    ('currency', models.CharField(max_length=3)),
                    ('amount', models.DecimalField(decimal_places=4, max_digits=14)),
                    ('external_id', models.CharField(max_length=100)),
                    ('created_at', models.DateTimeField()),
                    ('study', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='charges', to='marketplace.recruitedstudy')),
                    ('connection', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='charges', to='marketplace.recruiterconnection')),
                    ('session', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='charges', to='marketplace.session')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('connection', 'kind', 'external_id'), name='one_charge_per_external_id'), models.CheckConstraint(condition=models.Q(('amount__gt', 0)), name='a_charge_is_money')],
                },
            ), migrations.CreateModel(
                name='Intent',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('kind', models.CharField(choices=[('approve', 'Approve'), ('reject', 'Reject'), ('bonus', 'Pay a bonus'), ('message', 'Send a message'), ('doubt', 'Pay without work?')], max_length=7)),
                    ('key', models.CharField(max_length=120)),
                    ('text', models.TextField(blank=True)),
                    ('amount', models.DecimalField(decimal_places=2, max_digits=12, null=True)),
                    ('currency', models.CharField(blank=True, max_length=3)),
                    ('state', models.CharField(choices=[('written', 'To be done'), ('sent', 'Sent'), ('uncertain', 'Uncertain'), ('done', 'Done'), ('refused', 'Refused')], default='written', max_length=9)),
                    ('basis', models.JSONField(blank=True, default=dict)),
                    ('problem', models.TextField(blank=True)),
                    ('created_at', models.DateTimeField()),
                    ('sent_at', models.DateTimeField(null=True)),
                    ('done_at', models.DateTimeField(null=True)),
                    ('connection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='intents', to='marketplace.recruiterconnection')),
                    ('session', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='intents', to='marketplace.session')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('connection', 'key'), name='one_intent_per_key'), models.CheckConstraint(condition=models.Q(models.Q(('amount__gt', 0), ('kind', 'bonus'), models.Q(('currency', ''), _negated=True)), models.Q(models.Q(('kind', 'bonus'), _negated=True), ('amount', None), ('currency', '')), _connector='OR'), name='a_bonus_intent_has_its_amount')],
                },
            ), migrations.CreateModel(
                name='SessionDemographics',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('encrypted_answers', models.TextField()),
                    ('fetched_at', models.DateTimeField()),
                    ('session', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='demographics', to='marketplace.session')),
                ],
                options={
                    'verbose_name_plural': 'session demographics',
                },
            ), migrations.CreateModel(
                name='SessionItem',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('position', models.PositiveSmallIntegerField()),
                    ('assignment', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='session_item', to='marketplace.assignment')),
                    ('session', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='items', to='marketplace.session')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('session', 'position'), name='one_item_per_position')],
                },
            ), migrations.CreateModel(
                name='SurplusAnswer',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('answer', models.TextField()),
                    ('received_at', models.DateTimeField()),
                    ('assignment', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='surplus_answer', to='marketplace.assignment')),
                ],
            ), migrations.CreateModel(
                name='QualificationRequest',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('public_id', models.CharField(default=marketplace.identifiers.new_entity_id, max_length=30, unique=True)),
                    ('status', models.CharField(choices=[('Started', 'Started'), ('Submitted', 'Submitted'), ('Granted', 'Granted'), ('Rejected', 'Rejected'), ('Expired', 'Expired')], max_length=9)),
                    ('test', models.TextField(blank=True)),
                    ('answer_key', models.TextField(blank=True)),
                    ('answer', models.TextField(blank=True)),
                    ('reason', models.TextField(blank=True)),
                    ('created_at', models.DateTimeField()),
                    ('deadline', models.DateTimeField(null=True)),
                    ('submitted_at', models.DateTimeField(null=True)),
                    ('decided_at', models.DateTimeField(null=True)),
                    ('qualification_type', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='requests', to='marketplace.qualificationtype')),
                    ('worker', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='qualification_requests', to='marketplace.workeraccount')),
                ],
                options={
                    'indexes': [models.Index(fields=['qualification_type', 'status', 'id'], name='request_of_type')],
                    'constraints': [models.UniqueConstraint(condition=models.Q(('status__in', ['Started', 'Submitted'])), fields=('qualification_type', 'worker'), name='one_open_request_per_qualification_and_worker')],
                },
            ), migrations.CreateModel(
                name='PayoutMethod',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('method', models.CharField(max_length=80)),
                    ('encrypted_details', models.TextField()),
                    ('details_seal', models.CharField(blank=True, db_index=True, max_length=64)),
                    ('changed_at', models.DateTimeField()),
                    ('worker', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='payout_method', to='marketplace.workeraccount')),
                ],
            ), migrations.CreateModel(
                name='Payout',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('amount_usd', models.DecimalField(decimal_places=2, max_digits=14)),
                    ('paid_at', models.DateTimeField(null=True)),
                    ('batch', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='payouts', to='marketplace.payoutbatch')),
                    ('worker', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='payouts', to='marketplace.workeraccount')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('batch', 'worker'), name='one_payout_per_batch'), models.CheckConstraint(condition=models.Q(('amount_usd__gt', 0)), name='a_payout_is_money')],
                },
            ), migrations.CreateModel(
                name='Participant',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('seal', models.CharField(max_length=64)),
                    ('connection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='participants', to='marketplace.recruiterconnection')),
                    ('worker', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='participations', to='marketplace.workeraccount')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('connection', 'seal'), name='one_account_per_seal')],
                },
            ), migrations.CreateModel(
                name='LocationStatement',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('country', models.CharField(max_length=2)),
                    ('subdivision', models.CharField(blank=True, max_length=3)),
                    ('source', models.CharField(choices=[('worker', 'The worker'), ('operator', 'An operator')], max_length=8)),
                    ('network_country', models.CharField(blank=True, max_length=2)),
                    ('reason', models.CharField(blank=True, max_length=500)),
                    ('created_at', models.DateTimeField()),
                    ('worker', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='location_statements', to='marketplace.workeraccount')),
                ],
                options={
                    'indexes': [models.Index(fields=['worker', '-id'], name='location_of_worker')],
                },
            ), migrations.CreateModel(
                name='Invitation',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('token', models.CharField(default=marketplace.identifiers.new_token, max_length=32, unique=True)),
                    ('label', models.CharField(blank=True, max_length=100)),
                    ('created_at', models.DateTimeField()),
                    ('study', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='invitations', to='marketplace.recruitedstudy')),
                    ('worker', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='invitations', to='marketplace.workeraccount')),
                ],
            ), migrations.CreateModel(
                name='WorkerBlock',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('reason', models.TextField()),
                    ('created_at', models.DateTimeField()),
                    ('requester', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='worker_blocks', to='marketplace.requester')),
                    ('worker', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='blocks', to='marketplace.workeraccount')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('requester', 'worker'), name='one_block_per_requester_and_worker')],
                },
            ), migrations.CreateModel(
                name='WorkerMessage',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('subject', models.CharField(max_length=200)),
                    ('text', models.TextField()),
                    ('created_at', models.DateTimeField()),
                    ('read_at', models.DateTimeField(null=True)),
                    ('mail_attempts', models.PositiveSmallIntegerField(default=0)),
                    ('next_mail_at', models.DateTimeField(null=True)),
                    ('mailed_at', models.DateTimeField(null=True)),
                    ('requester', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='messages_to_workers', to='marketplace.requester')),
                    ('worker', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='messages', to='marketplace.workeraccount')),
                ],
                options={
                    'indexes': [models.Index(fields=['worker', '-id'], name='message_to_worker'), models.Index(condition=models.Q(('next_mail_at__isnull', False)), fields=['next_mail_at'], name='message_mail_due'), models.Index(condition=models.Q(('mail_attempts__gt', 0), ('mailed_at', None), ('next_mail_at', None)), fields=['created_at'], name='message_mail_given_up')],
                },
            )],
        ),
        migrations.RunPython(compress_fast, migrations.RunPython.noop),
    ]
