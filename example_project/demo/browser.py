"""A visitor of the site: keeps cookies, follows redirects, fills in forms."""

from __future__ import annotations

import json
import mimetypes
import secrets
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urljoin

from demo.failure import DemoError
from demo.page import Form, Page

TIMEOUT = 30.0  # seconds for one answer

Fields = Mapping[str, "str | Path"]


class Browser:
    """One visitor; their session is in the cookies."""

    def __init__(self, site: str) -> None:
        self.site = site
        self._opener = urllib.request.build_opener(
            # A proxy that the environment names must not see the loopback address.
            urllib.request.ProxyHandler({}),
            urllib.request.HTTPCookieProcessor(CookieJar()),
        )

    def get(self, path: str) -> Page:
        """Open a page of the site."""
        return self._page(urllib.request.Request(urljoin(self.site, path)))  # noqa: S310

    def data(self, path: str) -> Any:
        """Return what the site answers as JSON."""
        return json.loads(self.get(path).text)

    def submit(self, page: Page, form: Form, fields: Fields, press: str = "") -> Page:
        """Fill in some fields of a form, press a button of that name, and send it.

        The other fields are sent as they are, the hidden ones with the CSRF token
        among them. Sending a field that the form does not have is an error.
        """
        if unknown := fields.keys() - form.names:
            raise DemoError(f"The form on {page.url} has no {', '.join(unknown)}.")
        values = [(name, value) for name, value in form.values if name not in fields]
        sent: list[tuple[str, str | Path]] = [*values, *fields.items()]
        if press:
            sent.append(_button(page, form, press))
        url = urljoin(page.url, form.action)
        if form.method == "get":
            return self.get(f"{url.partition('?')[0]}?{urlencode(_texts(sent))}")
        if form.is_multipart:
            body, kind = _multipart(sent)
        else:
            body = urlencode(_texts(sent)).encode()
            kind = "application/x-www-form-urlencoded"
        headers = {"Content-Type": kind, "Referer": page.url}
        return self._page(urllib.request.Request(url, body, headers))  # noqa: S310

    def _page(self, request: urllib.request.Request) -> Page:
        try:
            with self._opener.open(request, timeout=TIMEOUT) as answer:
                return Page(answer.url, answer.read().decode())
        except urllib.error.HTTPError as error:
            with error:
                reason = f"{request.full_url} answered {error.code} {error.reason}."
            raise DemoError(reason) from None
        except OSError as error:  # urllib's own errors are of this kind, too.
            raise DemoError(f"{request.full_url} did not answer: {error}.") from None


def _button(page: Page, form: Form, press: str) -> tuple[str, str]:
    name, _, value = press.partition("=")
    for button in form.buttons:
        if button == (name, value):
            return button
    raise DemoError(f"The form on {page.url} has no button {press}.")


def _texts(fields: list[tuple[str, str | Path]]) -> list[tuple[str, str]]:
    return [(name, str(value)) for name, value in fields]


def _multipart(fields: list[tuple[str, str | Path]]) -> tuple[bytes, str]:
    boundary = secrets.token_hex(16)
    parts = []
    for name, value in fields:
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"'
        if isinstance(value, Path):
            kind = mimetypes.guess_type(value.name)[0] or "application/octet-stream"
            head += f'; filename="{value.name}"\r\nContent-Type: {kind}'
            content = value.read_bytes()
        else:
            content = value.encode()
        parts.append(head.encode() + b"\r\n\r\n" + content + b"\r\n")
    body = b"".join(parts) + f"--{boundary}--\r\n".encode()
    return body, f"multipart/form-data; boundary={boundary}"
