from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [("retrieval", "0002_pack_tables")]

    operations = [
        migrations.DeleteModel(name)
        for name in (
            *("PoolSummary", "CandidateSource", "RunPair", "WeightedResult", "EvaluationWeights"),
        )
    ]
