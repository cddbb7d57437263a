from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('marketplace', '0002_invitation_links'),
    ]

    operations = [
        migrations.AddField(
            model_name='hittype',
            name='estimated_seconds',
            field=models.PositiveIntegerField(null=True),
        ),
    ]
