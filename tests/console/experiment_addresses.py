"""The addresses of experiments and of trained recommenders, and what each needs; whoever adds one
adds a line here."""

from django.urls import reverse

from accounts.roles import Permission
from simulation.models import StoredCatalogue, StoredRecommender

PAGES_OF_AN_EXPERIMENT = {
    **dict.fromkeys(["experiment", "experiment-progress", "experiment-picture"], Permission.VIEW),
    "experiment-download": Permission.EXPORT,
    "experiment-delete": Permission.OWN,
    **dict.fromkeys(["recommender", "recommender-progress", "catalogue"], Permission.VIEW),
    "catalogue-download": Permission.EXPORT,
}
ACTIONS_OF_AN_EXPERIMENT = {
    **dict.fromkeys(["experiment-stop", "experiment-again"], Permission.ANALYSE),
    **dict.fromkeys(["recommender-stop", "recommender-again"], Permission.ANALYSE),
    "recommender-delete": Permission.EDIT,
    "catalogue-delete": Permission.EDIT,
}
# For anybody signed in.
EXPERIMENTS = {"experiments", "new-experiment", "recommenders", "new-recommender", "catalogues"}
PARTS: dict[str, dict[str, object]] = {
    "experiment-progress": {"number": 1},
    "experiment-stop": {"number": 1},
    "experiment-again": {"number": 1},
    "experiment-picture": {"chart": "turns", "form": "json"},
    "experiment-download": {"name": "results.csv"},
}
OF_AN_EXPERIMENT = {
    name: {"key": 1} | ({"name": "items.csv"} if name == "catalogue-download" else {})
    if name.startswith(("recommender", "catalogue"))
    else {"slug": "shoes"} | PARTS.get(name, {})
    for name in PAGES_OF_AN_EXPERIMENT | ACTIONS_OF_AN_EXPERIMENT
}


def address_of_experiment(name: str) -> str:
    """An address of the experiment `shoes`, or of the first recommender or catalogue."""
    parts = dict(OF_AN_EXPERIMENT[name])
    if "key" in parts:
        rows = StoredCatalogue if name.startswith("catalogue") else StoredRecommender
        parts["key"] = rows.objects.order_by("pk").values_list("pk", flat=True)[0]
    return reverse(f"console:{name}", kwargs=parts)
