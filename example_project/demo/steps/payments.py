"""Members pay through a service that fails half of the time."""

from __future__ import annotations

from demo.failure import expect
from demo.page import Page
from demo.stage import Stage
from demo.steps.members import MEMBERS

UNLUCKY = "willow"
LUCKY = tuple(name for name in MEMBERS if name != UNLUCKY)
ATTEMPTS = 4  # of a payment, before it is a dead letter
NOT_CHARGED = "not charged"


def pay(stage: Stage) -> str:
    """Press everybody's button, and press it again."""
    for name in MEMBERS:
        browser = stage.members[name]
        page = browser.get("membership/")
        button = next(form for form in page.forms if form.action.endswith("/pay/"))
        shown = browser.submit(page, button, {})
        # Somebody who is in doubt presses twice.
        shown = browser.submit(page, button, {})
        stage.payments[name] = shown.new_job(stage.jobs)
    return f"each pressed twice, {len(MEMBERS)} jobs enqueued"


def collect(stage: Stage) -> str:
    """Wait for the payments of the lucky: failed once, tried again, charged once."""
    jobs = [stage.payments[name] for name in LUCKY]
    failed = stage.until_jobs("the payments", jobs, "done")
    expect(
        {*failed.values()} == {1}, f"They failed {[*failed.values()]} times, not once."
    )
    for name in LUCKY:
        shown = stage.members[name].get("membership/")
        expect("receipt-" in shown.text, f"The page of {name} shows no receipt.")
    return "each failed once and was tried again"


def fail(stage: Stage) -> str:
    """Wait for the payment of the unlucky one to use up its attempts."""
    job = stage.payments[UNLUCKY]
    failed = stage.until_jobs(f"the payment of {UNLUCKY}", [job], "failed")
    expect(failed[job] == ATTEMPTS, f"It failed {failed[job]} times, not {ATTEMPTS}.")
    return f"{ATTEMPTS} attempts"


def charges(page: Page) -> dict[str, dict[str, str]]:
    """Return what the payment service remembers, by customer."""
    rows = page.rows("Customer")
    by_name = {row["Customer"]: row for row in rows}
    expect(len(rows) == len(by_name), "Somebody has two accounts: charged twice.")
    return by_name


def repair(stage: Stage) -> str:
    """Look at the service as staff, and press its switch."""
    page = stage.admin.get("membership/service/")
    accounts = charges(page)
    for name in LUCKY:
        expect(accounts[name]["Calls"] == "2", f"{name} was not called for twice.")
        receipt = accounts[name]["Charged once, as"]
        expect(receipt.startswith("receipt-"), f"{name} was not charged.")
    expect(
        accounts[UNLUCKY]["Charged once, as"] == NOT_CHARGED, f"{UNLUCKY} was charged."
    )
    after = stage.admin.submit(page, page.form("switch"), {}, press="switch=repair")
    expect("Every bank answers." in after.text, "The switch did not work.")
    return f"two calls and one charge for {', '.join(LUCKY)}"


def collect_at_last(stage: Stage) -> str:
    """Wait for the requeued payment, and see that it was charged once."""
    job = stage.payments[UNLUCKY]

    def paid() -> bool:
        return "receipt-" in stage.members[UNLUCKY].get("membership/").text

    stage.until(f"the payment of {UNLUCKY}", paid)
    stage.until_jobs(f"the payment of {UNLUCKY}", [job], "done")
    account = charges(stage.admin.get("membership/service/"))[UNLUCKY]
    expect(
        account["Charged once, as"].startswith("receipt-"),
        f"{UNLUCKY} was not charged.",
    )
    return f"call {account['Calls']}, one charge"
