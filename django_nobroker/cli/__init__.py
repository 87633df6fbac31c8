"""The command line: one implementation for the console script and for ``manage.py``."""
