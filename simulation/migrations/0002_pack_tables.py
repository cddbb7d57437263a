import json
import zlib

from django.db import migrations, models

TABLES = ("comparisons", "causes", "switches", "improvements")


def plain(row, name):
    value = getattr(row, name)
    return value if value == value else None  # PostgreSQL stores NaN


def rows_of(version, table):
    for row in getattr(version, table).order_by("pk"):
        record = {}
        for field in row._meta.fields:
            if field.name in ("recommender", "user"):
                record[field.name] = getattr(row, field.name).name
            elif field.name not in ("id", "version"):
                record[field.name] = plain(row, field.name)
        yield record


def pack_tables(apps, schema_editor):
    versions = apps.get_model("simulation", "ExperimentVersion").objects.exclude(finished_at=None)
    for version in versions.iterator():
        record = {table: list(rows_of(version, table)) for table in TABLES}
        for name, is_fault in (("notes", False), ("faults", True)):
            texts = version.notes.filter(is_fault=is_fault).order_by("pk")
            record[name] = list(texts.values_list("text", flat=True))
        version.packed_record = zlib.compress(json.dumps(record, allow_nan=False).encode())
        version.save(update_fields=["packed_record"])


class Migration(migrations.Migration):

    dependencies = [("simulation", "0001_initial")]

    operations = [
        migrations.AddField("experimentversion", "packed_record", models.BinaryField(null=True)),
        migrations.RunPython(pack_tables, migrations.RunPython.noop),
    ]
