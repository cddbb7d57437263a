import json
import zlib

from django.db import migrations


def values_of(row):
    return {
        field.name: getattr(row, field.name)
        for field in row._meta.fields
        if field.name not in ("id", "version")
    }


def pack_pools(apps, schema_editor):
    for summary in apps.get_model("retrieval", "PoolSummary").objects.select_related("version"):
        version = summary.version
        rows = version.candidate_sources.order_by("pk")
        record = json.dumps({"sources": list(map(values_of, rows))}, allow_nan=False)
        version.facts = {**version.facts, **values_of(summary)}
        version.packed_record = zlib.compress(record.encode())
        version.save(update_fields=["facts", "packed_record"])


class Migration(migrations.Migration):

    dependencies = [("results", "0001_initial"), ("retrieval", "0001_initial")]

    operations = [migrations.RunPython(pack_pools, migrations.RunPython.noop)]
