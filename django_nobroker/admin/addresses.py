"""Addresses of the admin's pages, and job ids in them.

The admin quotes keys in its own way (``_2F`` for a slash), and the links of its
log entries are made so. People also type ids as they are. Both are understood.
"""

from __future__ import annotations

from django.contrib.admin import AdminSite
from django.contrib.admin.utils import quote, unquote
from django.db.models import Model
from django.urls import NoReverseMatch, reverse
from django.utils.http import urlencode

# Browsers and proxies resolve these two as directories, percent-encoded or not.
_DOTS = {".": "_2E", "..": "_2E_2E"}
_FROM_DOTS = {quoted: plain for plain, quoted in _DOTS.items()}


def url_name(model: type[Model], page: str) -> str:
    """Return the name that Django's admin gives to a page of ``model``."""
    opts = model._meta  # noqa: SLF001 - documented by Django as the API of models.
    return f"{opts.app_label}_{opts.model_name}_{page}"


def page_url(
    site: AdminSite,
    model: type[Model],
    page: str,
    *,
    job_id: str | None = None,
    **query: str | int | None,
) -> str:
    """Return the address of a page on ``site``, or "" if the site lacks it.

    Queries that are None or empty are left out.
    """
    args = [] if job_id is None else [quoted(job_id)]
    try:
        address = reverse(
            f"admin:{url_name(model, page)}", args=args, current_app=site.name
        )
    except NoReverseMatch:
        return ""
    given = {
        name: value
        for name, value in query.items()
        if value is not None and value != ""
    }
    return f"{address}?{urlencode(given)}" if given else address


def quoted(job_id: str) -> str:
    """Return the path component that stands for ``job_id``."""
    return _DOTS.get(job_id) or str(quote(job_id))


def candidates(component: str) -> list[str]:
    """Return the ids that a path component may stand for, likeliest first."""
    unquoted = _FROM_DOTS.get(component) or unquote(component)
    return list(dict.fromkeys([unquoted, component]))
