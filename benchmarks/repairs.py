"""Whether tests notice a repair that is undone: ``python -m benchmarks.repairs``.

Each takes back one repair of what once misled, lost something or paid twice, in a copy of the
checkout; the tests named with it must then fail. tests/marketplace/test_mutants.py checks that
each can still be applied.
"""

import sys

from benchmarks.mutants import Mutant, main

CUT_ANSWERS = "tests/hits/test_cut_answers.py"
DEPOSITS = "tests/marketplace/test_ledger.py"
KEYS = "tests/config/test_secret_keys.py"
LIMITS = "tests/accounts/test_sign_in_limits.py"

REPAIRS = (
    Mutant(
        "rating page: names of all questions collapse",
        "hits/templatetags/worker_page.py",
        "f\"{candidate}-{question['id']}\"",
        '""',
        "tests/hits/test_worker_page_kinds.py",
        "every_control_of_every_kind_is_announced",
    ),
    Mutant(
        "launch: the second does not look for the first",
        "hits/plans.py",
        "if earlier := _earlier_batch(draft, beside, part):",
        "if (earlier := _earlier_batch(draft, beside, part)) and not draft:",
        "tests/hits/test_launch_plans.py",
        "same_launch",
    ),
    Mutant(
        "sending: what others sent is counted too",
        "hits/decisions.py",
        "if not set_status(assignment=assignment, status=status):",
        "if set_status(assignment=assignment, status=status) is None:",
        "tests/hits/test_at_the_same_moment.py",
        "another_run_sent",
    ),
    Mutant(
        "keys: a server starts without a SECRET_KEY",
        "config/variables.py",
        'require(key, _refusal("SECRET_KEY is not set", MAKE_KEY))',
        "if not key:\n        return DEVELOPMENT_KEY, fallbacks",
        KEYS,
        "without_keys_of_its_own",
    ),
    Mutant(
        "keys: a published SECRET_KEY will do",
        "config/variables.py",
        "not any(map(is_published, (key, *fallbacks))),",
        "key,",
        KEYS,
        "server_refuses",
    ),
    Mutant(
        "keys: former ENCRYPTION_KEYS open nothing",
        "encryption/__init__.py",
        "for key in settings.ENCRYPTION_KEYS])",
        "for key in settings.ENCRYPTION_KEYS[:1]])",
        "tests/marketplace/test_secrets.py",
        "three_steps",
    ),
    Mutant(
        "deposits: a form that is sent twice pays twice",
        "marketplace/money/transfers.py",
        "own.filter(form_token=form_token).first() if form_token else None",
        "None",
        DEPOSITS,
        "sent_twice",
    ),
    Mutant(
        "deposits: a reversed one may be reversed again",
        "marketplace/money/transfers.py",
        "if deposit.reversal_id is not None:",
        "if deposit.pk is None:",
        DEPOSITS,
        "taken_out_again_once",
    ),
    Mutant(
        "deposits: none in the audit log",
        "marketplace/money/transfers.py",
        '"requester.deposit",',
        '"requester.other",',
        DEPOSITS,
        "audit_log",
    ),
    Mutant(
        "answers: one without its body is whole",
        "hits/endpoints.py",
        "    if member not in answer:\n        return False",
        "    if member not in answer:\n        return True",
        CUT_ANSWERS,
        "approved_once",
    ),
    Mutant(
        "collecting: always from the first HIT on",
        "hits/collect.py",
        "open_hits.uncollected_since(since or timezone.now() - RESUMED_WITHIN).select_related(",
        "open_hits.select_related(",
        CUT_ANSWERS,
        "where_it_stopped",
    ),
    Mutant(
        "sign-in: one password may be tried on many names",
        "accounts/adapter.py",
        '("login_failed", f"{username}\\0{address}"), ',
        "",
        LIMITS,
        "many_names",
    ),
    Mutant(
        "sign-in: a known browser is kept out by strangers",
        "accounts/adapter.py",
        "if browser is not None:",
        "if browser is not None and not username:",
        LIMITS,
        "known_browsers_alone",
    ),
    Mutant(
        "headers: private pages are stored",
        "config/middleware.py",
        "if name in request.COOKIES or name in response.cookies:",
        "if not name:",
        "tests/config/test_headers.py",
        "strict_policy",
    ),
    Mutant(
        "headers: scripts from anywhere",
        "config/settings.py",
        '"script-src": [SELF, NONCE],',
        '"script-src": [SELF, NONCE, "https:"],',
        "tests/config/test_headers.py",
        "strict_policy",
    ),
    Mutant(
        "countries: any code will do",
        "hits/requirements.py",
        "    if code in _country_codes():\n        return None",
        "    if code:\n        return None",
        "tests/hits/test_exclusions.py",
        "requirements_that_no_worker_meets",
    ),
    Mutant(
        "exports: submissions without comments",
        "hits/studies.py",
        '    "comment": "comment",\n',
        "",
        "tests/hits/test_exports.py",
        "record_holds",
    ),
    Mutant(
        "environment: SITE_URL is forgotten",
        "config/environment.py",
        'REMEMBERED = ("SITE_URL", "DATABASE_URL",',
        'REMEMBERED = ("DATABASE_URL",',
        "tests/console/test_environment.py",
        "remembered",
    ),
)

if __name__ == "__main__":
    sys.exit(main(REPAIRS))
