"""Test suites of other projects, run unedited against the log backend."""
