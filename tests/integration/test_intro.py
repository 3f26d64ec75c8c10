#!/usr/bin/env python3
"""The first hour of dml-intro(7): each command of the page, with its answer."""

import os
import re
import shutil
import subprocess
import sys

from harness import BUILD, SOURCE, main, test

PAGE = SOURCE / 'man/dml-intro.7'


def commands_of(page):
    """(command, lines of its answer) in the order of the page."""
    found = []
    for block in re.findall(r'^\.Bd -literal.*?\n(.*?)^\.Ed', page, re.M | re.S):
        for line in block.replace('\\e', '\\').replace('\\&', '').splitlines():
            if line.startswith('$ '):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def answers(told, output):
    """Whether the output is as the page tells: `...` is anything, alone on a line any lines."""
    pattern = '\n'.join(re.escape(line).replace(re.escape('...'), '.*' if line != '...' else '[^\0]*') for line in told)
    return re.fullmatch(pattern, output.rstrip('\n'))


@test
def each_command_of_the_introduction_has_the_answer_that_is_told(folder):
    shutil.copy(SOURCE / 'examples/wdbc.csv', folder)
    environment = {**os.environ, 'PATH': f'{BUILD}:{os.environ["PATH"]}', 'LC_ALL': 'C.UTF-8'}
    commands = commands_of(PAGE.read_text())
    assert len(commands) > 8, commands
    for command, told in commands:
        done = subprocess.run(command, shell=True, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0 and answers(told, done.stdout), f'{command}:\n{done.stdout}\nand not\n' + '\n'.join(told)


if __name__ == '__main__':
    sys.exit(main())
