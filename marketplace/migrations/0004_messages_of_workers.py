import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('marketplace', '0003_hittype_estimated_seconds'),
    ]

    operations = [
        migrations.AddField(
            model_name='workermessage',
            name='is_from_worker',
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name='workermessage',
            name='hit',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='messages', to='marketplace.hit'),
        ),
        migrations.AddIndex(
            model_name='workermessage',
            index=models.Index(condition=models.Q(('is_from_worker', True)), fields=['requester', 'id'], name='message_of_worker'),
        ),
    ]
