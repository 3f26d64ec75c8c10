"""Runs a command on a terminal of its own and keeps what a person would see there."""

import codecs
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import threading
import time

from harness import DEADLINE_SECONDS

ESCAPE = re.compile(r'\x1b\[\??[\d;]*[A-Za-z]')


class Screen:
    """Characters where the codes that the programs use put them. Lines that wrap are kept as one."""

    def __init__(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.lines, self.row, self.column, self.wraps = [''], 0, 0, True

    def put(self, text):
        for part in re.split(r'(\x1b\[\??[\d;]*[A-Za-z]|[\r\n])', text):
            self.take(part)

    def take(self, part):
        if part == '\r':
            self.column = 0
        elif part == '\n':
            self.down()
        elif part in ('\x1b[?7l', '\x1b[?7h'):
            self.wraps = part.endswith('h')
        elif part == '\x1b[H':
            # The screen is the last lines of all there were.
            self.row, self.column = max(0, len(self.lines) - self.rows), 0
        elif part == '\x1b[K':
            self.lines[self.row] = self.lines[self.row][:self.column]
        elif part == '\x1b[J':
            self.lines[self.row] = self.lines[self.row][:self.column]
            self.lines[self.row + 1:] = []
        elif not part.startswith('\x1b'):
            for character in part:
                self.write(character)

    def down(self):
        self.row += 1
        if self.row == len(self.lines):
            self.lines.append('')

    def write(self, character):
        if self.column >= self.columns and not self.wraps:
            return
        line = self.lines[self.row].ljust(self.column)
        self.lines[self.row] = line[:self.column] + character + line[self.column + 1:]
        self.column += 1

    def text(self):
        return '\n'.join(line.rstrip() for line in self.lines).rstrip('\n')


class OnTerminal:
    """A command whose standard output and error are a terminal. What it wrote is in `written`, a
    list of (columns at that moment, text)."""

    def __init__(self, *command, rows=24, columns=80, cwd=None, **environment):
        self.master, slave = pty.openpty()
        self.columns = columns
        self.screen = Screen(rows, columns)
        self.written = []
        self.resize(rows, columns)
        self.popen = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=slave, stderr=slave,
            cwd=cwd, start_new_session=True,
            env={key: value for key, value in {**os.environ, 'TERM': 'xterm', 'NO_COLOR': '',
                                               **environment}.items() if value is not None})
        os.close(slave)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))
        self.columns = self.screen.columns = columns

    def read(self):
        decoder = codecs.getincrementaldecoder('utf-8')()
        while True:
            try:
                data = os.read(self.master, 65536)
            except OSError:  # EIO: nobody has the other end any more
                return
            text = decoder.decode(data)
            self.written.append((self.columns, text))
            self.screen.put(text)

    @property
    def text(self):
        """All that was written."""
        return ''.join(text for _, text in self.written)

    def until(self, condition, what):
        end = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < end and self.popen.poll() is None, f'{what}: {self.text!r}'
            time.sleep(0.02)

    def wait(self):
        status = self.popen.wait(DEADLINE_SECONDS)
        self.reader.join(DEADLINE_SECONDS)
        os.close(self.master)
        return status

    def end(self):
        """Kills what is left, the command's own workers included."""
        if self.popen.poll() is None:
            os.killpg(self.popen.pid, signal.SIGKILL)
            self.popen.wait()
