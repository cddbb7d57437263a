"""The one border where errors become messages: a person never sees a traceback
for something a person can mend."""

import errno
import json
import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from django.db.utils import DatabaseError

from error_codes import CodedError, InvalidValue
from presentation.text_tables import printable
from work.supervision import end_with_supervisor

BAD_INPUT = 2
# How SQLite and PostgreSQL's driver begin when there is nothing to talk to.
UNREACHABLE = (
    "unable to open database file",
    "file is not a database",
    "connection failed",
    "failed to resolve host",
)
# How they begin where the disk is full.
FULL = ("database or disk is full", "disk I/O error", "could not extend file", "could not write")
UNMIGRATED = ("no such table", "does not exist", "no such column")
# Commands of before, and what to run instead.
MOVED = {
    "fake_prolific": "python -m benchmarks.fake_prolific",
    "check_prolific_schema": "python -m benchmarks.fake_prolific.drift",
}


def main(argv: list[str]) -> int:
    end_with_supervisor()
    if problem := _problem_of(argv):
        return _refuse(problem)
    try:
        execute_from_command_line(argv)
    except ImproperlyConfigured as error:
        return _refuse(str(error))
    except DatabaseError as error:
        if (message := _database_message(error)) is None:
            raise
        return _refuse(message)
    except Exception as error:
        from redis.exceptions import RedisError  # for few sites, and slow to import

        if isinstance(error, RedisError):
            return _refuse(f"The Redis that REDIS_URL names cannot be used: {error}")
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return _refuse(
                f"A disk is full: {error}. Make room where the command writes (the folder of "
                "OBJECTS_URL, or `output`), and run it again."
            )
        # A value that a function cannot use and no command explained is a fault of the code.
        if not isinstance(error, CodedError) or isinstance(error, InvalidValue):
            raise
        content = {"error": {"code": error.code, "message": str(error)}}
        return _refuse(json.dumps(content) if "--json" in argv else str(error))
    return 0


def _problem_of(argv: list[str]) -> str:
    for argument in argv:
        # Bytes that are not UTF-8 come in as lone surrogates, which cannot be printed or stored.
        if any("\ud800" <= character <= "\udfff" for character in argument):
            return f"The argument {os.fsencode(argument)!r} is not UTF-8."
    moved = MOVED.get("".join(argv[1:2]))
    return f"This command has moved. Run `{moved}`." if moved else ""


def _database_message(error: DatabaseError) -> str | None:
    text = " ".join(str(error).split())
    if text.startswith(UNREACHABLE):
        return f"The database that DATABASE_URL names cannot be opened: {text}"
    if text.startswith(FULL):
        return (
            f"The disk of the database cannot be written to: {text}. Make room on it, and run the "
            "command again; what was not finished is not stored."
        )
    if any(words in text for words in UNMIGRATED):
        return "The database has no tables yet, or old ones. Run `python manage.py migrate` first."
    return None


def _refuse(message: str) -> int:
    # Print what is wrong; names in it come from files that others wrote.
    sys.stderr.write(f"{printable(message)}\n")
    return BAD_INPUT
