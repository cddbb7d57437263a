import json
from pathlib import Path
from typing import Any, get_args

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.management.plain_table import natural, positive
from presentation.files import write_whole
from presentation.progress import bar
from presentation.theme import rendered, themed
from simulation.experiments import EVALUATION_BY_MODE, Carry, Experiment, Qrels, Settings
from simulation.figures import pictures
from simulation.plans import CATALOGUES, RECOMMENDERS, USERS, Request, run_request, targets_of_qrels
from simulation.reports import report, report_text
from simulation.users import Mode
from stats.ranking import measure


class Command(BaseCommand):
    help = (
        "Simulate users who accept what annotators accepted, with conversational recommenders, "
        "and evaluate every turn. Works on plain files; needs no study and no database."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--catalogue", required=True, metavar="NAME", help=CATALOGUES)
        group = parser.add_mutually_exclusive_group(required=True)
        group.add_argument(
            "--qrels",
            type=Path,
            metavar="FILE",
            help="targets as topics, alternatives as documents",
        )
        group.add_argument(
            "--dialogues",
            type=Path,
            nargs=2,
            metavar="FILE",
            help="Fashion-AlterEval's alternatives and first items, by position in the catalogue",
        )
        parser.add_argument(
            "--starts",
            type=Path,
            metavar="FILE",
            help="CSV of target and start: the item shown first (one at random)",
        )
        parser.add_argument(
            "--captions",
            type=Path,
            metavar="FILE",
            help="people's relative captions, as JSON: critiques are in these words",
        )
        parser.add_argument(
            "--recommender",
            action="append",
            metavar="NAME",
            help=f"{RECOMMENDERS}; again for another (embedding)",
        )
        parser.add_argument(
            "--user",
            action="append",
            metavar="NAME",
            help=f"{USERS}; again for another (base, tol:3 and prob:3:0.75)",
        )
        parser.add_argument(
            "--mode",
            choices=get_args(Mode),
            default="paper",
            help="users and evaluation as in Fashion-AlterEval's article or in its program (paper)",
        )
        parser.add_argument(
            "--turn-base",
            type=int,
            choices=(0, 1),
            help="the first turn's number, which tolerances are counted from (the mode's)",
        )
        parser.add_argument(
            "--sticky",
            action="store_true",
            help="who switched stays with it (an item is chosen anew each turn)",
        )
        parser.add_argument(
            "--leave-hazard",
            type=float,
            default=0.0,
            metavar="P",
            help="the probability of leaving after each turn (0)",
        )
        parser.add_argument("--turns", type=positive, default=10, help="of each dialogue (10)")
        parser.add_argument(
            "--seed",
            type=natural,
            action="append",
            help="again for another: all is simulated once a seed (0)",
        )
        parser.add_argument(
            "--evaluate",
            choices=get_args(Qrels),
            help="which items are relevant; accepted: the target for SimBase, the target and its "
            "alternatives for the others, as in the article (the mode's)",
        )
        parser.add_argument(
            "--carry",
            choices=get_args(Carry),
            help="what counts at turns after a dialogue's end; one: every measure is 1, as in the "
            "article (the mode's)",
        )
        parser.add_argument(
            "--measure",
            action="append",
            metavar="NAME",
            help="again for another (nDCG@10, RR@10 and Success@1)",
        )
        parser.add_argument("--no-repeats", action="store_true", help="no item is shown twice")
        parser.add_argument(
            "--sensitivity",
            action="store_true",
            help="how conclusions move with qrels, carry, turn, share judged and user; in --json",
        )
        parser.add_argument(
            "--other-qrels",
            type=Path,
            action="append",
            default=[],
            metavar="FILE",
            help="of the same targets, such as another round's, for --sensitivity",
        )
        parser.add_argument("--log", type=Path, metavar="FILE", help="every turn as JSON Lines")
        parser.add_argument("--figures", type=Path, metavar="FOLDER", help="SVGs, by measure")
        parser.add_argument("--json", action="store_true", help="all numbers, for programs")

    def handle(self, *args: Any, log: Path | None, figures: Path | None, **options: Any) -> None:
        try:
            request = _request(options)
            experiment = run_request(request, progress=bar("simulate"))
            record = _record(request, experiment, options) if options["json"] else None
        except ValueError as error:
            raise CommandError(f"{error}.") from None
        if log is not None:
            logs = experiment.logs.items()
            rows = ({"recommender": name} | row for name, each in logs for row in each.rows())
            write_whole(log, (f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows))
        if figures is not None:
            figures.mkdir(parents=True, exist_ok=True)
            for name, picture in pictures(experiment).items():
                write_whole(figures / f"{name}.svg", [rendered(themed(picture), "svg")])
        if record is not None:
            record["reading"] = request.readings.plain()
            self.stdout.write(json.dumps(record, indent=1))
        else:
            self.stdout.write("\n".join([report_text(experiment), *request.readings.lines()]))


def _record(request: Request, experiment: Experiment, options: dict[str, Any]) -> dict[str, Any]:
    others = {
        path.name: targets_of_qrels(request, experiment.catalogue, path)
        for path in options["other_qrels"]
    }
    with_sensitivity = options["sensitivity"] or bool(others)
    return report(experiment, with_sensitivity=with_sensitivity, judged_otherwise=others)


def _request(options: dict[str, Any]) -> Request:
    choices: dict[str, Any] = {"leave_hazard": options["leave_hazard"]}
    if options["turn_base"] is not None:
        choices["turn_base"] = options["turn_base"]
    if options["sticky"]:
        choices["sticky"] = True
    names = options["measure"] or ["nDCG@10", "RR@10", "Success@1"]
    seeds = tuple(dict.fromkeys(options["seed"] or [0]))
    qrels, carry = EVALUATION_BY_MODE[options["mode"]]
    return Request(
        catalogue=options["catalogue"],
        qrels=options["qrels"],
        dialogues=options["dialogues"],
        starts=options["starts"],
        captions=options["captions"],
        recommenders=tuple(options["recommender"] or ["embedding"]),
        users=tuple(options["user"] or ["base", "tol:3", "prob:3:0.75"]),
        mode=options["mode"],
        choices=choices,
        settings=Settings(
            n_turns=options["turns"],
            seeds=seeds,
            repeats=not options["no_repeats"],
            measures=tuple(measure(name) for name in dict.fromkeys(names)),
            qrels=options["evaluate"] or qrels,
            carry=options["carry"] or carry,
        ),
    )
