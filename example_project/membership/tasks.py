"""The job that collects a membership payment."""

from __future__ import annotations

from django.utils import timezone
from django_nobroker import task

from membership.models import Payment
from membership.service import payment_service
from payment_service.service import KeyReusedError


@task(
    queue_name="payments",
    priority=10,
    max_attempts=4,
    # Short, because somebody is watching; a real one would begin with minutes.
    backoff={"base": 0.3, "factor": 2.0, "jitter": 0.0},
    no_retry_on=(KeyReusedError, Payment.DoesNotExist),
)
def collect_payment(payment_id: int) -> str:
    """Charge a member once, and return the receipt's number.

    Whatever is raised by the service is a failed attempt; the queue tries again
    later, and keeps the job as a dead letter when the attempts are used up.
    """
    payment = Payment.objects.select_related("member").get(pk=payment_id)
    receipt = payment_service().charge(
        customer=payment.member.get_username(),
        cents=payment.cents,
        key=str(payment.key),
    )
    # An earlier attempt may have come this far before its worker died: the moment
    # of payment stays the first one.
    unpaid = Payment.objects.filter(pk=payment.pk, paid_at=None)
    unpaid.update(receipt=receipt, paid_at=timezone.now())
    return receipt
