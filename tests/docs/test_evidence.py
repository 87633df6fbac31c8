"""The page about durability shows what was measured, and no more."""

from __future__ import annotations

from tests.campaigns import evidence


def test_the_table_is_made_from_the_newest_lines():
    page = evidence.PAGE.read_text(encoding="utf-8")

    shown = page.partition(evidence.BEGIN)[2].partition(evidence.END)[0]

    assert shown == evidence.table()


def test_every_claim_has_its_evidence():
    claims = [
        one for part in evidence.CAMPAIGNS.values() for one in part.claims.values()
    ]

    assert list(evidence.newest()) == claims
    assert all(one["ok"] for one in evidence.newest().values())
