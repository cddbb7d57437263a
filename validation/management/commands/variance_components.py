from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from annotation.management.plain_table import LabelsCommand, reading_of
from annotation.readers.columns import refusing_values
from annotation.readers.label_tables import read_labels
from annotation.readers.policies import Reading
from annotation.readers.shapes import Columns
from presentation.numbers import plain_values
from stats.inference.generalisability import Decision, decision_study
from stats.inference.variance_components import RESIDUAL, Components, variance_components


class Command(LabelsCommand):
    help = (
        "Where the variation of ratings comes from (items, systems, annotators, what they "
        "share), and what more items or annotators would buy."
    )

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        reading = reading_of(options)
        result = components_of_file(file, self.columns(options), reading=reading)
        self.write_result(result, reading, options)


# Multiples of the study's items and annotators that a plan tries.
FACTORS = (1.0, 2.0, 4.0)


@dataclass(frozen=True)
class FileComponents:
    components: Components
    plans: tuple[Decision, ...]

    def record(self) -> dict[str, Any]:
        one = self.components
        return {
            "components": plain_values(one.components),
            "estimates": plain_values(one.raw),
            "confounded": one.confounded,
            "mean": one.mean,
            "levels": one.levels,
            "n_ratings": one.n_ratings,
            "balanced": one.balanced,
            "method": one.method,
            "plans": [plain_values(asdict(plan)) for plan in self.plans],
            "notes": list(one.notes),
        }

    def lines(self) -> Iterator[str]:
        total = sum(self.components.components.values())
        for name, value in self.components.components.items():
            share = f" ({value / total:.0%})" if total > 0 else ""
            yield f"{name.replace('_', ' x ')}: {value:.4g}{share}"
        compared = "systems" if "system" in self.components.levels else "items"
        for plan in self.plans:
            items = f"{plan.n_items} items, " if compared == "systems" else ""
            yield (
                f"With {items}{plan.n_annotators} annotators of each output: standard error of a "
                f"difference of two {compared} {plan.se_of_difference:.4g}, reliability "
                f"{plan.generalizability:.3f}."
            )
        yield from (f"Note: {note}." for note in self.components.notes)


def components_of_file(
    path: Path, columns: Columns, *, reading: Reading | None = None
) -> FileComponents:
    table = read_labels(
        path, columns, kind="number", reading=reading, has_systems=bool(columns.system)
    )
    with refusing_values(path):
        components = variance_components(
            table.items, table.annotators, table.values, systems=table.systems
        )
    return FileComponents(components, tuple(_plans(components)))


def _plans(components: Components) -> Iterator[Decision]:
    if not components.components.get(RESIDUAL, 0.0) > 0:  # nothing that more ratings would lower
        return
    levels = components.levels
    each = max(round(components.n_ratings / (levels["item"] * levels.get("system", 1))), 1)
    sizes = [(int(f * levels["item"]), each) for f in FACTORS] if "system" in levels else []
    sizes += [(levels["item"], each + more) for more in (0, 1, 3)]
    for n_items, n_annotators in dict.fromkeys(sizes):
        yield decision_study(components.components, n_items=n_items, n_annotators=n_annotators)
