import random

import pandas as pd

from validation import analysis, results

QUESTION = "a_b & <script> 100%"
SYSTEMS = ("GPT_4", "Ünï|code 模型", "x</td>\\end{table}", "$r^2$ #1 ~")
METRICS = {"NLL_1": 0.6, "=BLEU*": 2.0, "constant": None}
CONDITIONS = ("Formal", "In{formal}")
SETTINGS = analysis.Settings(n_resamples=60, n_permutations=60, n_splits=4, n_worst=3)


def hostile_tables(n_items=16, seed=1):
    rng = random.Random(seed)
    judgments, scores = [], []
    for number in range(n_items):
        item, condition = f"d{number}", CONDITIONS[number % 2]
        for position, system in enumerate(SYSTEMS):
            good = position + rng.gauss(0, 1)
            judgments += [
                (question, condition, item, system, person, round(good + rng.gauss(0, 1), 1))
                for question in (QUESTION, "style")
                for person in ("Ann", "Bob", "Cem")
            ]
            scores += [
                (item, system, metric, good + noise * rng.gauss(0, 1) if noise else 1.0)
                for metric, noise in METRICS.items()
            ]
    columns = ["question", "condition", "item", "system", "annotator", "value"]
    table = pd.DataFrame(scores, columns=["item", "system", "metric", "value"])
    table["signature"] = table["metric"] + "|v:1"
    return pd.DataFrame(judgments, columns=columns), table


def hostile_content(settings=SETTINGS):
    return results.TableResults("hostile", analysis.report_from_tables(*hostile_tables(), settings))
