import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# One process imports what each run needs, and a fork of it has each environment.
FORKS = """
import json, os, sys
import config.commandline, environ, rest_framework.settings
program, environments = sys.argv[1], json.loads(sys.argv[2])
ended = []
for environment in environments:
    reading, writing = os.pipe()
    if not (child := os.fork()):
        os.dup2(writing, 1)
        os.dup2(writing, 2)
        os.environ.update(environment)
        try:
            code = config.commandline.main(json.loads(program))
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", flush=True)
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as output:
        text = output.read()
    ended.append([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text])
print(json.dumps(ended))
"""


def run_python(*arguments, **environment):
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "config.settings"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def manage_in_each(*arguments, environments, **common):
    """The exit code and the output of `manage.py ARGUMENTS` in each environment.

    Many times as fast as a process each, which would import Django again.
    """
    words = json.dumps(["manage.py", *arguments])
    done = run_python("-c", FORKS, words, json.dumps(environments), **common)
    assert done.returncode == 0, done.stderr
    return [(code, text) for code, text in json.loads(done.stdout)]
