"""Sign lengths in characters by their unit: they bore the signature of lengths in words."""

from django.db import migrations

CHARACTERS = "length_characters"
AS_WORDS = "length|unit:words|tokenizer:unicode|version:1"
SIGNATURE = "length|unit:characters|version:1"


def sign_characters(apps, schema_editor):
    runs = apps.get_model("metrics", "ScoringRun").objects.using(schema_editor.connection.alias)
    runs.filter(metric=CHARACTERS, signature=AS_WORDS).update(signature=SIGNATURE)


def sign_as_words(apps, schema_editor):
    runs = apps.get_model("metrics", "ScoringRun").objects.using(schema_editor.connection.alias)
    runs.filter(metric=CHARACTERS, signature=SIGNATURE).update(signature=AS_WORDS)


class Migration(migrations.Migration):
    dependencies = [("metrics", "0003_judge_connections_and_scoring_requests")]

    operations = [migrations.RunPython(sign_characters, sign_as_words)]
