"""Entries of the audit log and the ends of its chains are sealed; those there are, as they are."""

from django.db import migrations, models

from encryption import seal

PURPOSE = "audit log"
CHUNK = 1000


def seal_what_is_there(apps, schema_editor):
    entries = apps.get_model("accounts", "AuditEntry").objects
    unsealed = []
    for entry in entries.order_by("pk").only("hash").iterator():
        entry.seal = seal(f'["entry", "{entry.hash}"]', purpose=PURPOSE)
        unsealed.append(entry)
        if len(unsealed) == CHUNK:
            entries.bulk_update(unsealed, ["seal"])
            unsealed.clear()
    entries.bulk_update(unsealed, ["seal"])
    for chain in apps.get_model("accounts", "AuditChain").objects.all():
        end = f'["end", "{chain.name}", {chain.length}, "{chain.last_hash}"]'
        chain.seal, chain.sealed_length = seal(end, purpose=PURPOSE), chain.length
        chain.save(update_fields=["seal", "sealed_length"])


class Migration(migrations.Migration):
    dependencies = [("accounts", "0002_teams")]

    operations = [
        migrations.AddField(
            model_name="auditchain",
            name="seal",
            field=models.CharField(
                default="", help_text="Of the end at the sealed length.", max_length=64
            ),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="auditchain",
            name="sealed_length",
            field=models.PositiveBigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="auditentry",
            name="seal",
            field=models.CharField(default="", max_length=64),
            preserve_default=False,
        ),
        migrations.RunPython(seal_what_is_there, migrations.RunPython.noop),
    ]
