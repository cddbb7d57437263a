

from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('marketplace', '0012_payees'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='ledgeraccount',
            name='ledger_account_has_its_owner',
        ),
        migrations.AddConstraint(
            model_name='assignment',
            constraint=models.CheckConstraint(condition=models.Q(('paid_by', 'ledger'), models.Q(('fee_usd', 0), ('paid_by', 'recruiter'), ('reward_usd', 0)), _connector='OR'), name='a_recruiters_assignment_promises_no_money'),
        ),
        migrations.AddConstraint(
            model_name='ledgeraccount',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('kind__in', ['outside', 'fees', 'payouts']), ('payee', None), ('requester', None), ('worker', None)), models.Q(('kind__in', ['available', 'held']), ('payee', None), ('requester__isnull', False), ('worker', None)), models.Q(('kind', 'earnings'), ('payee__isnull', False), ('requester', None), ('worker__isnull', False)), _connector='OR'), name='ledger_account_has_its_owner'),
        ),
        migrations.AddConstraint(
            model_name='workeraccount',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('paid_by', 'ledger'), ('payee_id__isnull', False)), models.Q(('paid_by', 'recruiter'), ('payee_id', None)), _connector='OR'), name='a_recruiters_participant_is_no_payee'),
        ),
    ]
