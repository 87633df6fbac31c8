"""What an ``AsyncQueue`` promises to coroutines, cancelled ones above all."""

from __future__ import annotations

import asyncio
import errno
import gc
import inspect
import os
import subprocess
import sys
import threading
import time

import pytest

from django_nobroker import AsyncQueue, BackoffPolicy, JobState, Queue, QueueStats
from django_nobroker.engine.shared import open_store
from django_nobroker.exceptions import (
    JobNotFoundError,
    NotLeasedError,
    QueueClosedError,
    QueueEmpty,
    QueueFull,
    StoreFailedError,
)
from tests.doubles import PATIENCE
from tests.faults.files import FaultyFiles, fails, lets

#: More than a queue has threads.
MANY = 40


@pytest.fixture
def disk():
    return FaultyFiles()


@pytest.fixture
def make(directory):
    """Return a function that makes an asynchronous queue; retries come at once."""

    def make_one(name="default", **options):
        options.setdefault("backoff", BackoffPolicy(base=0))
        return AsyncQueue(directory, name, **options)

    return make_one


@pytest.fixture
def no_second_look(monkeypatch):
    """A lease that is not rung sleeps for longer than the test is patient."""
    monkeypatch.setattr("django_nobroker.plain.stepping._FALLBACK", 2 * PATIENCE)


class Hold:
    """A moment at which a thread is kept until the test lets it go."""

    def __init__(self):
        self._reached = threading.Event()
        self._go = threading.Event()

    def __call__(self):
        self._reached.set()
        assert self._go.wait(PATIENCE), "nobody let it go"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._go.set()

    async def reached(self, *, unless):
        """Tell whether a thread is held; False if the tasks ended without one."""
        await until(lambda: self._reached.is_set() or all(t.done() for t in unless))
        return self._reached.is_set()


async def turns(count=5):
    """Let the loop go round."""
    for _ in range(count):
        await asyncio.sleep(0)


async def until(condition):
    """Return when something holds that other tasks or threads bring about."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - no event tells of threads and files
            await asyncio.sleep(0.001)


def asleep(queue):
    """Whether the one lease that is under way keeps the pool, but no thread."""
    return queue._threads._users == 1


def own_threads():
    return [t for t in threading.enumerate() if t.name.startswith("nobroker-async")]


def sleepers(directory):
    folder = directory / "doorbell"
    return os.listdir(folder) if folder.exists() else []


# --- the same verbs -----------------------------------------------------------


def test_a_job_goes_through_its_life(make):
    async def main():
        async with make(max_attempts=2) as queue:
            made = await queue.enqueue({"n": 1}, priority=3, job_id="one")
            assert (made.payload, made.priority, made.id) == ({"n": 1}, 3, "one")
            await queue.enqueue_many([2, 3], job_ids=["two", "three"])
            assert await queue.stats() == QueueStats(3, 0, 0, 0, 0, 3)

            first = await queue.lease_one()
            assert (first.id, first.attempts) == ("one", 1)
            assert (await queue.extend(first, 60)).state is JobState.LEASED
            await queue.ack(first)
            with pytest.raises(NotLeasedError):
                await queue.nack(first)

            two, three = await queue.lease(5)
            assert (await queue.release(two)).attempts == 0
            assert (await queue.nack(three, error="no")).last_error == "no"
            again = await queue.lease_one()
            assert (await queue.fail(again, error="bad")).state is JobState.DEAD
            assert [job.last_error for job in await queue.dlq()] == ["bad"]
            assert await queue.requeue_dead(again.id) == 1
            assert (await queue.get(again.id)).state is JobState.READY
            assert [job.id for job in await queue.list_jobs("done")] == ["one"]
            with pytest.raises(JobNotFoundError):
                await queue.get("nobody")
            assert not (await queue.recovery()).repaired

    asyncio.run(main())


def test_every_verb_of_a_queue_is_a_coroutine_with_the_same_arguments():
    def arguments(function):
        return [
            (p.name, p.kind, p.default)
            for p in inspect.signature(function).parameters.values()
        ]

    not_verbs = {
        "as_it_is",
        "as_job",
        "as_leased",
        "asked",
        "asked_many",
        "opened",
        "placed",
        "retry_delay",
        "recovery",
        "terms",
        "writable",
    }
    verbs = {name for name in dir(Queue) if not name.startswith("_")} - not_verbs

    assert {"ack", "enqueue", "lease", "processing"} <= verbs
    for name in verbs:
        ours = getattr(AsyncQueue, name)
        assert arguments(ours) == arguments(getattr(Queue, name)), name
        if name != "processing":
            assert inspect.iscoroutinefunction(ours), name
    assert arguments(AsyncQueue.__init__) == arguments(Queue.__init__)


def test_the_verbs_of_its_jobs_tell_what_to_await_instead(make):
    async def main():
        async with make() as queue:
            jobs = [
                await queue.enqueue(1, job_id="a"),
                await queue.enqueue(1, job_id="a"),
                *await queue.enqueue_many([2, 3]),
                await queue.get("a"),
                *await queue.list_jobs(),
            ]
            leased = await queue.lease_one()
            jobs += [leased, await queue.extend(leased, 99)]
            jobs.append(await queue.release(leased))
            jobs.append(await queue.nack(await queue.lease_one(wait=1)))
            jobs.append(await queue.fail(await queue.lease_one()))
            jobs += await queue.dlq()
            for job in jobs:
                for verb in ("ack", "nack", "fail", "release"):
                    with pytest.raises(TypeError, match=rf"await queue\.{verb}\(job\)"):
                        getattr(job, verb)()
                with pytest.raises(TypeError, match=r"await queue\.extend\(job\)"):
                    job.extend(1)

    asyncio.run(main())


def test_processing_acks_nacks_and_raises(make):
    async def main():
        async with make() as queue:
            with pytest.raises(QueueEmpty):
                async with queue.processing():
                    pytest.fail("there is no job")
            await queue.enqueue("work")
            with pytest.raises(ZeroDivisionError):
                async with queue.processing() as job:
                    raise ZeroDivisionError("by nought")
            assert (
                await queue.get(job.id)
            ).last_error == "ZeroDivisionError: by nought"
            async with queue.processing(wait=5) as job:
                assert (job.payload, job.attempts) == ("work", 2)
            assert (await queue.get(job.id)).state is JobState.DONE

    asyncio.run(main())


def test_processing_that_is_cancelled_is_a_failed_attempt(make):
    async def main():
        async with make() as queue:
            made = await queue.enqueue("work")
            begun = asyncio.Event()

            async def process():
                async with queue.processing():
                    begun.set()
                    await asyncio.sleep(PATIENCE)

            task = asyncio.create_task(process())
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            job = await queue.get(made.id)
            assert (job.state, job.attempts) == (JobState.READY, 1)
            assert job.last_error.startswith("CancelledError")

    asyncio.run(main())


# --- the loop goes on ---------------------------------------------------------


def test_the_loop_goes_on_while_a_sync_is_slow(make, disk):
    async def main():
        async with make() as queue:
            with Hold() as hold:
                disk.on("fdatasync", lets(hold))
                slow = asyncio.create_task(queue.enqueue("slow"))
                assert await hold.reached(unless=[slow])
                await turns(100)
                assert await queue.dlq() == []  # and so do other verbs
                assert not slow.done()
            assert (await slow).payload == "slow"

    asyncio.run(main())


def test_opening_a_store_does_not_block_the_loop(make, monkeypatch):
    async def main():
        with Hold() as hold:
            monkeypatch.setattr(
                "django_nobroker.plain.opening.open_store",
                lambda *given, **options: (hold(), open_store(*given, **options))[1],
            )
            queue = make()
            opening = asyncio.create_task(queue.stats())
            assert await hold.reached(unless=[opening])
            await turns(100)
            assert not opening.done()
        assert (await opening).total == 0
        await queue.close()

    asyncio.run(main())


@pytest.mark.usefixtures("no_second_look")
def test_more_leases_than_threads_wait_and_each_gets_a_job(make, directory):
    async def main():
        async with make() as queue:
            waiting = [
                asyncio.create_task(queue.lease_one(wait=2 * PATIENCE))
                for _ in range(MANY)
            ]
            await until(lambda: len(sleepers(directory)) == MANY)
            await queue.enqueue_many(range(MANY))
            async with asyncio.timeout(PATIENCE):
                jobs = await asyncio.gather(*waiting)
            assert sorted(job.payload for job in jobs) == list(range(MANY))
        assert sleepers(directory) == []

    asyncio.run(main())


@pytest.mark.usefixtures("no_second_look")
def test_a_waiting_lease_is_rung_by_another_queue_object(make, open_queue, directory):
    async def main():
        async with make() as queue:
            waiting = asyncio.create_task(queue.lease(3, wait=2 * PATIENCE))
            await until(lambda: sleepers(directory) and asleep(queue))
            await asyncio.to_thread(open_queue().enqueue, "from elsewhere")
            jobs = await asyncio.wait_for(waiting, PATIENCE)
            assert [job.payload for job in jobs] == ["from elsewhere"]

    asyncio.run(main())


def test_a_lease_waits_no_longer_than_asked(make):
    async def main():
        async with make() as queue:
            began = time.monotonic()
            assert await queue.lease(wait=0.05) == []
            assert time.monotonic() - began >= 0.05
            assert await queue.lease_one(wait=0) is None

    asyncio.run(main())


def test_a_lease_waits_until_a_job_is_due(make):
    async def main():
        async with make() as queue:
            await queue.enqueue("later", delay=0.05)
            assert (await queue.lease_one(wait=PATIENCE)).payload == "later"

    asyncio.run(main())


# --- a full queue -------------------------------------------------------------


def test_more_enqueues_than_threads_wait_for_room_and_all_get_it(make):
    async def main():
        async with make(max_pending=MANY, fsync=False) as queue:
            await queue.enqueue_many(["there"] * MANY)
            waiting = [asyncio.create_task(queue.enqueue(n)) for n in range(MANY)]
            await asyncio.sleep(0.02)
            assert not any(task.done() for task in waiting)
            for job in await queue.lease(MANY):
                await queue.ack(job)  # not stuck behind those who wait for it
            await asyncio.gather(*waiting)
            jobs = await queue.lease(MANY)
            assert sorted(job.payload for job in jobs) == list(range(MANY))

    asyncio.run(main())


def test_a_full_queue_refuses_after_the_timeout_or_at_once(make):
    async def main():
        async with make(max_pending=1) as queue:
            await queue.enqueue("there")
            with pytest.raises(QueueFull):
                await queue.enqueue("no", block=False)
            with pytest.raises(QueueFull):
                await queue.enqueue_many(["no"], timeout=0.02)
            with pytest.raises(QueueFull):
                await queue.enqueue_many(["never", "fits"])
            with pytest.raises(ValueError, match="timeout"):
                await queue.enqueue("no", timeout=-1)
            assert (await queue.stats()).total == 1

    asyncio.run(main())


def test_cancelling_a_wait_for_room_enqueues_nothing(make):
    async def main():
        async with make(max_pending=1) as queue:
            await queue.enqueue("there")
            waiting = asyncio.create_task(queue.enqueue("no"))
            await asyncio.sleep(0.03)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await queue.ack(await queue.lease_one())
            assert (await queue.stats()).total == 1

    asyncio.run(main())


# --- cancelling ---------------------------------------------------------------


def test_a_lease_that_is_cancelled_at_any_call_gives_its_job_back(make, disk):
    """Every system call of the claim is held once, and the lease cancelled twice."""

    async def main():
        async with make() as queue:
            made = await queue.enqueue("work")
            await queue.release(await queue.lease_one())
            for number in range(1000):
                disk.forget()
                with Hold() as hold:
                    disk.at(number, lets(hold))
                    lease = asyncio.create_task(queue.lease())
                    if not await hold.reached(unless=[lease]):
                        break
                    for _ in range(2):
                        lease.cancel()
                        await turns()
                    assert not lease.done()
                with pytest.raises(asyncio.CancelledError):
                    await lease
                job = await queue.get(made.id)
                assert (job.state, job.attempts) == (JobState.READY, 0), number
            assert number >= 3
            assert [job.id for job in await lease] == [made.id]

    asyncio.run(main())


def test_a_waiting_lease_that_is_cancelled_at_any_call_loses_no_job(
    make, disk, directory
):
    """From the enqueue that rings for it to the removal of its pipe."""

    async def main():
        cancelled = 0
        async with make() as queue:
            for number in range(1000):
                lease = asyncio.create_task(queue.lease(wait=PATIENCE))
                await until(lambda: sleepers(directory) and asleep(queue))
                disk.forget()
                with Hold() as hold:
                    disk.at(number, lets(hold))
                    enqueue = asyncio.create_task(queue.enqueue(number))
                    held = await hold.reached(unless=[enqueue, lease])
                    lease.cancel()
                    await turns()
                    lease.cancel()
                    await turns()
                made = await enqueue
                ended = (await asyncio.gather(lease, return_exceptions=True))[0]
                job = await queue.get(made.id)
                if isinstance(ended, asyncio.CancelledError):
                    cancelled += 1
                    assert (job.state, job.attempts) == (JobState.READY, 0), number
                    ended = await queue.lease()
                assert [job.id for job in ended] == [made.id]
                await queue.ack(ended[0])
                assert sleepers(directory) == []
                if not held:
                    break
            assert cancelled >= 10

    asyncio.run(main())


def test_cancelling_a_lease_that_sleeps_ends_it_and_removes_its_pipe(make, directory):
    async def main():
        async with make() as queue:
            lease = asyncio.create_task(queue.lease(wait=PATIENCE))
            await until(lambda: sleepers(directory) and asleep(queue))
            lease.cancel()
            with pytest.raises(asyncio.CancelledError):
                await lease
            assert sleepers(directory) == []
            await queue.enqueue("still taken")
            assert (await queue.lease_one()).payload == "still taken"

    asyncio.run(main())


@pytest.mark.parametrize("verb", ["enqueue", "enqueue_many", "ack", "nack", "fail"])
def test_a_cancelled_write_goes_on_when_it_has_settled(make, disk, verb):
    async def main():
        async with make(max_attempts=1) as queue:
            await queue.enqueue("there")
            job = await queue.lease_one()
            argument = {"enqueue": "new", "enqueue_many": ["new"]}.get(verb, job)
            with Hold() as hold:
                disk.on("fdatasync", lets(hold))
                task = asyncio.create_task(getattr(queue, verb)(argument))
                assert await hold.reached(unless=[task])
                for _ in range(3):
                    task.cancel()
                    await turns()
                assert not task.done()
            with pytest.raises(asyncio.CancelledError) as raised:
                await task
            assert raised.value.__cause__ is None
            stats = await queue.stats()
            assert (stats.ready, stats.done, stats.dead) == {
                "ack": (0, 1, 0),
                "nack": (0, 0, 1),
                "fail": (0, 0, 1),
            }.get(verb, (1, 0, 0))

    asyncio.run(main())


def test_the_cause_of_a_cancellation_tells_that_the_write_failed(make, disk):
    async def main():
        async with make() as queue:
            with Hold() as hold:
                disk.on("fdatasync", lets(hold))
                # Two faults meet one sync in turn: the held one goes on to succeed.
                first = asyncio.create_task(queue.enqueue("first"))
                assert await hold.reached(unless=[first])
                disk.on("fdatasync", fails(errno.EIO))
                second = asyncio.create_task(queue.enqueue("second"))
                await until(lambda: queue._threads._users == 2)
                second.cancel()
                await turns()
                assert not second.done()
            await first
            with pytest.raises(asyncio.CancelledError) as raised:
                await second
            assert isinstance(raised.value.__cause__, StoreFailedError)

    asyncio.run(main())


def test_a_timeout_around_a_lease_is_a_timeout(make):
    async def main():
        async with make() as queue:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.02):
                    await queue.lease(wait=PATIENCE)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(queue.lease(wait=PATIENCE), 0.02)

    asyncio.run(main())


# --- opening and closing ------------------------------------------------------


def test_a_closed_queue_says_so(make):
    async def main():
        async with make() as queue:
            pass
        for call in (queue.stats(), queue.enqueue(1), queue.lease(wait=1)):
            with pytest.raises(QueueClosedError):
                await call
        await queue.close()
        await until(lambda: not own_threads())

    asyncio.run(main())


@pytest.mark.usefixtures("no_second_look")
def test_closing_wakes_the_leases_that_wait(make, directory):
    async def main():
        queue = make()
        lease = asyncio.create_task(queue.lease(wait=2 * PATIENCE))
        await until(lambda: sleepers(directory) and asleep(queue))
        async with asyncio.timeout(PATIENCE):
            await queue.close()
            with pytest.raises(QueueClosedError):
                await lease
        assert sleepers(directory) == []

    asyncio.run(main())


def test_closing_ends_a_wait_for_room(make):
    async def main():
        queue = make(max_pending=1)
        await queue.enqueue("there")
        waiting = asyncio.create_task(queue.enqueue("no"))
        await turns()
        await queue.close()
        with pytest.raises(QueueClosedError):
            await waiting

    asyncio.run(main())


def test_closing_lets_who_writes_end_though_it_is_cancelled(make, disk):
    async def main():
        queue = make()
        with Hold() as hold:
            disk.on("fdatasync", lets(hold))
            write = asyncio.create_task(queue.enqueue("written"))
            assert await hold.reached(unless=[write])
            closing = [asyncio.create_task(queue.close()) for _ in range(2)]
            await turns()
            with pytest.raises(QueueClosedError):
                await queue.stats()
            closing[0].cancel()
            await turns()
            assert not any(task.done() for task in [write, *closing])
        assert (await write).payload == "written"
        ends = await asyncio.gather(*closing, return_exceptions=True)
        assert [type(end) for end in ends] == [asyncio.CancelledError, type(None)]

    asyncio.run(main())


def test_a_closed_queue_leaves_no_descriptor_open(tmp_path, monkeypatch):
    monkeypatch.setenv("NOBROKER_INDEX_DIR", str(tmp_path))

    async def main():
        async with AsyncQueue(tmp_path / "jobs") as queue:
            await queue.enqueue(1)
            async with queue.processing():
                pass
            await queue.lease(wait=0.01)
        await until(lambda: not own_threads())

    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        asyncio.run(main())
    gc.collect()

    assert len(os.listdir("/proc/self/fd")) == before


def test_a_queue_serves_one_event_loop_after_the_other(make):
    queue = make()

    asyncio.run(queue.enqueue("kept"))
    assert asyncio.run(queue.lease_one(wait=1)).payload == "kept"
    asyncio.run(queue.close())


def test_nothing_is_made_before_it_is_used(tmp_path):
    AsyncQueue(tmp_path / "jobs")

    assert list(tmp_path.iterdir()) == []


def test_a_bad_option_is_refused_when_it_is_opened(tmp_path):
    async def main():
        queue = AsyncQueue(tmp_path / "jobs", max_attempts=0)
        with pytest.raises(ValueError, match="max_attempts"):
            await queue.stats()
        await queue.close()
        with pytest.raises(ValueError, match="count"):
            async with AsyncQueue(tmp_path / "jobs") as queue:
                await queue.lease(0, wait=1)

    asyncio.run(main())


def test_a_relative_path_is_meant_from_where_the_queue_was_made(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    queue = AsyncQueue("jobs")
    monkeypatch.chdir(tmp_path / "elsewhere")

    async def main():
        async with queue:
            await queue.enqueue(1)

    asyncio.run(main())

    assert (tmp_path / "jobs").is_dir()
    assert repr(queue) == f"AsyncQueue('{tmp_path}/jobs', 'default')"


def test_a_script_that_uses_it_never_imports_django(tmp_path):
    script = (
        "import asyncio, sys\n"
        "from django_nobroker import AsyncQueue\n"
        "async def main():\n"
        "    async with AsyncQueue(sys.argv[1]) as queue:\n"
        "        await queue.enqueue(1)\n"
        "        async with queue.processing(wait=1):\n"
        "            pass\n"
        "asyncio.run(main())\n"
        "roots = {name.partition('.')[0] for name in sys.modules}\n"
        "print(sorted(roots & {'django', 'django_tasks', 'asgiref'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "jobs")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
        timeout=60,
    )

    assert (done.stderr, done.stdout) == ("", "[]\n")
