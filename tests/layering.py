#!/usr/bin/env python3
"""Checks that dependencies go one way only, as doc/ARCHITECTURE.md describes."""

import re
import sys

import source
import survey

# What a folder may include besides its own files: folders, or single headers; base first.
MAY_INCLUDE = {
    'base': [],
    'wire': ['base', 'device/find.h'],
    'device': ['base'],
    'numeric': ['base', 'device/kernel.h'],
    'data': ['base', 'numeric/clones.h', 'numeric/exact.h', 'numeric/fixed.h',
             'numeric/places.h', 'numeric/special.h'],
    'plugin': ['base'],
    'objective': ['base', 'device', 'numeric', 'plugin/plugin.h'],
    'model': ['base', 'data/set/holdout.h', 'data/text/number.h', 'data/pack/pack.h', 'data/set/set.h', 'data/set/statistics.h',
              'data/source/input.h', 'data/source/paths.h', 'data/source/rows.h', 'data/source/source.h',
              'data/table/spelling.h', 'data/table/table.h', 'numeric/dense.h', 'numeric/exact.h', 'numeric/inverse.h',
              'numeric/orthogonal.h', 'numeric/special.h', 'numeric/tails.h', 'objective/distribution.h',
              'objective/block.h', 'objective/family.h', 'objective/objective.h', 'objective/shape.h', 'plugin/plugin.h'],
    # What scoring takes, and of plug-ins what a library has in their place.
    'library': ['base', 'data/source/blocks.h', 'data/text/date.h', 'data/csv/table_row.h', 'data/text/number.h', 'model', 'objective/objective.h',
                'plugin/plugin.h'],
    'store': ['base'],
    # The types of programs and evaluations, and the algebra of small matrices.
    'optimizer': ['base', 'wire/evaluation.h', 'wire/listed.h', 'wire/program.h', 'numeric/dense.h'],
    # numeric/vector.h for `enum history_type`, objective/objective.h and shape.h for kinds and names: see
    # FORBIDDEN_CALLS.
    'coordinator': ['base', 'wire', 'store', 'optimizer', 'data', 'model', 'numeric/exact.h', 'numeric/fixed.h',
                    'numeric/dense.h', 'numeric/setup.h', 'numeric/vector.h',
                    'objective/family.h', 'objective/kronecker.h', 'objective/objective.h', 'objective/shape.h',
                    'objective/objectives.def', 'device/find.h', 'plugin/plugin.h'],
    # Losses of rows, in one file, and the proof of them.
    'shard': ['base', 'wire', 'device', 'numeric', 'objective/block.h', 'objective/objective.h'],
    # The other headers of objective/ are for its own files.
    'replica': ['base', 'wire', 'device', 'numeric', 'data', 'objective/block.h', 'objective/second.h',
                'objective/family.h', 'objective/halves.h', 'objective/kronecker.h', 'objective/objective.h',
                'objective/on_device.h', 'objective/shape.h', 'plugin/plugin.h'],
    # Only a build with CUDA compiles it, and no other folder includes it.
    'cuda': ['base', 'device', 'objective', 'shard'],
}

# What each folder holds: with the rules above the table in doc/ARCHITECTURE.md, which --table prints.
HOLDS = {
    'base': 'errors, log, limits, buffers, files, text, hashes, clock, random numbers, rows of data, the '
            'layout and scaling of parameters',
    'wire': 'the table of messages, frames, peers, TLS, shared memory, programs of vector operations',
    'device': 'memory, queues and kernels of devices; the emulated device',
    'numeric': 'exact sums, fixed point, vector kernels, small dense algebra',
    'data': 'readers of files, packs, merged sets of chunks',
    'plugin': "libraries of users (dml/objective.h), in separate processes",
    'objective': 'losses, model families, their first and second derivatives',
    'model': 'models on disk, exports, scoring, statistics of fits',
    'library': 'libdml, which scores (dml/model.h)',
    'store': 'the SQLite database',
    'optimizer': 'L-BFGS and Downpour, without I/O',
    'coordinator': 'main, and the driver between optimizer, dispatch and machine; rooms',
    'shard': 'registers, vectors of rows, programs, staging and folding, checkpoints',
    'replica': 'worker threads, portions, flushes',
    'cuda': 'GPUs, with the kernels of objective/ and shard/',
}

# The rooms of the coordinator: each may include those before it in this list, and the first two are
# its state machine. What lies in coordinator/ itself counts as the machine's.
COORDINATOR_ROOMS = {
    'dispatch': 'plan, portions, backup copies, flushes, commit decisions, rounds: one evaluation',
    'machine': 'membership, set-up, recovery, the state that outlives a process; hosts for workers',
    'job': 'the job file and the command line: tables of keys and options',
    'status': 'the table of figures, JSON of runs, metrics, the control socket, the status server and its page',
    'run': 'one run from data to model: sets, workers, the event loop, records',
    'sweep': 'paths, grids and folds; their results are in status',
    'publish': 'which model is live: the gate, the decision, which versions are kept',
    'command': 'the commands, and what several of them need',
}

# The rooms of data/, likewise. What lies in data/ itself knows all readers, and comes after them.
DATA_ROOMS = {
    'text': 'numbers, dates, time zones, letters and JSON in text',
    'table': 'kinds of columns, and their cells as features: words, spellings',
    'remote': 'patterns of paths, folders, and objects behind addresses, by libcurl',
    'source': 'a source file: options, bytes, blocks, batches of rows, dictionary of features',
    'csv': 'rows of tables from CSV and JSON Lines',
    'parquet': 'rows of tables from Parquet files',
    '': 'the pipeline over all readers; arrays of numbers, sparse matrices; the profile of a file for `init`',
    'pack': 'packs, and the container format of packs and sets',
    'set': 'packs merged into a set: sides, columns, classes, weights, chunks, moments',
}

# Folders with rooms: the rooms in their order, and the one that files in the folder itself count as.
ROOMS = {'coordinator': (COORDINATOR_ROOMS, 'machine'), 'data': (DATA_ROOMS, '')}

# What a room may not include although its folder may: dispatch does not know what asks for
# evaluations.
BLIND = {'coordinator/dispatch/': 'optimizer/'}

# Headers that show the inside of the coordinator's machine, and the only files that may include
# them: its parts, the driver, and the benches of their tests.
MACHINE = r'coordinator/(machine/)?\w+\.[ch]'
BENCHES = r'tests/unit/coordinator_bench\.c|bench/efficiency\.c'
PRIVATE = {
    'coordinator/dispatch/dispatch.h': rf'coordinator/dispatch/\w+\.c|{MACHINE}',
    'coordinator/machine/machine.h': rf'{MACHINE}|{BENCHES}|tests/unit/test_(takeover|tensors)\.c',
    'coordinator/driver.h': rf'{MACHINE}|{BENCHES}',
}

# Headers of libraries, and the only files that may include them.
LIBRARIES = {
    r'sqlite3\.h': r'store/',
    r'(cblas|lapacke|openblas_config)\.h': r'tests/|bench/',
    r'(cuda|cublas|cusparse).*\.h': r'cuda/backend\.cu|bench/',
    r'(event2/.*|event|evhttp|evdns)\.h':
        r'wire/(peer|host|host_run|dial)\.c|(coordinator|shard|replica)/main\.c'
        r'|coordinator/run/(launch_processes|cluster_loop|cluster_links|copier|loop|name_watch|row_explainer)\.c|coordinator/status/(control|http)\.c',
    r'xxhash\.h': r'base/hash\.c',
    r'openssl/.*\.h': r'base/hash\.c|wire/tls\.c',
    r'(zlib|zstd)\.h': r'data/(source|parquet)/',
    r'(snappy-c|lz4)\.h': r'data/parquet/parquet_codec\.c',
    r'curl/.*\.h': r'data/remote/libcurl\.h',
    r'uni(case|ctype)\.h': r'data/text/letters\.c',
    r'confuse\.h': r'coordinator/job/',
}

# While it trains the coordinator computes on no vector: it may not call what these headers declare,
# except the functions named here. objective/kronecker.h is not among them, with which
# coordinator/run/kronecker_scaling.c finds and applies the scaling of a network before and after the training.
FORBIDDEN_CALLS = {
    'numeric/vector.h': {'history_size'},
    'numeric/dense.h': {'dense_upper_solve', 'dense_upper_corner'},
    'objective/objective.h': {'objective_name', 'objective_from_name', 'objective_of', 'objective_find',
                              'objective_has_classes', 'objective_outputs'},
    'objective/shape.h': {'objective_bound_adapts', 'objective_layout', 'objective_of_plugin',
                          'objective_complete', 'objective_typical_margin', 'objective_typical_offset',
                          'objective_null_intercept', 'objective_parameters', 'objective_bound',
                          'objective_bound_of', 'objective_device_cannot', 'objective_second_bound',
                          'objective_exponents', 'objective_first_bounds', 'objective_read_layout',
                          'objective_scale_outputs', 'objective_unit', 'objective_loss_unit',
                          'objective_typical_second', 'objective_weight_unit', 'objective_gradient_unit',
                          'objective_output_unit', 'objective_source', 'network_unit',
                          'activation_name', 'activation_from_name', 'precision_name',
                          'precision_from_name'},
}

# What only one file may call: a pattern of the call, and the file.
ONE_PLACE = {
    r'_SC_NPROCESSORS_\w+|sched_getaffinity|get_nprocs': 'base/resources.c',
}

# Code that asks which family a model is of (objective/family.h), the files of the families, and
# others that may ask.
ASKS_FAMILY = re.compile(r'network(?:\.|->)layers|(?:shape|layout|job|model|old|after|before)(?:\.|->)plugin\b'
                         r'|model->network|network\.count')
OF_FAMILIES = re.compile(r'objective/(family|linear|plugin|kronecker)\.c|objective/(device_)?network\w*\.[ch]'
                         r'|model/famil(y\.h|ies\.c)|coordinator/job/family\.[ch]|plugin/.*|tests/.*|bench/.*')
MAY_ASK_FAMILY = {
    'coordinator/run/preview.c': 'checks the gradient of a plug-in before a run',
    'coordinator/run/shape.c': 'asks a plug-in for its tensors, once the data is known',
    'replica/main.c': 'starts the plug-in that the coordinator names',
}

# Failpoints that may stand at several places, because several code paths do the same thing. For any
# other failpoint, two places would count one visit twice.
ON_SEVERAL_PATHS = {'file_fsync', 'store_commit_full', 'store_committed_full', 'score'}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*', re.DOTALL)
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
CALL = re.compile(r'\b(\w+)\s*\(')
DECLARED = re.compile(r'^[a-z][\w\s\*]*?\b(\w+)\(', re.MULTILINE)


def includes(text):
    return INCLUDE.findall(COMMENT.sub('', text))


def upward_includes(path, text):
    """Project headers that the folder of `path` may not include."""
    folder = path.split('/')[0]
    if folder not in MAY_INCLUDE:
        return []
    allowed = MAY_INCLUDE[folder] + [folder]
    return [f'{path} includes {name}' for quote, name in includes(text)
            if quote == '"' and name != 'config.h'
            and name not in allowed and name.split('/')[0] not in allowed]


def rank_of_room(path):
    """The place of a file's room among those of its folder."""
    folder, *inner = path.split('/')
    rooms, itself = ROOMS[folder]
    return list(rooms).index(inner[0] if len(inner) > 1 else itself)


def unseen_includes(path, text):
    """Headers of a folder that a room is not to know of."""
    return [f'{path} includes {name}' for room, folder in BLIND.items() if path.startswith(room)
            for _, name in includes(text) if name.startswith(folder)]


def inward_includes(path, text):
    """Headers of later rooms of its folder that a file includes."""
    folder = path.split('/')[0]
    if folder not in ROOMS or path == 'coordinator/main.c':
        return []
    return [f'{path} includes {name}' for quote, name in includes(text)
            if quote == '"' and name.startswith(f'{folder}/') and rank_of_room(name) > rank_of_room(path)]


def looks_inside(path, text):
    """Private headers that are included by files outside their own parts."""
    return [f'{path} includes {name}' for quote, name in includes(text)
            if quote == '"' and name in PRIVATE and not re.fullmatch(PRIVATE[name], path)]


def strange_libraries(path, text):
    """Library headers included outside their one place."""
    if path.startswith(('tests/', 'bench/')):
        return []
    return [f'{path} includes <{name}>' for _, name in includes(text)
            for header, where in LIBRARIES.items()
            if re.fullmatch(header, name) and not re.match(where, path)]


def vector_calls(path, text, names):
    """Calls of kernels from the coordinator."""
    if not path.startswith('coordinator/'):
        return []
    called = set(CALL.findall(COMMENT.sub('', text)))
    return [f'{path} calls {name}()' for name in names if name in called]


def strange_calls(path, text):
    """Calls that only one file may make, found in another."""
    if path.startswith(('tests/', 'bench/')):
        return []
    return [f'{path} has {found[0]}, which is for {place}' for words, place in ONE_PLACE.items()
            if path != place and (found := re.search(words, COMMENT.sub('', text)))]


def asks_family(path, text):
    """Questions after the family of a model that are not a row of its table."""
    if OF_FAMILIES.fullmatch(path) or path in MAY_ASK_FAMILY:
        return []
    code = STRING.sub('""', COMMENT.sub('', text))
    return [f'{path} has {found}' for found in sorted(set(ASKS_FAMILY.findall(code)))]


def needless_leave(files):
    """Files that may ask after the family and do not."""
    texts = dict(files)
    return [f'{path} may ask after the family and does not' for path in MAY_ASK_FAMILY
            if not ASKS_FAMILY.search(STRING.sub('""', COMMENT.sub('', texts.get(path, ''))))]


def repeated_failpoints(files):
    """Failpoints at several places, which would count one visit twice."""
    places = {}
    for path, text in files:
        if not path.startswith(('tests/', 'bench/')):
            for name in re.findall(r'\bFAILPOINT_([a-z](?:\w*[a-z])?)\b', COMMENT.sub('', text)):
                places.setdefault(name, []).append(path)
    return [f'{name} stands in {", ".join(paths)}' for name, paths in places.items()
            if len(paths) > 1 and name not in ON_SEVERAL_PATHS]


def kernels():
    """Names of the functions that a coordinator may not call."""
    names = []
    for header, harmless in FORBIDDEN_CALLS.items():
        text = COMMENT.sub('', (source.ROOT / header).read_text())
        names += [name for name in DECLARED.findall(text)
                  if name not in harmless and not name.startswith('__')]
    return names


def unresolved(path, text):
    """Quoted includes that name no file below the root, and none in the folder of a test."""
    places = [source.ROOT] + [(source.ROOT / path).parent] * path.startswith('tests/')
    return [f'{path} includes "{name}", which is not there' for quote, name in includes(text)
            if quote == '"' and name != 'config.h'
            and not any((place / name).is_file() for place in places)]


def unlisted(files):
    """Sources that no Makefile fragment lists, as a source or as a program of that name: a release
    would lack them."""
    listed = {word for folder in source.FOLDERS for path in (source.ROOT / folder).rglob('*.mk')
              for word in re.findall(r'[\w./]+', path.read_text())}
    return [f'{path} is in no Makefile fragment' for path in files
            if path not in listed and path.removesuffix('.c') not in listed]


def circles(files):
    """Sources that need one another, anywhere in the product."""
    product = {path: text for path, text in files if path.split('/')[0] in survey.PRODUCT}
    return [', '.join(group) for group in survey.circles(product)]


def page_scripts():
    """The scripts of the status page in their order, as (path, text)."""
    listed = re.search(r'^scripts_of_page = ((?:.*\\\n)*.*)', (source.ROOT / 'coordinator/local.mk').read_text(), re.M)
    return [(path, (source.ROOT / path).read_text()) for path in re.findall(r'\S+\.js', listed[1])]


def has_its_own(code, name):
    """Whether a script has a variable, a parameter or a method of this name, which hides another's."""
    word = re.escape(name)
    return re.search(rf'^ +(?:const|let) [^;]*?\b{word}\b|\b{word}\b[^()\n]*\)? =>|^  {word}\(.*\) \{{$', code, re.M)


def early_uses(scripts):
    """Names that a script uses though only a later one defines them."""
    define = re.compile(r'^(?:async )?(?:function|class|const|let) ([\w$]+)', re.M)
    code = [re.sub(r"/\*(?:.|\n)*?\*/|//.*|'[^'\n]*'", '', text) for _, text in scripts]
    names = [set(define.findall(text)) for text in code]
    found = []
    for at, (path, _) in enumerate(scripts):
        used = set(re.findall(r'(?<![\w.$-])[A-Za-z_$][\w$]*(?!\w*:)', code[at]))
        later = set().union(*names[at + 1:]) - set().union(*names[:at + 1])
        found += [f'{path} uses {name}, which comes later' for name in sorted(used & later)
                  if not has_its_own(code[at], name)]
    return found


def grouped(names):
    """Folders and headers as Markdown; headers of one folder that end alike together, as a shell writes them."""
    groups = {}
    for name in names:
        folder, _, end = name.rpartition('/')
        stem, dot, ending = end.partition('.')
        groups.setdefault((folder, dot + ending) if dot else (name, '/'), []).append(stem)
    return ', '.join(f'`{folder}/{stems[0] if len(stems) == 1 else "{" + ",".join(stems) + "}"}{ending}`'
                     if ending != '/' else f'{folder}/' for (folder, ending), stems in groups.items())


def table():
    """The folders and rooms, in Markdown: chapter 4 of doc/ARCHITECTURE.md."""
    folders = [f'| `{folder}/` | {HOLDS[folder]} | {grouped(allowed[1:]) or "nothing"} |'
               for folder, allowed in MAY_INCLUDE.items()]
    rooms = [f'- `{folder}/{room}{"/" if room else ""}`{"" if room else " itself"}: {holds}'
             for folder, (rooms, _) in ROOMS.items() for room, holds in rooms.items()]
    return '\n'.join(['| folder | holds | may include, beside its own and base/ |', '|---|---|---|', *folders, '',
                      'A room may include the rooms of its folder above it:', '', *rooms])


def untold():
    """What chapter 4 of doc/ARCHITECTURE.md does not say of the rules as they are."""
    text = (source.ROOT / 'doc/ARCHITECTURE.md').read_text()
    return [f'it lacks: {line}' for line in table().splitlines() if line not in text]


def planted(names):
    """Every rule must notice a violation made for it."""
    seen = {
        'a role that includes another': upward_includes('shard/a.c', '#include "replica/b.h"\n'),
        'wire that includes a role': upward_includes('wire/a.c', '#include "shard/b.h"\n'),
        'a state machine that includes its I/O shell':
            inward_includes('coordinator/dispatch/plan.c', '#include "coordinator/run/cluster.h"\n'),
        'a room of data/ that includes a later one':
            inward_includes('data/text/a.c', '#include "data/source/source.h"\n'),
        'sources that need one another, one by a header that has no source': circles(
            [('shard/a.c', '#include "shard/b.h"\n'), ('shard/a.h', ''),
             ('shard/b.c', '#include "shard/parts.h"\n'), ('shard/b.h', ''),
             ('shard/parts.h', '#include "shard/a.h"\n')]),
        'headers that include one another': circles(
            [('shard/a.h', '#include "shard/b.h"\n'), ('shard/b.h', '#include "shard/a.h"\n')]),
        'a dispatch that knows the optimizer':
            unseen_includes('coordinator/dispatch/a.c', '#include "optimizer/lbfgs.h"\n'),
        'a dispatch that includes the machine':
            inward_includes('coordinator/dispatch/a.c', '#include "coordinator/machine/machine.h"\n'),
        'a status that includes a run':
            inward_includes('coordinator/status/a.c', '#include "coordinator/run/b.h"\n'),
        'an I/O shell that looks into the machine':
            looks_inside('coordinator/run/a.c', '#include "coordinator/machine/machine.h"\n'),
        'a simulator that looks into the machine':
            looks_inside('tests/sim/a.c', '#include "coordinator/machine/machine.h"\n'),
        'an optimizer that knows the set':
            upward_includes('optimizer/a.c', '#include "data/set/set.h"\n'),
        'a report that looks into the driver':
            looks_inside('coordinator/status/a.c', '#include "coordinator/driver.h"\n'),
        'a header not allowed alone': upward_includes('data/a.c', '#include "numeric/vector.h"\n'),
        'SQLite outside the store': strange_libraries('data/a.c', '#include <sqlite3.h>\n'),
        'libevent in a state machine':
            strange_libraries('coordinator/dispatch/plan.c', '#include <event2/event.h>\n'),
        'a kernel in the coordinator':
            vector_calls('coordinator/a.c', 'x = vector_dot(n, a, b);\n', names),
        'a failpoint that is passed twice': repeated_failpoints(
            [('shard/a.c', 'failpoint(FAILPOINT_b);'), ('shard/c.c', 'failpoint(FAILPOINT_b);')]),
        'a question after the family': asks_family('replica/a.c', 'if (shape->network.layers) f(shape->plugin);'),
        'a leave to ask after the family that nobody needs':
            needless_leave([(path, '/* shape->plugin */ "network.layers"') for path in MAY_ASK_FAMILY]),
        'a count of CPUs': strange_calls('replica/a.c', 'sysconf(_SC_NPROCESSORS_ONLN)'),
        'a script that uses a later one': early_uses([('a.js', 'const a = () => b(1);'),
                                                       ('b.js', 'function b(x) {\n}')]),
        'an objective in the coordinator':
            vector_calls('coordinator/a.c', 'objective_is_kronecker(0);\n', names),
    }
    return [f'not noticed: {what}' for what, found in seen.items() if not found]


def main():
    if sys.argv[1:] == ['--table']:
        print(table())
        return 0
    files = list(source.c_files())
    names = kernels()
    over = lambda rule, *more: [v for path, text in files for v in rule(path, text, *more)]
    return source.report([
        ('every rule notices a planted violation', planted(names)),
        ('folders include only what is below them', over(upward_includes)),
        ('rooms include only rooms before them', over(inward_includes)),
        ('dispatch does not know what asks for evaluations', over(unseen_includes)),
        ('the coordinator\'s machine is closed', over(looks_inside)),
        ('each library is used in its one place', over(strange_libraries)),
        ('no files of the product go in a circle', circles(files)),
        ('calls that belong to one file stand in no other', over(strange_calls)),
        ('no code asks which family a model is of', over(asks_family) + needless_leave(files)),
        ('a failpoint stands at one place', repeated_failpoints(files)),
        ('the coordinator calls no vector kernel and no objective', over(vector_calls, names)),
        ('the architecture has the table that --table prints', untold()),
        ('quoted includes are paths from the root', over(unresolved)),
        ('scripts of the page use only those before them', early_uses(page_scripts())),
        ('every source is in a Makefile fragment', unlisted([path for path, _ in files])),
    ])


if __name__ == '__main__':
    sys.exit(main())
