#!/usr/bin/env python3
"""The machines that other tests use do what these rely on."""

import pathlib
import signal
import subprocess
import sys

from machines import BIN, SHARED, Network, is_alive, wait_for
from harness import main, test

PYTHON = sys.executable
# Says, when asked, whether a datagram has come.
RECEIVE = '''import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("0.0.0.0", 7)); s.setblocking(False); print("bound", flush=True); input()
try: s.recv(9); print("came")
except BlockingIOError: print("nothing came")
'''
SEND = '''import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
try: s.sendto(b"x", (sys.argv[1], 7))
except OSError: pass
'''


def reaches(sender, receiver):
    """On one machine of ours a packet is there when it was sent, but for the first: it asks for the
    receiver's address."""
    with subprocess.Popen(['nsenter', '-t', str(receiver.init), '-n', PYTHON, '-c', RECEIVE],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == 'bound\n'
        for _ in range(2):
            sender.on_net(PYTHON, '-c', SEND, receiver.address)
        print(file=process.stdin, flush=True)
        return process.stdout.readline() == 'came\n'


def check_both_ways(one, other, there, back):
    """A cable that was plugged in again takes a moment."""
    wait_for(lambda: (reaches(one, other), reaches(other, one)) == (there, back),
             f'{one} reaches {other}: {there}, and back: {back}')


@test
def a_machine_has_a_name_processes_and_files_of_its_own(folder):
    with Network(2) as network:
        (network.shared / 'file').write_text('of all')
        h1, h2 = network.machines
        h1.run('touch', '/tmp/private')
        seen = h1.run('ssh', '-o', 'BatchMode=yes', 'h2',
                      f'uname -n; echo $$; ls /tmp; cat {SHARED}/file; {BIN}/dml-shard --version')
        name, pid, *rest = seen.splitlines()
        assert name == 'h2' and int(pid) < 1000, seen
        assert rest[0].startswith('of all') and 'dml-shard' in rest[0], seen
        assert not pathlib.Path('/tmp/private').exists()


@test
def a_machine_that_is_apart_sees_nothing_of_the_others(folder):
    with Network(2, apart=True) as network:
        (network.shared / 'file').write_text('of one')
        h1, h2 = network.machines
        h1.run('sh', '-c', 'echo mine >/var/tmp/private')
        assert h1.run('cat', SHARED / 'file') == 'of one'
        places = SHARED, '/var/tmp', network.folder
        assert not [place for place in places if h2.run('sh', '-c', f'ls {place} || true')]
        assert 'dml-shard' in h2.run(BIN / 'dml-shard', '--version')
        h1.fill_disk()
        assert h1.start('sh', '-c', 'echo more >/var/tmp/more').wait().status != 0
        h1.drain_disk()
        h1.run('sh', '-c', 'echo more >/var/tmp/more')
        assert len(h1.files()) == 2 and not h2.files()
        h1.power_off()
        h1.power_on()
        assert not h1.files() and h1.run('cat', SHARED / 'file') == 'of one'


@test
def a_fault_of_a_link_is_what_its_name_says(folder):
    with Network(3) as network:
        h1, h2, h3 = network.machines
        check_both_ways(h1, h2, True, True)
        h2.cut('out')
        check_both_ways(h1, h2, True, False)
        h2.heal()
        h2.cut('in')
        check_both_ways(h1, h2, False, True)
        h2.heal()
        h2.cut('both', [h1])
        check_both_ways(h1, h2, False, False)
        check_both_ways(h3, h2, True, True)
        h2.heal()
        h2.unplug()
        check_both_ways(h1, h2, False, False)
        h2.heal()
        check_both_ways(h1, h2, True, True)


@test
def a_machine_without_power_has_no_process_and_comes_back_empty(folder):
    with Network(2, remote_storage=True) as network:
        h1, h2 = network.machines
        sleeper = h2.start('sleep', '1000')
        wait_for(lambda: h2.processes('sleep'), 'it sleeps')
        h2.power_off()
        sleeper.wait(10)
        h2.power_on()
        assert not h2.processes('sleep') and reaches(h1, h2)
        h2.run('test', '-d', SHARED)


@test
def what_is_started_on_a_machine_ends_with_the_test(folder):
    """However the test ends."""
    program = (f'import sys; sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})\n'
               'from machines import Network\n'
               f'import tempfile; tempfile.tempdir = {str(folder)!r}\n'
               'with Network(2) as network:\n'
               '    network.machines[0].start("sleep", "1000")\n'
               '    print(*[machine.init for machine in network.all()], flush=True)\n'
               '    input()\n')
    process = subprocess.Popen([PYTHON, '-c', program], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    inits = process.stdout.readline().split()
    assert len(inits) == 3, inits
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_for(lambda: not any(map(is_alive, inits)), 'they end')


if __name__ == '__main__':
    sys.exit(main())
