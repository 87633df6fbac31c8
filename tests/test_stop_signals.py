"""The first signal asks, the second insists."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from django_nobroker.stop_signals import StopSignals

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 20.0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_sets_the_event(number):
    stop = threading.Event()
    with StopSignals(stop):
        os.kill(os.getpid(), number)
        assert stop.wait(PATIENCE)


def test_afterwards_everything_is_as_before():
    before = [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)]
    descriptors = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc") else 0
    with StopSignals(threading.Event()):
        pass
    after = [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)]

    assert after == before
    assert signal.set_wakeup_fd(-1) == -1
    if descriptors:
        assert len(os.listdir("/proc/self/fd")) == descriptors


def test_other_signals_are_none_of_its_business(monkeypatch):
    stop = threading.Event()
    heard = threading.Event()
    before = signal.signal(signal.SIGUSR1, lambda *_: heard.set())
    try:
        with StopSignals(stop):
            os.kill(os.getpid(), signal.SIGUSR1)
            assert heard.wait(PATIENCE)
        assert not stop.is_set()
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_outside_the_main_thread_it_changes_nothing():
    def work():
        with StopSignals(threading.Event()):
            found.append(signal.getsignal(signal.SIGTERM))

    found = []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert found == [signal.getsignal(signal.SIGTERM)]


def test_the_second_signal_exits_at_once_with_status_one():
    code = """
import threading, time
from django_nobroker.stop_signals import StopSignals

stop = threading.Event()
job = threading.Thread(target=threading.Event().wait)
job.start()
with StopSignals(stop):
    print("ready", flush=True)
    stop.wait()
    print("stopping", flush=True)
    job.join()
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "stopping\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 1
