"""Tests of the package; the folders mirror those of django_nobroker."""
