import re

from django.db import connection

WRITE = re.compile(r'\s*(INSERT|UPDATE|DELETE)(?: OR \w+)?(?: INTO| FROM)? "?(\w+)"?')
# What the site remembers of a browser: its session, and messages that it has not shown yet.
OF_BROWSERS = {"django_session", "usersessions_usersession"}


def changed_tables(send, *args, **options):
    changed = set()

    def watch(execute, sql, params, many, context):
        result = execute(sql, params, many, context)
        # SQLite does not count the rows of an insertion that returns their keys.
        if (write := WRITE.match(sql)) and (write[1] == "INSERT" or context["cursor"].rowcount):
            changed.add(write[2])
        return result

    with connection.execute_wrapper(watch):
        send(*args, **options)
    return changed - OF_BROWSERS
