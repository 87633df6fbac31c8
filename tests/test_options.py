"""Options of a backend: defaults, values and faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from django_nobroker.options import Options, OptionsError, nearest, read_options
from django_nobroker.retry import BackoffPolicy

HERE = Path("/srv/jobs")


def faults_of(**given):
    with pytest.raises(OptionsError) as caught:
        read_options(given, HERE)
    return [str(fault) for fault in caught.value.faults]


def test_the_defaults_are_those_of_the_documentation():
    assert read_options({}, HERE) == Options(
        directory=HERE,
        fsync=True,
        max_attempts=5,
        visibility_timeout=30.0,
        backoff=BackoffPolicy(base=1.0, factor=2.0, max_delay=300.0, jitter=0.5),
        max_pending=None,
        result_ttl=86400.0,
        dead_ttl=None,
        queues=(),
        index_directory=None,
        file_mode=0o660,
        group=None,
        enqueue_on_commit=False,
        job_id_ttl=86400.0,
        full_timeout=0.0,
        test=None,
        admin_redact=(
            "password",
            "passwd",
            "secret",
            "token",
            "api_key",
            "authorization",
        ),
    )


def test_every_option_can_be_given():
    options = read_options(
        {
            "DIRECTORY": "elsewhere",
            "FSYNC": False,
            "MAX_ATTEMPTS": 1,
            "VISIBILITY_TIMEOUT": 2,
            "BACKOFF": {"base": 5},
            "MAX_PENDING": 10,
            "RESULT_TTL": 0,
            "DEAD_TTL": 7,
            "QUEUES": {"emails": {"MAX_ATTEMPTS": 3}},
            "INDEX_DIRECTORY": Path("/run/index"),
            "FILE_MODE": 0o600,
            "GROUP": "www-data",
            "ENQUEUE_ON_COMMIT": "replica",
            "JOB_ID_TTL": 1,
            "FULL_TIMEOUT": 2.5,
            "TEST": {"DIRECTORY": "for-tests"},
            "ADMIN_REDACT": ["iban"],
        },
        None,
    )

    assert options.directory == Path("elsewhere")
    assert options.backoff == BackoffPolicy(base=5)
    assert (options.visibility_timeout, options.full_timeout) == (2.0, 2.5)
    assert (options.dead_ttl, options.result_ttl) == (7.0, 0.0)
    assert (options.enqueue_on_commit, options.group) == ("replica", "www-data")
    assert (options.test, options.admin_redact) == (Path("for-tests"), ("iban",))


def test_a_queue_overrides_some_options_and_inherits_the_others():
    options = read_options(
        {
            "MAX_ATTEMPTS": 9,
            "BACKOFF": {"base": 5, "jitter": 0},
            "QUEUES": {"emails": {"VISIBILITY_TIMEOUT": 60, "BACKOFF": {"base": 1}}},
        },
        HERE,
    )
    emails, other = options.for_queue("emails"), options.for_queue("other")

    assert (emails.max_attempts, emails.visibility_timeout) == (9, 60.0)
    assert emails.backoff == BackoffPolicy(base=1, jitter=0)
    assert (other.max_attempts, other.visibility_timeout) == (9, 30.0)
    assert other.backoff == BackoffPolicy(base=5, jitter=0)


def test_options_are_hashable_since_handles_are_kept_by_them():
    given = {"QUEUES": {"emails": {"MAX_ATTEMPTS": 3}}, "ADMIN_REDACT": ["iban"]}

    assert hash(read_options(given, HERE)) == hash(read_options(given, HERE))


def test_a_directory_is_needed():
    with pytest.raises(OptionsError, match=r"DIRECTORY is missing.*BASE_DIR"):
        read_options({}, None)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("DIRECTORY", 5, "must be a path, not 5"),
        ("DIRECTORY", "", "must be a path"),
        ("DIRECTORY", b"/srv", "must be a path"),
        ("DIRECTORY", "a\0b", "must be a path"),
        ("FSYNC", 1, "must be True or False, not 1"),
        ("MAX_ATTEMPTS", 0, "must be a whole number of at least 1, not 0"),
        ("MAX_ATTEMPTS", True, "must be a whole number"),
        ("MAX_ATTEMPTS", 2.0, "must be a whole number"),
        ("VISIBILITY_TIMEOUT", 0, "must be a number of seconds, more than 0"),
        ("VISIBILITY_TIMEOUT", "30", "must be a number of seconds"),
        ("VISIBILITY_TIMEOUT", float("nan"), "must be a number of seconds"),
        ("RESULT_TTL", -1, "must be a number of seconds, at least 0"),
        ("RESULT_TTL", None, "must be a number of seconds"),
        ("DEAD_TTL", float("inf"), "must be a number of seconds"),
        ("MAX_PENDING", 0, "must be a whole number of at least 1"),
        ("BACKOFF", 5, "must be a mapping with the keys base, factor"),
        ("BACKOFF", {"bse": 5}, "must be a mapping with the keys base, factor"),
        ("BACKOFF", {"base": -1}, "is wrong: base must be >= 0"),
        ("QUEUES", ["emails"], "must map names of queues to options"),
        ("QUEUES", {"emails": 3}, "must map names of queues to options"),
        ("FILE_MODE", "660", "must be a mode such as 0o660"),
        ("FILE_MODE", 0o060, "must be a mode such as 0o660"),
        ("FILE_MODE", 0o1777, "must be a mode such as 0o660"),
        ("GROUP", 33, "must be a non-empty string"),
        ("ENQUEUE_ON_COMMIT", 1, "must be True, False or the alias of a database"),
        ("TEST", "tmp", 'may hold "DIRECTORY" and nothing else'),
        ("TEST", {"DIR": "tmp"}, 'may hold "DIRECTORY" and nothing else'),
        ("TEST", {"DIRECTORY": 1}, "must be a path"),
        ("ADMIN_REDACT", "password", "must be a list of strings"),
        ("ADMIN_REDACT", [1], "must be a list of strings"),
    ],
)
def test_a_wrong_value_is_told_by_name(name, value, text):
    (fault,) = faults_of(**{name: value})

    assert fault.startswith(f"{name} ")
    assert text in fault


def test_an_unknown_option_names_the_nearest_one():
    assert faults_of(MAX_ATEMPTS=3) == [
        "MAX_ATEMPTS is not an option. Did you mean MAX_ATTEMPTS?"
    ]
    assert faults_of(directory="x") == [
        "directory is not an option. Did you mean DIRECTORY?"
    ]
    assert faults_of(ZZZ=1) == ["ZZZ is not an option."]


def test_all_faults_are_told_at_once():
    assert len(faults_of(FSYNC="no", MAX_ATTEMPTS=-1, WHAT=1)) == 3


def test_a_fault_of_a_queue_says_which_one():
    assert faults_of(QUEUES={"emails": {"FSYNC": True, "MAX_ATTEMPTS": 0}}) == [
        'QUEUES["emails"] FSYNC is not an option.',
        'QUEUES["emails"] MAX_ATTEMPTS must be a whole number of at least 1, not 0.',
    ]


def test_nearest_finds_names_in_any_case():
    assert nearest("emials", ["emails", "other"]) == " Did you mean emails?"
    assert nearest("xyz", ["emails"]) == ""
