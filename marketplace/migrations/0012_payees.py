from django.db import migrations
from django.db.models import F, OuterRef, Subquery


def name_payees(apps, editor):
    """Every worker there is was paid by the ledger, and is its payee under the Worker ID."""
    workers = apps.get_model("marketplace", "WorkerAccount").objects
    workers.update(payee_id=F("worker_id"))
    payee = Subquery(workers.filter(pk=OuterRef("worker_id")).values("payee_id")[:1])
    accounts = apps.get_model("marketplace", "LedgerAccount").objects
    accounts.filter(kind="earnings").update(payee=payee)


class Migration(migrations.Migration):

    dependencies = [("marketplace", "0011_who_pays")]

    operations = [migrations.RunPython(name_payees, migrations.RunPython.noop)]
