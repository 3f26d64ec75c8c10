#!/usr/bin/env python3
"""Ten nights of a job that cron starts, on a data folder that grows by a file a night."""

import os
import random
import signal
import sys
import threading
import time

from harness import AGAIN, BAD_DATA, main, test
from nightly import SLOW, Nights, check_model

READINGS = 10000


class Reader(threading.Thread):
    """Opens the live model over and over, as a service would that uses it."""

    def __init__(self, models):
        super().__init__(daemon=True)
        self.models, self.count, self.seen, self.wrong = models, 0, set(), []
        self.ending = threading.Event()

    def run(self):
        while not self.ending.is_set() or self.count < READINGS:
            try:
                self.seen.add(check_model(self.models))
            except Exception as error:  # whatever it is, it is what the test is about
                self.wrong.append(repr(error))
            self.count += 1
            if not self.ending.is_set():
                time.sleep(0.001)

    def end(self):
        self.ending.set()
        self.join()
        assert not self.wrong, f'{len(self.wrong)} of {self.count} readings: {self.wrong[:3]}'
        assert self.count >= READINGS


def silent(finished):
    assert finished.status == 0 and not finished.stdout and not finished.stderr, finished


def good_night(nights, night, **options):
    """A new file, and a new version that nobody hears of."""
    before = nights.live() if (nights.state / 'models').exists() else 0
    nights.add(night, **options)
    silent(nights.retrain('--cron'))
    assert nights.live() > before


def night_of_mislabelled_data(nights, night):
    before = nights.live()
    nights.add(night, rows=1500, mislabelled=True)
    refused = nights.retrain('--cron')
    assert refused.status == BAD_DATA and not refused.stdout, refused
    assert 'accuracy >= 0.7 does not hold' in refused.stderr, refused
    assert nights.live() == before
    assert len(nights.of('refused')) == 1


def night_without_new_data(nights):
    before, runs = nights.live(), len(nights.runs())
    silent(nights.retrain('--cron'))
    assert (nights.live(), len(nights.runs())) == (before, runs)


def night_of_kills(nights, night):
    """The coordinator dies three times, the last time for good."""
    before = nights.live()
    nights.add(night)
    for _ in range(2):
        process = nights.start('--cron', **SLOW)
        time.sleep(random.uniform(0.05, 0.8))
        process.popen.kill()
        process.popen.wait()
    nights.kill_in_training('--cron')
    assert nights.live() == before


def night_after(nights):
    """What was killed is finished, and its model goes live."""
    before, runs = nights.live(), len(nights.runs())
    finished = nights.retrain('--cron')
    assert finished.status == 0 and not finished.stdout, finished
    assert nights.live() > before
    assert len(nights.runs()) == runs, 'another run was begun'
    assert nights.runs()[-1]['state'] == 'ended'


def night_of_two_starts(nights, night):
    nights.add(night)
    first = nights.start('--cron', **SLOW)
    first.until(lambda: nights.step(first) >= 1, 'a step')
    os.kill(first.pid, signal.SIGSTOP)  # nobody can wait for its end
    try:
        second = nights.retrain('--cron')
    finally:
        os.kill(first.pid, signal.SIGCONT)
    assert second.status == AGAIN, second
    assert f'already running, pid {first.pid}' in second.stderr, second
    silent(first.wait())
    assert nights.live() == nights.runs()[-1]['run']


@test
def ten_nights_publish_seven_versions_and_the_live_model_is_whole_at_every_instant(folder):
    nights = Nights(folder)
    good_night(nights, 1, rows=600)
    reader = Reader(nights.state / 'models')
    reader.start()
    good_night(nights, 2)
    night_of_mislabelled_data(nights, 3)
    nights.add(3)  # the labels are put right
    good_night(nights, 4)
    night_without_new_data(nights)
    night_of_kills(nights, 6)
    night_after(nights)
    night_of_two_starts(nights, 8)
    good_night(nights, 9)
    good_night(nights, 10)
    reader.end()
    assert len(nights.published()) == 7, nights.runs()
    assert len(nights.of('live')) == 1 and nights.of('live') == [nights.live()]
    assert len(nights.of('refused')) == 1
    assert reader.seen <= {run['model_sha256'] for run in nights.runs()}
    assert len(list((nights.state / 'packs').glob('*.set'))) == 1


if __name__ == '__main__':
    sys.exit(main())
