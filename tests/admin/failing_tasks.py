"""Tasks that fail, and one that is mended."""

from __future__ import annotations

from django_nobroker import task

mended = False


@task(queue_name="payments", max_attempts=1)
def charge(customer, *, api_key=""):
    """Fails until the payment service is mended."""
    if not mended:
        raise ValueError(f"card of <{customer}> declined")
    return customer


@task(queue_name="emails", max_attempts=2, backoff={"base": 0})
def send(to):
    """Fails always, after a second attempt."""
    raise ConnectionError("the mail server is away")
