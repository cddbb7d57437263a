"""Prints the schema of the database that DATABASE_URL names, after making it: `whole` as the site
does, or `stepwise` by every migration. A program of its own: a test's database is made already."""

import json
import os
import sys
from typing import Any

import django

PARTS_OF_POSTGRESQL = {
    "columns": """
        SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
               a.attidentity, a.attcompression, pg_get_expr(d.adbin, d.adrelid), l.collname
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
        LEFT JOIN pg_collation l ON l.oid = a.attcollation
        WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
          AND a.attnum > 0 AND NOT a.attisdropped
          -- Django's own: by its migrations a number of this site's kind, by its model not.
          AND NOT (c.relname = 'auth_group_permissions' AND a.attname = 'id')""",
    "constraints": """
        SELECT conrelid::regclass::text, contype, pg_get_constraintdef(oid)
        FROM pg_constraint WHERE connamespace = 'public'::regnamespace""",
    "indexes": """
        SELECT tablename, regexp_replace(indexdef, 'INDEX \\S+ ON', 'INDEX ON')
        FROM pg_indexes WHERE schemaname = 'public'""",
}


def rows(statement: str) -> list[Any]:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(statement)
        return sorted([repr(row) for row in cursor.fetchall()])


def definitions(statement: str) -> list[str]:
    """The columns and constraints of a CREATE TABLE, whatever their order."""
    inner, parts, depth, start = statement[statement.index("(") + 1 : -1], [], 0, 0
    for at, sign in enumerate(inner):
        depth += (sign == "(") - (sign == ")")
        if sign == "," and not depth:
            parts.append(inner[start:at])
            start = at + 1
    return sorted(part.strip() for part in [*parts, inner[start:]])


def schema() -> dict[str, Any]:
    from django.db import connection

    if connection.vendor == "postgresql":
        return {name: rows(statement) for name, statement in PARTS_OF_POSTGRESQL.items()}
    with connection.cursor() as cursor:
        cursor.execute("SELECT type, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        made = cursor.fetchall()
    tables = {name: definitions(sql) for kind, name, sql in made if kind == "table"}
    indexes = [sql.split(" ON ", 1)[1] for kind, _name, sql in made if kind == "index"]
    unique = [sql.startswith("CREATE UNIQUE") for kind, _name, sql in made if kind == "index"]
    return {"tables": tables, "indexes": sorted(map(list, zip(indexes, unique, strict=True)))}


if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
    django.setup()
    from django.core.management import call_command
    from django.core.management.commands import migrate
    from django.db import connection

    if connection.vendor == "sqlite":  # nobody needs it after a power cut
        connection.settings_dict["OPTIONS"]["init_command"] += " PRAGMA synchronous=OFF;"
    call_command("migrate" if sys.argv[1] == "whole" else migrate.Command(), verbosity=0)
    names = rows("SELECT app, name FROM django_migrations")
    json.dump(schema() | {"migrations": names}, sys.stdout)
