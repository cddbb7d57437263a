import django.contrib.auth.models
import django.contrib.auth.validators
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.text
import django.utils.timezone
import new_tables
from decimal import Decimal
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
    ]

    operations = [
        new_tables.CreateModels(
            models=[migrations.CreateModel(
                name='AuditChain',
                fields=[
                    ('name', models.CharField(max_length=24, primary_key=True, serialize=False)),
                    ('length', models.PositiveBigIntegerField(default=0)),
                    ('last_hash', models.CharField(blank=True, max_length=64)),
                    ('seal', models.CharField(help_text='Of the end at the sealed length.', max_length=64)),
                    ('sealed_length', models.PositiveBigIntegerField(default=0)),
                ],
            ), migrations.CreateModel(
                name='Team',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('name', models.CharField(max_length=80, verbose_name='name')),
                    ('slug', models.SlugField(max_length=80, unique=True)),
                    ('wage_floor_usd', models.DecimalField(blank=True, decimal_places=2, help_text='Pages warn where work is estimated or measured to pay less an hour.', max_digits=6, null=True, validators=[django.core.validators.MinValueValidator(Decimal('0'))], verbose_name='least pay an hour')),
                    ('can_connect_this_site', models.BooleanField(default=False, help_text="Whether an operator created it, so that its managers may connect it to this site's marketplace although the site is not open to all requesters.")),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                ],
                options={
                    'ordering': ['name', 'pk'],
                },
            ), migrations.CreateModel(
                name='User',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('password', models.CharField(max_length=128, verbose_name='password')),
                    ('last_login', models.DateTimeField(blank=True, null=True, verbose_name='last login')),
                    ('is_superuser', models.BooleanField(default=False, help_text='Designates that this user has all permissions without explicitly assigning them.', verbose_name='superuser status')),
                    ('username', models.CharField(error_messages={'unique': 'A user with that username already exists.'}, help_text='Required. 150 characters or fewer. Letters, digits and @/./+/-/_ only.', max_length=150, unique=True, validators=[django.contrib.auth.validators.UnicodeUsernameValidator()], verbose_name='username')),
                    ('first_name', models.CharField(blank=True, max_length=150, verbose_name='first name')),
                    ('last_name', models.CharField(blank=True, max_length=150, verbose_name='last name')),
                    ('email', models.EmailField(blank=True, max_length=254, verbose_name='email address')),
                    ('is_staff', models.BooleanField(default=False, help_text='Designates whether the user can log into this admin site.', verbose_name='staff status')),
                    ('is_active', models.BooleanField(default=True, help_text='Designates whether this user should be treated as active. Unselect this instead of deleting accounts.', verbose_name='active')),
                    ('date_joined', models.DateTimeField(default=django.utils.timezone.now, verbose_name='date joined')),
                    ('is_read_only', models.BooleanField(default=False, help_text='To look around with, by many perhaps: it changes nothing, whatever its roles.')),
                    ('groups', models.ManyToManyField(blank=True, help_text='The groups this user belongs to. A user will get all permissions granted to each of their groups.', related_name='user_set', related_query_name='user', to='auth.group', verbose_name='groups')),
                    ('user_permissions', models.ManyToManyField(blank=True, help_text='Specific permissions for this user.', related_name='user_set', related_query_name='user', to='auth.permission', verbose_name='user permissions')),
                ],
                options={
                    'verbose_name': 'user',
                    'verbose_name_plural': 'users',
                    'abstract': False,
                    'constraints': [models.UniqueConstraint(django.db.models.functions.text.Lower('username'), name='unique_username_ignoring_case', violation_error_message='A user with that username already exists.')],
                },
                managers=[
                    ('objects', django.contrib.auth.models.UserManager()),
                ],
            ), migrations.CreateModel(
                name='AuditEntry',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('chain', models.CharField(max_length=24)),
                    ('position', models.PositiveBigIntegerField()),
                    ('at', models.DateTimeField()),
                    ('actor_name', models.CharField(blank=True, max_length=150)),
                    ('action', models.CharField(max_length=40)),
                    ('subject', models.CharField(blank=True, max_length=200)),
                    ('details', models.JSONField(blank=True, default=dict)),
                    ('previous_hash', models.CharField(blank=True, max_length=64)),
                    ('hash', models.CharField(max_length=64)),
                    ('seal', models.CharField(max_length=64)),
                    ('actor', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'verbose_name_plural': 'audit entries',
                    'ordering': ['chain', '-position'],
                    'constraints': [models.UniqueConstraint(fields=('chain', 'position'), name='audit_position_once')],
                },
            ), migrations.CreateModel(
                name='Membership',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('role', models.CharField(choices=[('owner', 'Owner'), ('manager', 'Manager'), ('researcher', 'Researcher'), ('adjudicator', 'Adjudicator'), ('analyst', 'Analyst'), ('auditor', 'Auditor')], max_length=12, verbose_name='role')),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to=settings.AUTH_USER_MODEL)),
                    ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to='accounts.team')),
                ],
                options={
                    'ordering': ['team', 'pk'],
                    'constraints': [models.UniqueConstraint(fields=('team', 'user'), name='one_role_a_member')],
                },
            ), migrations.CreateModel(
                name='ApiToken',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('name', models.CharField(max_length=80, verbose_name='name')),
                    ('prefix', models.CharField(help_text='By which people recognize it.', max_length=16)),
                    ('digest', models.CharField(max_length=64, unique=True)),
                    ('scopes', models.JSONField(default=list)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('expires_at', models.DateTimeField()),
                    ('last_used_at', models.DateTimeField(blank=True, null=True)),
                    ('revoked_at', models.DateTimeField(blank=True, null=True)),
                    ('created_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('user', models.ForeignKey(help_text='As whom it acts.', on_delete=django.db.models.deletion.CASCADE, related_name='api_tokens', to=settings.AUTH_USER_MODEL)),
                    ('team', models.ForeignKey(blank=True, help_text="Whose it is; a person's has none.", null=True, on_delete=django.db.models.deletion.CASCADE, related_name='api_tokens', to='accounts.team')),
                ],
                options={
                    'ordering': ['-pk'],
                },
            )],
        ),
    ]
