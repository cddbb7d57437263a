#!/usr/bin/env python
"""Assay's command line. Whichever Python starts it, it runs in the .venv that `make` made."""

import importlib.util
import os
import sys

VENV = os.path.join(os.path.dirname(os.path.abspath(__file__)), ".venv")
# One of each kind that a Python with some Django of its own may lack.
LIBRARIES = ("django", "environ", "django_tasks", "boto3")


def continue_in_virtual_environment() -> None:
    """Start again with the virtual environment's Python, or say what to do."""
    python = os.path.join(VENV, "bin", "python")
    if os.path.exists(python) and os.path.realpath(sys.prefix) != os.path.realpath(VENV):
        os.execv(python, [python, *sys.argv])
    sys.stderr.write(
        f"Assay's libraries are not installed for {sys.executable}.\n"
        "`make run` installs them into .venv and starts the site; after that this command works, "
        "whichever Python it is started with.\n"
    )
    sys.exit(2)


if __name__ == "__main__":
    if not all(importlib.util.find_spec(name) for name in LIBRARIES):
        continue_in_virtual_environment()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    from config.commandline import main

    sys.exit(main(sys.argv))
