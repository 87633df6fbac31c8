"""Migrations: rows of permissions only, no tables."""
