"""Paying for membership, and the switch of the made-up payment service."""

from __future__ import annotations

from typing import cast

from django.contrib import messages
from django.contrib.admin.views.decorators import staff_member_required
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from membership.models import YEARLY_CENTS, Payment
from membership.service import payment_service
from membership.tasks import collect_payment
from payment_service.service import UNLUCKY


@login_required
@require_GET
def membership(request: HttpRequest) -> HttpResponse:
    """Show what membership costs and how the member's payment is doing."""
    context = {
        "payment": Payment.objects.filter(member=cast("User", request.user)).first(),
        "price": Payment(cents=YEARLY_CENTS).amount,
        "unlucky": UNLUCKY,
    }
    return render(request, "membership/membership.html", context)


@login_required
@require_POST
def pay(request: HttpRequest) -> HttpResponse:
    """Note the payment; a worker talks to the payment service."""
    payment, _ = Payment.objects.get_or_create(member=cast("User", request.user))
    # Asked twice, it is collected once. Without a job, the site was stopped
    # between the two lines below, and this is the second chance.
    if not payment.job_id:
        payment.job_id = collect_payment.enqueue(payment.pk).id
        payment.save(update_fields=["job_id"])
        messages.success(request, "Thank you! Your payment is being collected.")
    return redirect("membership:membership")


@staff_member_required
@require_GET
def service(request: HttpRequest) -> HttpResponse:
    """Show the staff what the payment service remembers, and its switch."""
    book = payment_service().book()
    context = {
        "accounts": book.accounts.values(),
        "silent": book.silent_banks_of,
        "unlucky": UNLUCKY,
    }
    return render(request, "membership/service.html", context)


@staff_member_required
@require_POST
def switch(request: HttpRequest) -> HttpResponse:
    """Repair the payment service, or disturb it again."""
    match request.POST.get("switch"):
        case "repair":
            payment_service().repair()
            messages.success(request, "Every bank answers again.")
        case "disturb":
            payment_service().disturb()
            messages.warning(request, f"The bank of {UNLUCKY} does not answer now.")
        case _:
            return HttpResponseBadRequest("The switch is for repair or disturb.")
    return redirect("membership:service")
