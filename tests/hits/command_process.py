"""A process that runs one management command as soon as it is let go.

    python -m tests.hits.command_process COMMAND ARGUMENT ...

It says "ready" on standard output once everything is loaded, and begins at a line on standard
input, so that several begin at the same moment.
"""

import os
import sys

import django


def main(words: list[str]) -> int:
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
    django.setup()
    from django.core.management import load_command_class
    from django.db import connection

    load_command_class("hits", words[0])
    connection.ensure_connection()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    from config.commandline import main as run

    return run(["manage.py", *words])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
