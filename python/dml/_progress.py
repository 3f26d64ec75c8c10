"""A line on standard error that shows what a call does, as tqdm shows it: in a terminal and in a notebook, and
nowhere else by default."""

import os
import shutil
import sys
import time

EVERY_SECONDS = 0.1


def is_watched():
    return sys.stderr is not None and (sys.stderr.isatty() or 'ipykernel' in sys.modules)


class Progress:
    def __init__(self, wanted):
        self.wanted = is_watched() if wanted is None else bool(wanted)
        self.began, self.shown, self.width, self.last = time.monotonic(), 0.0, 0, None

    def __enter__(self):
        return self

    def show(self, text):
        self.last = text
        if self.wanted and time.monotonic() - self.shown >= EVERY_SECONDS:
            self.put(text)

    def put(self, text):
        """The line is never longer than the terminal, which could not take it back."""
        seconds = int(time.monotonic() - self.began)
        line = f'dml [{seconds // 60:02}:{seconds % 60:02}] {text}'[:shutil.get_terminal_size().columns - 1]
        sys.stderr.write('\r' + line.ljust(self.width))
        sys.stderr.flush()
        self.shown, self.width = time.monotonic(), len(line)

    def __exit__(self, *_):
        if self.wanted and self.last is not None:
            self.put(self.last)
            sys.stderr.write(os.linesep)
            sys.stderr.flush()
