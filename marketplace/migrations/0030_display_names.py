import re

from django.db import migrations, models
from django.utils.text import slugify


def leave_out_short_names(apps, schema_editor):
    """A team of this site is enrolled as "Travel Lab (travel-lab)", of which participants read the
    first part from now on."""
    requesters = apps.get_model("marketplace", "Requester").objects
    for requester in requesters.filter(name__endswith=")"):
        parts = re.fullmatch(r"(.+) \(([a-z0-9_-]+)\)", requester.name)
        if parts and parts[2] == slugify(parts[1])[:80]:
            requesters.filter(pk=requester.pk).update(display_name=parts[1])


class Migration(migrations.Migration):
    dependencies = [("marketplace", "0029_whom_recruiters_invite")]

    operations = [
        migrations.AddField(
            model_name="requester",
            name="display_name",
            field=models.CharField(blank=True, max_length=150),
        ),
        migrations.RunPython(leave_out_short_names, migrations.RunPython.noop, elidable=True),
    ]
