"""Signals reach everybody, whatever a receiver does."""

from __future__ import annotations

import asyncio

import pytest
from django.dispatch import Signal

from django_nobroker.signals import aannounce, announce


class Backend:
    """Stands for the sender."""


@pytest.fixture
def signal():
    signal = Signal()
    signal.heard = []

    def refuse(**_facts):
        raise RuntimeError("no")

    def listen(sender, **facts):
        signal.heard.append((sender, facts["task_result"]))

    async def alisten(sender, **facts):
        signal.heard.append((sender, facts["task_result"]))

    for receiver in (refuse, listen, alisten):
        signal.connect(receiver, weak=False)
    return signal


def test_the_sender_is_the_class(signal, caplog):
    announce(signal, Backend(), task_result=1)

    assert signal.heard == [(Backend, 1), (Backend, 1)]
    assert "refuse" in caplog.text


def test_so_it_is_in_a_coroutine(signal):
    asyncio.run(aannounce(signal, Backend(), task_result=1))

    assert signal.heard == [(Backend, 1), (Backend, 1)]
