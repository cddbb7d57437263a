import json
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

from tests.annotation import importing, studies

# Options of files that a command writes.
WRITTEN = {
    *("output", "log", "figures", "alternatives", "save_vectors", "reasons", "provenance", "csv"),
    *("released_layout", "page"),
}
# Commands whose files are no data to import or to compute from.
NO_DATA = {
    "audit_collection": "the audit is itself the report of its files",
    "backup": "written",
    "export_dataset": "a folder, written",
    "export_datasheet": "a folder, written",
    "export_payouts": "written",
    "import_outcome_study": "a log of simulate",
    "import_participant_statuses": "decisions, of which each row is answered",
    "import_protocol": "a protocol",
    "import_switching_study": "a log of simulate",
    "mark_payouts_paid": "decisions, of which each row is answered",
    "mturk_bridge": "a folder of certificates",
    "pay_bonuses": "decisions, of which each row is answered",
    "publish_study": "a list of workers",
    "replay_crowd": "recorded answers, which are sent to the site",
    "restore": "a backup",
    "train_recommender": "needs torch; captions are read as by simulate",
}
OF_PAPERS = {"lmstyle_table", "published_studies", "replay_lmstyle", "reproduce"}
LABELS = "item,annotator,label,system,score\n"
LABELS += "".join(
    f"i{i},{who},{(i + n) % 3},s{i % 2},{i % 4}\n" for i in range(8) for n, who in enumerate("abc")
)
FILES = {
    "labels.csv": LABELS,
    "one.csv": "item,system,human,judge,again\n"
    + "".join(f"i{n},s{n % 2},{n % 5},{(n * 3) % 5},{(n * 2) % 5}\n" for n in range(40)),
    "components.csv": "item,annotator,label\n"
    + "".join(f"i{i},{who},{(i * 7 + ord(who)) % 5}\n" for i in range(6) for who in "abc"),
    "pilot.csv": "system,topic,value\n"
    + "".join(f"s{s},t{t},{(s * 3 + t * t) % 7}\n" for s in range(3) for t in range(5)),
    "q.qrels": "t1 0 d1 1\nt1 0 d2 0\nt2 0 d1 1\nt2 0 d3 0\n",
    "other.qrels": "t1 0 d1 0\nt1 0 d2 1\nt2 0 d1 1\nt2 0 d3 0\n",
    "judges.qrels": "t1 ann d1 1\nt1 bob d1 1\nt1 ann d2 0\nt1 bob d2 1\n",
    "a.run": "t1 Q0 d1 1 2 a\nt1 Q0 d2 2 1 a\nt2 Q0 d1 1 2 a\nt2 Q0 d3 2 1 a\nd1 Q0 d2 1 1 a\n",
    "b.run": "t1 Q0 d2 1 2 b\nt1 Q0 d1 2 1 b\nt2 Q0 d3 1 2 b\nt2 Q0 d1 2 1 b\n",
    "drawn.qrels": "".join(f"shoe-00000{n} 0 shoe-00001{n} 1\n" for n in range(5)),
    "starts.csv": "target,start\n" + "".join(f"shoe-00000{n},shoe-00002{n}\n" for n in range(5)),
    "weights.csv": "topic,target,probability,stratum\nt1,d1,.5,1\nt2,d2,.5,1\n",
    "groups.txt": "# a comment\na one\nb two\n",
    "targets.csv": "target,rank\nd1,1\nd2,2\nd3,3\nd4,4\n",
    "catalogue.csv": "docno,title\nd1,One\nd2,Two\nd3,Three\nd9,Nine\n",
    "names.txt": "boot\nclog\npump\nshoe\nsock\n",
    "excluded.txt": "d9\n\n",
    "pool.csv": "topic,target,docno\nt1,d9,d1\nt1,d9,d2\n",
    "terms.csv": "term,word\ncolour,red*\n",
    "responses.csv": "item,system,context,response\ni1,a,Hi,Hello\ni1,b,Hi,Bye\n",
    "judgments.csv": "item,annotator,value\ni1,ann,1\ni2,ann,2\ni3,ann,N/A\n",
    "alternatives.jsonl": '{"item": "t", "target": {"title": "A"}, '
    '"candidates": [{"key": "k", "title": "B"}]}\n',
    "batch.csv": "HITId,WorkerId,AssignmentStatus,Input.text,Input.a,Answer.good_a\n"
    "h,w,Approved,Hi,Ho,3\n",
    "pooled.csv": "Input.target1,Input.top1,HITId,top1\nboot,clog,h1,True\n",
    "arena.json": '[{"conv_id": "bot_c1", "dial_level_aggregated": {"understanding": 1}, '
    '"dialogue": [{"role": "USER", "utterance": "Hi"}, '
    '{"role": "ASST", "utterance": "Hello", "turn_level_aggregated": {}}]}]',
    "golden.csv": "question,golden_answer,bot\nWhy?,So.,No.\n",
    "scores.csv": "item,system,metric,value\ni1,a,bleu,1\ni1,b,bleu,2\n",
}
COMMANDS = {
    "aggregate": "{labels.csv} --item item --annotator annotator --value label --method majority",
    "agreement": "{labels.csv} --item item --annotator annotator --value label --level nominal",
    "alt_test": "{labels.csv} --item item --annotator annotator --value label --judge c "
    "--min-items 1",
    "compare_systems": "{labels.csv} --item item --annotator annotator --system system "
    "--value score",
    "correlate": "{one.csv} --item item --system system --human human --metric judge",
    "judge_drift": "{one.csv} --item item --before judge --after again",
    "prediction_powered": "{one.csv} --item item --human human --judge judge",
    "variance_components": "{components.csv} --item item --annotator annotator --value label",
    "compare_qrels": "--qrels x={q.qrels} --qrels y={other.qrels} --run {a.run} --run {b.run} "
    "--resamples 100 --draws 100",
    "evaluate_runs": "--qrels {q.qrels} --run {a.run} --run {b.run} --weights {weights.csv} "
    "--reusability --pool-depth 1 --groups {groups.txt} --machine {other.qrels}",
    "lint_pool": "{pool.csv} --catalogue {catalogue.csv} --allow short",
    "merge_assessors": "{judges.qrels} --output {written}",
    "pool_candidates": "--run a={a.run} --depth 1 --catalogue {catalogue.csv} "
    "--targets {targets.csv} --exclude {excluded.txt}",
    "power": "--pilot {pilot.csv} --budget 20",
    "sample_targets": "--n 2 --targets {targets.csv} --column rank --strata 2",
    "score": "{responses.csv} --metric length --output {written}",
    "export_qrels": "ticked --output {written} --released-layout {folder} --catalogue {names.txt}",
    "reason_terms": "ticked --terms {terms.csv}",
    "import_altereval": "{pooled.csv} --study s",
    "import_alternatives": "{alternatives.jsonl} --study s",
    "import_annotations": "{judgments.csv} --study s --from csv --item item "
    "--annotator annotator --value value",
    "import_crsarena_eval": "{arena.json} --study s",
    "import_golden_answers": "{golden.csv} --study s",
    "import_items": "{responses.csv} --study s",
    "import_judgments": "{judgments.csv} --study s",
    "import_mturk_batch": "{batch.csv} --study s",
    "import_responses": "{responses.csv} --study s",
    "import_scores": "{scores.csv} --study responses",
    "simulate": "--catalogue drawn:60 --qrels {drawn.qrels} --starts {starts.csv} --turns 2",
    # Their other tests read whole published data sets.
    "import_dstc9": "",
    "import_topical_chat": "",
}


def commands_with_files():
    for name, app in sorted(get_commands().items()):
        command = load_command_class(app, name)
        if not command.__module__.startswith("django."):
            parser = command.create_parser("manage.py", name)
            if any(_is_file(action) for action in parser._actions):
                yield name


def _is_file(action):
    is_read = action.dest not in WRITTEN and action.dest not in ("pythonpath", "protocol")
    return is_read and (action.type is Path or "FILE" in str(action.metavar))


def test_every_command_that_reads_a_file_is_listed():
    assert set(commands_with_files()) == {*NO_DATA, *COMMANDS, *OF_PAPERS}


@pytest.mark.django_db
@pytest.mark.parametrize("name", [name for name, words in COMMANDS.items() if words])
def test_the_report_is_in_the_json(name, tmp_path):
    paths = {file: tmp_path / file for file in FILES}
    for file, path in paths.items():
        path.write_text(FILES[file])
    if "ticked" in COMMANDS[name]:
        studies.ticked_study("ticked")
    if name == "import_scores":
        importing.command_output("import_responses", paths["responses.csv"], study="responses")
    words = COMMANDS[name].split()
    named = {f"{{{file}}}": str(path) for file, path in paths.items()}
    named |= {"{written}": str(tmp_path / "written"), "{folder}": str(tmp_path / "folder")}
    for key, value in named.items():
        words = [word.replace(key, value) for word in words]
    reading = json.loads(importing.command_output(name, *words, "--json"))["reading"]
    reports = reading if isinstance(reading, list) else [reading]
    assert reports
    for report in reports:
        n_left_out = sum(each["n"] for each in report["left_out"])
        assert report["n_rows"] == report["n_used"] + n_left_out > 0
    n_files = sum("{" in word for word in COMMANDS[name].replace("{written}", "").split())
    assert len(reports) == n_files - ("{folder}" in COMMANDS[name])
