"""Starting processes of a campaign, killing them at random, and the verdict."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE = 60.0


def environment(scratch):
    """The environment of a child: no Django, an index that goes away with the test."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in {"PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "TMPDIR"}
    }
    return {**kept, "NOBROKER_INDEX_DIR": str(scratch)}


class Actor:
    """A child process that is started again each time after it was killed."""

    def __init__(self, module, *arguments, scratch, prefix=()):
        self._command = [
            *prefix,
            sys.executable,
            "-m",
            f"tests.campaigns.{module}",
            *map(str, arguments),
        ]
        self._environment = environment(scratch)
        self._said = threading.Condition()
        self.lines = []  # of all lives, in the order in which they were written
        self._start()

    def _start(self):
        self._first = len(self.lines)  # the first line of this life
        self.process = subprocess.Popen(
            self._command,
            cwd=ROOT,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, args=[self.process.stdout])
        self._reader.start()

    def _read(self, pipe):
        for line in pipe:
            with self._said:
                self.lines.append(line.split())
                self._said.notify_all()

    def wait_for(self, *words):
        """Return when this life of it has said a line that begins with these words."""
        deadline = time.monotonic() + PATIENCE

        def said():
            return any(
                line[: len(words)] == list(words) for line in self.lines[self._first :]
            )

        with self._said:
            while not self._said.wait_for(said, 0.1):
                if self.process.poll() is not None:
                    raise AssertionError(self.process.stderr.read())
                assert time.monotonic() < deadline, f"it never said {words}"

    def wait_until_ready(self):
        self.wait_for("ready")

    def kill(self):
        """Kill it; returns what it had to say about an error, which is nothing."""
        self.process.send_signal(signal.SIGKILL)
        return self._reap()

    def end(self):
        """Wait for it to end by itself."""
        self.process.wait(PATIENCE)
        return self._reap()

    def _reap(self):
        code = self.process.wait(PATIENCE)
        complaint = self.process.stderr.read()
        self._reader.join(PATIENCE)
        self.process.stdout.close()
        self.process.stderr.close()
        assert code in {-signal.SIGKILL, 128 + signal.SIGKILL, 0}, complaint
        assert "Traceback" not in complaint, complaint
        return code

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if not self.process.stdout.closed:
            self.kill()

    def restart(self):
        self._start()


def kill_at_random(actors, kills, chance):
    """Kill one of them after 0 to 50 ms, start it again, and so on."""
    for actor in actors:
        actor.wait_until_ready()
    for _ in range(kills):
        victim = chance.choice(actors)
        if chance.randrange(4):
            # Three of four die at work, the others while they start.
            victim.wait_until_ready()
        time.sleep(chance.random() / 20)
        victim.kill()
        victim.restart()


def acknowledged(actors):
    """The ids that producers were promised."""
    return {
        word
        for actor in actors
        for line in actor.lines
        if line[0] == "acked"
        for word in line[1:]
    }


def drain(store, scratch):
    """Let a fresh worker do what is left."""
    with Actor("consumer", store, "drain", scratch=scratch) as worker:
        assert worker.end() == 0
    return worker


def check(store, scratch):
    """What a fresh process finds in the store."""
    scratch.joinpath("anew").mkdir()
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.campaigns.checker",
            str(store),
            str(scratch / "anew"),
        ],
        cwd=ROOT,
        env=environment(scratch),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def judge(found, promised, ended, kills, seed):
    """Print the figures, then assert what the engine promises."""
    states = dict(found["jobs"])
    lost = [job_id for job_id in promised if states.get(job_id) not in {"done", "dead"}]
    print(
        f"kills survived {kills}/{kills}, "
        f"acknowledged jobs lost {len(lost)}/{len(promised)}, "
        f"double leases {found['figures'].get('double', 0)} "
        f"(seed {seed}, records {found['figures']})"
    )
    assert found["wrong"] == []
    assert lost == []
    # Each job is there once, and is at its end.
    assert len(states) == len(found["jobs"])
    assert set(states.values()) <= {"done", "dead"}
    # Nothing is invented: a handler that ran, ran for a job of the log.
    assert ended <= set(states)


def chance_of(seed):
    return random.Random(seed)
