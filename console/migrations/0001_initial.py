import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('accounts', '__first__'),
    ]

    operations = [
        migrations.CreateModel(
            name='PagePreferences',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('has_letter_keys', models.BooleanField(default=True, help_text='Whether single letters decide on the review page.')),
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='page_preferences', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name_plural': 'page preferences',
            },
        ),
        migrations.CreateModel(
            name='StoredAnswer',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('holder', models.CharField(help_text='A token, or a person by session.', max_length=40)),
                ('address', models.CharField(help_text='Method and path.', max_length=500)),
                ('key', models.CharField(max_length=255)),
                ('fingerprint', models.CharField(help_text='Of the parameters.', max_length=64)),
                ('status', models.PositiveSmallIntegerField(default=0)),
                ('headers', models.JSONField(default=dict)),
                ('body', models.TextField(blank=True, help_text='JSON, as it was answered; encrypted.')),
                ('access', models.JSONField(default=dict, help_text='What was asked for, and seen; checked before it is given again.')),
                ('created_at', models.DateTimeField(auto_now_add=True, db_index=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('holder', 'address', 'key'), name='one_answer_under_a_key')],
            },
        ),
    ]
