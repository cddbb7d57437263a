
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('marketplace', '0016_no_more_channels'),
    ]

    operations = [
        migrations.CreateModel(
            name='Intent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('approve', 'Approve'), ('reject', 'Reject'), ('bonus', 'Pay a bonus'), ('message', 'Send a message')], max_length=7)),
                ('key', models.CharField(max_length=120)),
                ('text', models.TextField(blank=True)),
                ('amount', models.DecimalField(decimal_places=2, max_digits=12, null=True)),
                ('currency', models.CharField(blank=True, max_length=3)),
                ('state', models.CharField(choices=[('written', 'To be done'), ('sent', 'Sent'), ('uncertain', 'Uncertain'), ('done', 'Done'), ('refused', 'Refused')], default='written', max_length=9)),
                ('created_at', models.DateTimeField()),
                ('done_at', models.DateTimeField(null=True)),
                ('connection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='intents', to='marketplace.recruiterconnection')),
                ('session', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='intents', to='marketplace.session')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('connection', 'key'), name='one_intent_per_key'), models.CheckConstraint(condition=models.Q(models.Q(('amount__gt', 0), ('kind', 'bonus'), models.Q(('currency', ''), _negated=True)), models.Q(models.Q(('kind', 'bonus'), _negated=True), ('amount', None), ('currency', '')), _connector='OR'), name='a_bonus_intent_has_its_amount')],
            },
        ),
    ]
