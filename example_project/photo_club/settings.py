"""Settings of the photo club; ``django_nobroker`` needs two of them.

They are the line in ``INSTALLED_APPS`` and ``TASKS``. Everything that the site
writes lies in one folder, ``var/``, or in the one that PHOTO_CLUB_VAR names.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import django

from photo_club.secret_key import stored_key

BASE_DIR = Path(__file__).resolve().parent.parent
VAR = Path(os.environ.get("PHOTO_CLUB_VAR") or BASE_DIR / "var").resolve()

# --- Background jobs ---------------------------------------------------------

TASKS: dict[str, dict[str, Any]] = {
    "default": {
        "BACKEND": "django_nobroker.backends.LogBackend",
        "OPTIONS": {
            "DIRECTORY": VAR / "jobs",
            # A killed worker's job is back after this many seconds. The default
            # is more patient; here somebody may be watching.
            "VISIBILITY_TIMEOUT": 5.0,
        },
    }
}

INSTALLED_APPS = [
    "photo_club",
    "members",
    "gallery",
    "membership",
    "demo",
    "django_nobroker",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
]
if django.VERSION < (6, 0):
    # Django's Tasks API came with 6.0; before, it is this package.
    INSTALLED_APPS.append("django_tasks")

# --- What the jobs work with -------------------------------------------------

MAIL_DIRECTORY = VAR / "mail"
DEFAULT_FROM_EMAIL = "Lantern Photo Club <club@lantern.example>"
if django.VERSION >= (6, 1):
    MAILERS = {
        "default": {
            "BACKEND": "django.core.mail.backends.filebased.EmailBackend",
            "OPTIONS": {"file_path": MAIL_DIRECTORY},
        }
    }
else:
    EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    EMAIL_FILE_PATH = MAIL_DIRECTORY

MEDIA_ROOT = VAR / "media"
MEDIA_URL = "media/"

PAYMENT_LEDGER = VAR / "payments.json"

# --- The usual ---------------------------------------------------------------

# Made at the first start and kept in var/: no two clones share one.
SECRET_KEY = stored_key(VAR / "secret_key")
DEBUG = os.environ.get("PHOTO_CLUB_DEBUG", "1") == "1"
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]"]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "photo_club.urls"
WSGI_APPLICATION = "photo_club.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": VAR / "db.sqlite3",
        "OPTIONS": {
            # The site and the worker write to one file: readers do not wait for
            # writers, and writers wait for each other instead of failing.
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
        },
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

PASSWORDS = "django.contrib.auth.password_validation"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"{PASSWORDS}.UserAttributeSimilarityValidator"},
    {"NAME": f"{PASSWORDS}.MinimumLengthValidator"},
    {"NAME": f"{PASSWORDS}.CommonPasswordValidator"},
    {"NAME": f"{PASSWORDS}.NumericPasswordValidator"},
]
LOGIN_URL = "members:log-in"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "home"

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "static/"

TEST_RUNNER = "photo_club.testing.ExampleRunner"
