"""The table of roles in docs/teams.md says what accounts/roles.py does.

python -m tests.accounts.test_documented_roles      writes it
"""

import os
import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "teams.md"
BEGIN = re.compile(r"(<!-- roles: .*? -->\n).*?(<!-- end of roles -->)", re.DOTALL)


def table():
    from accounts.roles import PERMISSIONS, Permission, Role

    head = ["may", *(role.value for role in Role)]
    rows = [
        [name.value.replace("_", " "), *("✓" if name in PERMISSIONS[role] else "" for role in Role)]
        for name in Permission
    ]
    lines = [head, ["---", *[":-:"] * len(Role)], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def with_table(text):
    return BEGIN.sub(lambda match: f"{match[1]}\n{table()}\n{match[2]}", text)


def test_the_documented_roles_are_those_there_are():
    text = PAGE.read_text(encoding="utf-8")
    assert BEGIN.search(text)
    assert with_table(text) == text


if __name__ == "__main__":
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
