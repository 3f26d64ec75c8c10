"""The scenes that test_failpoints.py walks: jobs in which something goes wrong anyway; and the places
that they must come to. A place is a role and a failpoint: shard.rows_taken.
"""

import re
import signal
import time

from faults import MINIBATCHES, PRECONDITIONED, REPLICAS, flip, is_free, kill
from harness import AGAIN, BAD_DATA, COORDINATOR, CREATE, IO, emulated_for_auto, run

# `auto` takes the emulated device in place of a GPU.
DEVICES = emulated_for_auto()

SLOW = {'DML_SHUFFLE': '7', 'DML_PAUSE_US': '10000'}
CHUNKS = 21  # that the rows of a job are in


def slow(chunks):
    """An evaluation of so many chunks by two replicas takes more than 100 ms, so it is journalled."""
    return {**SLOW, 'DML_PAUSE_US': str(500000 // chunks)}


class Scene:
    """A job, what goes wrong in it anyway, and how often the command is given for that."""

    def __init__(self, name, rules='', starts=1, environment=None, settings=None, drive=None,
                 warm=False, anew=(), kind=None):
        self.name, self.rules, self.starts, self.warm, self.kind = name, rules, starts, warm, kind
        self.anew = anew  # places that begin so are walked here though another scene came to them
        self.environment = environment or {}
        self.settings = {'checkpoint_seconds': 0, 'max_steps': 12, **(settings or {})}
        self.drive = drive or go_on


def go_on(run, scene, reruns, **environment):
    """Starts until the end, and again while the process was killed or a write failed."""
    run.start(**environment)
    return to_the_end(run, scene, reruns, **environment)


def to_the_end(run, scene, reruns, **environment):
    allowed = scene.starts - 1 + reruns
    while True:
        finished = run.now.wait()
        if finished.status == 0:
            return finished.json
        assert finished.status in (-signal.SIGKILL, CREATE, IO), f'ended with {finished.status}'
        assert finished.status < 0 or 'dml-coordinator: ' in finished.stderr, 'no reason given'
        assert allowed, 'the command had to be given too often'
        allowed -= 1
        run.start(**environment)


def with_damage(run, scene, reruns, **environment):
    """A byte of a chunk is wrong: that is said, and what is right again goes on."""
    pack(run)
    for path in (run.state / 'packs').glob('*.set'):
        flip(path)
    run.start(**environment)
    while True:
        finished = run.now.wait()
        if finished.status == BAD_DATA:
            break
        assert finished.status == -signal.SIGKILL and reruns, f'ended with {finished.status}'
        reruns -= 1
        run.start(**environment)
    assert '.set' in finished.stderr, 'the damaged file is not named'
    for path in (run.state / 'packs').glob('*.set'):
        path.unlink()
    return go_on(run, Scene(''), reruns, **environment)


def pack(run_):
    finished = run(COORDINATOR, 'pack', run_.command[2], '--state', run_.state)
    assert finished.status == 0, finished


def with_two(run, scene, reruns, **environment):
    """The lock is lost: another coordinator takes over and the first finds itself fenced out. The
    replicas stand still until then, so that the first does not come to its end before."""
    fired = environment['DML_FAILPOINT_ONCE']
    first = run.start(**environment)
    rule = environment['DML_FAILPOINT'].count(',')
    while first.popen.poll() is None and not (exists(f'{fired}.{rule}') and
                                              is_free(run.state / 'lock')):
        time.sleep(0.01)
    standing = run.of_role('replica')
    run.start(**environment)
    finished = first.wait()
    for pid in standing:
        kill(pid, signal.SIGCONT)
    result = to_the_end(run, scene, reruns, **environment)
    assert finished.status in (AGAIN, -signal.SIGKILL), f'the first ended with {finished.status}'
    return result


def exists(path):
    try:
        open(path).close()
        return True
    except OSError:
        return False



# ---- kinds of runs ----

# With vectors of rows, over working sets, in strips of columns: settings, and what such a run comes to
# that others do not. In each kind a shard is lost when a step is durable, and the coordinator in an
# evaluation that is journalled.
DIRECTIONS = {'directions': 4, 'history': 3, 'precondition': 'none'}
KINDS = {
    'common directions': (DIRECTIONS, {'SQUARES', 'rows_taken', 'rows_advanced'}),
    'working sets': ({'l1': 2e-4, 'l2': 0}, {'SQUARES', 'EXPONENTS'}),
    'tiles': ({**DIRECTIONS, 'strip_columns': 2500}, {'SQUARES', 'rows_taken', 'rows_advanced'}),
    'tiles of a network': ({'objective': 'network', 'strip_columns': 2500},
                           {'EXPONENTS', 'rows_taken', 'upper_fetched'}),
}
OF_COORDINATOR = ('coordinator.send_', 'coordinator.receive_', 'coordinator.state_')
OF_ALL = ('shard.', 'replica.', *OF_COORDINATOR)


def scenes_of(kind):
    settings = {**KINDS[kind][0], 'portion_chunks': 1}
    yield Scene(f'a shard is lost, {kind}', settings={**settings, 'max_steps': 8},
                rules='shard.receive_PROGRAM:30:kill', anew=OF_ALL, kind=kind)
    strips = 4 if 'strip_columns' in settings else 1
    yield Scene(f'the coordinator is lost, {kind}', starts=2,
                settings={**settings, 'max_steps': 1, 'flush_ms': 20},
                environment=slow(CHUNKS * strips),
                rules='coordinator.state_accept:5:kill',
                anew=('shard.send_HOLDING', *OF_COORDINATOR), kind=kind)


# ---- all scenes ----

SCENES = [
    Scene('plain', settings={'on_publish': 'true', 'holdout': 0.2}),
    Scene('scaled'),
    Scene('in coordinates', settings={'standardise': True}),
    Scene('a shard of a network is lost', rules='shard.receive_PROGRAM:9:kill',
          settings={'objective': 'network', 'portion_chunks': 1},
          anew=('replica.receive_', 'replica.send_')),
    Scene('layers of a network are mixed',
          settings={'objective': 'network', 'precondition': 'kronecker', 'features': 60}),
    Scene('a shard is lost among minibatches', rules='shard.receive_PROGRAM:9:kill',
          settings={**MINIBATCHES, 'portion_chunks': 1, 'max_steps': 2},
          anew=('shard.checkpoint_', 'shard.restore_', 'shard.receive_', 'shard.send_')),
    Scene('the coordinator is lost among minibatches', starts=2,
          rules='coordinator.send_EVALUATE:60:kill',
          settings={**MINIBATCHES, 'portion_chunks': 1, 'max_steps': 2},
          anew=('coordinator.state_', 'coordinator.send_', 'coordinator.receive_')),
    Scene('it starts from a model', warm=True),
    Scene('a path', settings={'l2': [1e-2, 1e-3, 1e-4], 'holdout': 0.2, 'max_steps': 5},
          anew=('coordinator.start_', 'coordinator.model_', 'coordinator.run_ended',
                'coordinator.publish_')),
    Scene('a shard with a preconditioner is lost', rules='shard.factor_done:2:kill',
          settings={**PRECONDITIONED, 'portion_chunks': 1},
          anew=('shard.checkpoint_', 'shard.restore_', 'shard.retain_', 'shard.file_',
                'shard.send_RESULT', 'shard.send_STAGED')),
    Scene('a shard with bounds is lost', rules='shard.receive_PROGRAM:9:kill',
          settings={'features': 60, 'portion_chunks': 1,
                    'bounds': ['1-20 = [-0.1, 0.1]', '30 = [0, inf]']}),
    Scene('a shard that finds errors of estimates is lost', rules='shard.covariance_done:1:kill',
          settings={'features': 60, 'portion_chunks': 1, 'summary': 'robust'},
          anew=('shard.checkpoint_', 'shard.covariance_', 'shard.restore_')),
    Scene('columns nearly follow from others', settings={'objective': 'powers', 'max_steps': 40},
          anew=('coordinator.refine', 'coordinator.model_', 'coordinator.run_ended')),
    Scene('the coordinator dies while it finds errors', rules='coordinator.single_errors:2:kill',
          starts=2, settings={'features': 60, 'portion_chunks': 1, 'summary': 'robust',
                              'summary_columns': ['1', '2', '3']},
          anew=('coordinator.model_', 'coordinator.single_')),
    Scene('a shard is lost', rules='shard.receive_PROGRAM:9:kill'),
    Scene('the coordinator is lost', rules='coordinator.state_accept:10:kill', starts=2,
          environment=slow(CHUNKS),
          settings={'max_steps': 2, 'portion_chunks': 1, 'flush_ms': 20}),
    Scene('a replica is late', rules='replica.send_FLUSHED:4:delay:400', environment=SLOW,
          settings={'max_steps': 8, 'portion_chunks': 2, 'flush_ms': 20}),
    Scene('devices are lost', environment=DEVICES,
          rules='replica0.device_lost@send_READY:9:hit,shard0.device_lost@send_READY:20:hit',
          settings={'max_steps': 4, 'features': 60, 'precondition': 'none'}),
    Scene('a chunk is damaged', settings={'max_steps': 5}, drive=with_damage),
    Scene('the lock is lost', drive=with_two, environment=SLOW, settings={'max_steps': 4},
          rules=','.join([*(f'replica{i}.receive_EVALUATE:3:stop' for i in range(REPLICAS)),
                          'coordinator.lock_released:40:hit'])),
    *(scene for kind in KINDS for scene in scenes_of(kind)),
]


# ---- places ----

# Who may come to the failpoints that begin so; of messages their own table says it.
ROLES = {
    'coordinator': ('derived_', 'epoch_', 'file_', 'folder_', 'launch_', 'lock_', 'model_', 'name_', 'pack_',
                    'prune_', 'publish_', 'refine', 'run_', 'score', 'single_', 'start_', 'state_',
                    'store_', 'sweep_'),
    'shard': ('checkpoint_', 'covariance_', 'device_', 'factor_', 'fence_', 'file_', 'folder_',
              'heartbeat', 'restore_', 'retain_', 'rows_'),
    'replica': ('device_', 'heartbeat', 'scratch_', 'upper_'),
}
LETTERS = {'C': 'coordinator', 'S': 'shard', 'R': 'replica'}

# Walked elsewhere: only retrain comes to the first (test_retrain.py), only prune to the second
# (test_prune.py), only workers that someone else started under the name of a host to the third
# (test_loop.py), only replicas with scratch to the fourth (test_scratch.py), only `publish` with
# another threshold to the next two (test_derive.py), only replicas that do not see the state folder to
# the messages for rows (test_rows_by_message.py), only such shards to those for files of steps
# (test_hosts_apart.py).
WALKED_ELSEWHERE = {'coordinator.model_remove', 'coordinator.prune_remove', 'coordinator.name_lookup',
                    'replica.scratch_write', 'coordinator.derived_model', 'coordinator.derived_run',
                    'replica.send_READ_SET', 'coordinator.receive_READ_SET', 'coordinator.send_SET_BYTES',
                    'replica.receive_SET_BYTES'} | {
                        f'{role}.{way}_{message}' for role in ('coordinator', 'shard') for way in ('send', 'receive')
                        for message in ('READ_FILE', 'FILE_BYTES', 'NEEDED')}

# Visited as a rule: a coordinator that was replaced is told so by a worker, unless its own look at the
# lock file comes first. test_host.c holds that a worker tells it.
BY_CHANCE = {'REFUSED'}

# No kind of run comes there, or only in long evaluations.
NO_KIND = {'COORDINATES', 'FACTORS', 'LIMITS', 'START', 'FAILED', 'covariance_done', 'factor_begin',
           'factor_done', 'device_memory', 'device_launch', 'device_lost', 'device_hang',
           'publish_announced', 'refine', 'score', 'single_errors', 'start_write', 'start_written',
           'sweep_begun', 'sweep_ended'}
LONG = {'PING', 'PONG', 'DROP'}


def what(place):
    """A failpoint; of those of messages the message."""
    return re.sub('.*[.](send_|receive_)?', '', place)


def places_of(failpoints):
    """All that exist, of what `--list-failpoints` says: a dict of names to kinds and texts."""
    for name, (_, text) in failpoints.items():
        message = re.fullmatch('(send|receive)_[A-Z_]+', name)
        ways = re.findall('([CSR])→([CSR])', text.partition(':')[0]) if message else ()
        roles = {LETTERS[way[message[1] == 'receive']] for way in ways}
        yield from (f'{role}.{name}' for role in roles | {role for role in ROLES
                                                           if name.startswith(ROLES[role])})


def places_of_kind(kind, places):
    """Of all places those that such a run comes to."""
    own = set().union(*(own for _, own in KINDS.values())) - KINDS[kind][1]
    return {place for place in places
            if place not in WALKED_ELSEWHERE and what(place) not in NO_KIND | own}
