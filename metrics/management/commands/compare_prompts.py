import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.management.plain_table import natural
from annotation.models import Study
from metrics.management.options import some_draws
from metrics.score_comparisons import ALL, PromptEffect, prompt_effects, system_scores
from presentation.numbers import plain_values


class Command(BaseCommand):
    help = (
        "Compare what metrics say of systems' answers under two prompts: each system's means, and "
        "the difference as a paired test over the questions (t, Wilcoxon, bootstrap interval)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="SLUG")
        parser.add_argument(
            "--prompts",
            nargs=2,
            default=("standard", "enhanced"),
            metavar=("FIRST", "SECOND"),
            help="conditions of the study",
        )
        parser.add_argument("--resamples", type=some_draws, default=10_000)
        parser.add_argument("--seed", type=natural, default=0)
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, study: str, **options: Any) -> None:
        compared = Study.objects.named(study)
        effects = prompt_effects(
            compared,
            prompts=tuple(options["prompts"]),
            n_resamples=options["resamples"],
            seed=options["seed"],
        )
        scores = system_scores(compared)
        record = {
            "systems": [plain_values(score) for score in scores],
            "prompts": [effect.record() for effect in effects],
        }
        text = json.dumps(record, indent=1) if options["json"] else _text(scores, effects)
        self.stdout.write(text)


def _text(scores: list[dict[str, Any]], effects: list[PromptEffect]) -> str:
    lines = [f"{'metric':20} {'system':20} {'prompt':10}   mean      n"]
    lines += [
        "{metric:20} {system:20} {prompt:10} {mean:7.3f} {n:6}".format(
            **row, prompt=row["condition"] or "all"
        )
        for row in scores
    ]
    lines += ["", f"{'metric':20} {'system':20} difference, interval, p (t), p (Wilcoxon), pairs"]
    return "\n".join([*lines, *(_effect(row) for row in effects)])


def _effect(row: PromptEffect) -> str:
    difference = row.difference
    interval = f"[{difference.ci_low:+.3f}, {difference.ci_high:+.3f}]"
    named = f"{row.metric:20} {row.system if row.system != ALL else 'all':20}"
    reason = f" ({difference.reason})" if difference.reason else ""
    tests = f"{difference.t_p:.2g} {difference.wilcoxon_p:.2g}"
    return f"{named} {difference.mean:+.3f} {interval} {tests} {difference.n_pairs}{reason}"
