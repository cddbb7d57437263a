import random

import pandas as pd

from validation.analysis import Settings, report_from_tables
from validation.results import TableResults

QUESTION = "a_b & <script> 100%"
SYSTEMS = ("GPT_4", "Ünï|code 模型", "x</td>\\end{table}", "$r^2$ #1 ~")
METRICS = {"NLL_1": 0.6, "=BLEU*": 2.0, "constant": None}
CONDITIONS = ("Formal", "In{formal}")
SETTINGS = Settings(n_resamples=60, n_permutations=60, n_splits=4, n_worst=3)


def hostile_tables(n_items=16, seed=1):
    rng = random.Random(seed)
    judgments, scores = [], []
    for number in range(n_items):
        item, condition = f"d{number}", CONDITIONS[number % 2]
        for position, system in enumerate(SYSTEMS):
            good = position + rng.gauss(0, 1)
            judgments += [
                {
                    "question": question,
                    "condition": condition,
                    "item": item,
                    "system": system,
                    "annotator": person,
                    "value": round(good + rng.gauss(0, 1), 1),
                }
                for question in (QUESTION, "style")
                for person in ("Ann", "Bob", "Cem")
            ]
            scores += [
                {
                    "item": item,
                    "system": system,
                    "metric": metric,
                    "signature": f"{metric}|v:1",
                    "value": 1.0 if noise is None else good + noise * rng.gauss(0, 1),
                }
                for metric, noise in METRICS.items()
            ]
    return pd.DataFrame(judgments), pd.DataFrame(scores)


def hostile_content(settings=SETTINGS):
    return TableResults("hostile", report_from_tables(*hostile_tables(), settings))
