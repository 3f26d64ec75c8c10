#!/usr/bin/env python3
"""Bad input gives one clear message that says where, the right exit status, and nothing half
written."""

import gzip
import socket
import struct
import sys

from harness import (BAD_DATA, CONFIG, COORDINATOR, CREATE, PERMISSION, REPLICA, SHARD, UNAVAILABLE,
                     USAGE, Skip, dml, main, ordinary_user, run, small_data, small_job, test,
                     write_job)

GOOD = '1 1:0.5 3:2\n-1 2:1\n1 1:1\n-1 3:0.25\n'


def messages(finished):
    return [line for line in finished.stderr.splitlines() if line.strip()]


def assert_refused(finished, status, *said):
    """One message with every text of `said`; the exit status; no result."""
    assert finished.status == status, finished
    lines = messages(finished)
    assert lines, f'no message: {finished}'
    fitting = [line for line in lines if all(str(text) in line for text in said)]
    assert len(fitting) == 1, f'one line with {said} expected: {finished}'
    assert not finished.stdout.strip(), finished


def assert_nothing_half_written(state):
    """No model, and nothing beside packs and sets but what lies in the state folder itself."""
    left = [path for path in state.rglob('*') if path.is_file()
            and path.parent != state and path.suffix not in ('.pack', '.set')]
    assert not left, left
    assert not list(state.glob('models/*')), list(state.glob('models/*'))


def refused_data(folder, text, *said, name='bad.txt', **settings):
    """Training on one file of that text is refused, with exit status 65."""
    data = folder / name
    if isinstance(text, bytes):
        data.write_bytes(text)
    elif text is not None:
        data.write_text(text)
    job = write_job(folder, data=[name], **settings)
    assert_refused(dml('run', job), BAD_DATA, *said)
    assert_nothing_half_written(folder / 'job.state')
    assert not list((folder / 'job.state').rglob('*.set'))
    return list((folder / 'job.state').rglob('*.pack'))


def refused_line(folder, line, *said, before=GOOD, **settings):
    """A line of that text is refused by file and number, and nothing is packed."""
    number = before.count('\n') + 1
    packs = refused_data(folder, before + line + '\n' + GOOD, f'bad.txt:{number}', *said,
                         **settings)
    assert not packs, packs


# ---- files as other programs write them ----

@test
def lines_that_end_with_carriage_returns_alone_are_named(folder):
    refused_data(folder, 'a,b,y\r1,2,0\r3,4,1\r', 'carriage returns alone', "tr '")
    refused_data(folder, '1 1:2\r-1 2:3\r1 1:4\r', 'carriage returns alone', "tr '")


@test
def a_line_for_spreadsheets_alone_is_named(folder):
    for line in 'sep=;', 'SEP=;\r', '"sep=;"':
        refused_data(folder, f'{line}\na;b;y\n1;2;0\n3;4;1\n', 'bad.txt:1', 'take it out',
                     name='bad.txt', format='csv')


@test
def a_remark_above_a_table_is_answered_with_what_may_be_wrong(folder):
    refused_data(folder, 'exported by X\na,b,y\n1,2,0\n3,4,1\n', 'bad.txt:1', 'one column',
                 'csv.delimiter', format='csv')


@test
def a_page_in_the_place_of_a_table_is_named(folder):
    for page in '<!DOCTYPE html>\n<html><body>Log in, please</body></html>\n', '\n <HTML>\n<body>\n':
        refused_data(folder, page, 'bad.txt is a page of HTML')
    refused_data(folder, '%PDF-1.4\nsome 1:1\n', 'bad.txt is a PDF document')


@test
def a_table_whose_columns_nothing_parts_is_answered_with_what_may_be_wrong(folder):
    refused_data(folder, 'a b y\n1 2 0\n3 4 1\n', 'bad.txt:1', '"a" is not a finite number',
                 'csv.delimiter')
    refused_data(folder, 'a,b,y\n1,2,0\n3,4,1\n', 'bad.txt:1', 'does not have what csv.delimiter says',
                 csv={'delimiter': ';'})


@test
def a_label_that_is_left_out_is_named(folder):
    rows = 'a,b,y\n1,2,0\n3,4,1\n'
    refused_data(folder, rows, 'bad.txt:1', 'column "b" cannot be left out by csv.skip: it is the label',
                 csv={'label': 'b', 'skip': ['b']})
    refused_data(folder, rows, 'since it is the last; name that of the labels with csv.label',
                 csv={'skip': ['y']})


@test
def few_of_many_lines_that_are_skipped_are_shown(folder):
    (folder / 'bad.csv').write_text('a,y\n' + ''.join(f'{k},{k % 2}\n{k},\n' for k in range(40)))
    job = write_job(folder, data=['bad.csv'], bad_lines=40)
    finished = dml('run', job)
    assert finished.status == 0 and finished.stderr.count('skipped: ') == 10, finished
    assert 'skipped 40 malformed lines in all, of which the first 10 are shown' in finished.stderr, finished


@test
def numbers_with_signs_are_warned_of_unless_texts_are_meant(folder):
    rows = ''.join(f'"{k % 9 + 1},000.50",{k % 2}\n' for k in range(60))
    (folder / 'a.csv').write_text('price,y\n' + rows)
    finished = dml('run', '-q', write_job(folder, data=['a.csv'], csv={'label': 'y'}))
    assert finished.status == 0 and 'holds amounts such as "1,000.50"' in finished.stderr, finished
    job = write_job(folder, data=['a.csv'], csv={'label': 'y', 'categories': ['price']})
    finished = dml('run', '-q', job)
    assert finished.status == 0 and 'holds amounts' not in finished.stderr, finished


@test
def a_line_that_is_refused_tells_of_bad_lines(folder):
    refused_data(folder, 'a,y\n1,0\n2,\n3,1\n', 'bad.txt:3', 'the label is empty', 'bad_lines')
    refused_line(folder, '1 1:0.5 2:', 'bad_lines')


@test
def data_in_the_place_of_a_job_or_a_model_is_named(folder):
    for name in 'my table.csv', 'a.libsvm', 'b.csv.gz':
        (folder / name).write_text('a,y\n1,0\n2,1\n')
        for command in 'run', 'check', 'retrain':
            assert_refused(dml(command, folder / name), CONFIG, 'dml-coordinator init', name)
    small_data(folder)
    assert_refused(dml('predict', folder / 'b.csv.gz', folder / 'small.libsvm'), BAD_DATA,
                   'a model is a state folder')


@test
def a_job_in_the_place_of_its_model_is_answered_with_the_state_folder(folder):
    job, data = small_job(folder), folder / 'small.libsvm'
    assert_refused(dml('predict', job, data), BAD_DATA, 'holds no model')
    assert dml('run', job).status == 0
    for path in job, folder / 'job':
        assert_refused(dml('predict', path, data), BAD_DATA, f'did you mean `{folder}/job.state`?')
    tensors = folder / 'job.state/models/1/model.safetensors'
    tensors.rename(folder / 'kept')
    assert_refused(dml('predict', folder / 'job.state', data), BAD_DATA,
                   'job.state/models/current leads to 1, which holds no model any more')
    (folder / 'kept').rename(tensors)
    (folder / 'job.state/models/current').unlink()
    assert_refused(dml('predict', folder / 'job.state', data), BAD_DATA, 'holds no model yet, or no longer')


# ---- labels ----

@test
def a_third_label_is_answered_with_the_objective_that_fits(folder):
    classes = ''.join(f'{k % 7} 1:{k}\n' for k in range(1, 300))
    refused_data(folder, classes, '"3" is a third label', 'use objective = softmax')
    many = ''.join(f'{k} 1:{k}\n' for k in range(1, 300))
    refused_data(folder, many, '"3" is a third label', 'use objective = squared')
    fractions = '1 1:1\n2 1:2\n2.5 1:3\n'
    refused_data(folder, fractions, '"2.5" is a third label', 'use objective = squared')
    texts = 'a,1\nb,2\nc,3\n'
    refused_data(folder, texts, '"c" is a third label', 'use objective = softmax',
                 csv={'label': '1'})
    refused_data(folder, 'yes,1\nno,2\nYes,3\n', '"Yes" is a third label', 'write them alike',
                 csv={'label': '1'})


@test
def a_third_label_is_answered_with_the_column_that_it_is_in(folder):
    rows = 'bought,town,children\n' + ''.join(f'{k % 2},rome,{k % 5}\n' for k in range(50))
    refused_data(folder, rows, 'is a third label', 'column 3 (children)', 'csv.label')
    texts = 'bought,town\n' + ''.join(f'{k % 2},{"rome" if k % 3 else "oslo"}\n' for k in range(50))
    for objective in 'poisson', 'ordinal':
        refused_data(folder, texts, 'is a text', 'column 2 (town)', 'csv.label', objective=objective)


@test
def control_characters_of_the_data_are_escaped_in_messages(folder):
    evil = '\x1b[2J\x07\x9b\r'
    text = f'1,2,yes\n1,{evil}x,no\n'
    refused_data(folder, text, r'holds "\x1b[2J\x07\xc2\x9b\rx"')
    (folder / 'bad.txt').write_text(f'1,2,{evil}yes\n' + '1,3,no\n2,2,no\n' + text)
    finished = dml('run', folder / 'job.conf', '--set', 'bad_lines=1', '--set', 'objective=softmax')
    assert 'skipped: ' in finished.stderr and '\x1b' not in finished.stderr, repr(finished.stderr)
    for pack in (folder / 'job.state').rglob('*.pack'):
        said = dml('inspect', pack).stdout
        assert r'\x1b[2J' in said and '\x1b' not in said, repr(said)


# ---- LIBSVM ----

@test
def a_malformed_line_is_named(folder):
    refused_line(folder, '1 1:0.5 two:3')


@test
def a_pair_without_a_value_is_named(folder):
    refused_line(folder, '1 1:0.5 2:')


@test
def a_line_of_noise_is_named(folder):
    refused_line(folder, '\x01\x02\x03 \x04')


@test
def index_0_is_named(folder):
    refused_line(folder, '1 0:0.5 2:1')


@test
def an_index_over_the_limit_is_named(folder):
    refused_line(folder, f'1 1:0.5 {2 ** 48}:1')


@test
def an_index_over_64_bits_is_named(folder):
    refused_line(folder, f'1 1:0.5 {2 ** 64 + 1}:1')


@test
def a_repeated_index_is_named(folder):
    refused_line(folder, '1 2:0.5 2:1')


@test
def a_nan_is_named(folder):
    refused_line(folder, '1 1:nan')


@test
def an_infinity_is_named(folder):
    refused_line(folder, '1 1:inf')


@test
def a_number_beyond_double_is_named(folder):
    refused_line(folder, '1 1:1e999')


@test
def an_infinite_label_is_named(folder):
    refused_line(folder, 'inf 1:1', objective='squared')


# ---- labels ----

@test
def a_third_label_does_not_fit_two_classes(folder):
    refused_data(folder, GOOD + '5 1:1\n', 'classes')


@test
def a_text_is_no_target(folder):
    refused_data(folder, 'x,y\n1,2\n2,red\n3,4\n', 'red', format='csv', objective='squared')


@test
def one_class_only_is_refused(folder):
    refused_data(folder, '1 1:1\n1 2:1\n1 1:3\n', 'class')


@test
def one_class_only_is_refused_for_softmax(folder):
    refused_data(folder, '4 1:1\n4 2:1\n4 1:3\n', 'class', objective='softmax')


@test
def a_positive_label_that_does_not_occur_is_refused(folder):
    refused_data(folder, '1,a\n2,b\n', '"c"', format='csv', csv={'positive': 'c'})


# ---- CSV ----

CSV = '1,2,0\n3,4,1\n'


@test
def a_csv_row_with_a_missing_column_is_named(folder):
    refused_line(folder, '5,1', before=CSV, format='csv')


@test
def a_csv_row_with_an_extra_column_is_named(folder):
    refused_line(folder, '5,6,7,1', before=CSV, format='csv')


@test
def a_csv_field_that_is_no_number_is_named(folder):
    refused_line(folder, '5,six,1', before=CSV, format='csv')


@test
def an_empty_csv_label_is_named(folder):
    refused_line(folder, '5,7,', before=CSV, format='csv')


@test
def a_label_column_that_is_not_there_is_named(folder):
    refused_data(folder, 'a,b,y\n' + CSV, 'colour', format='csv', csv={'label': 'colour'})


@test
def a_column_to_skip_that_is_not_there_is_named(folder):
    refused_data(folder, 'a,b,y\n' + CSV, 'colour', format='csv', csv={'skip': ['colour']})


# ---- files ----

@test
def an_empty_file_is_named(folder):
    refused_data(folder, '', 'bad.txt')


@test
def a_file_of_blank_lines_is_named(folder):
    refused_data(folder, '\n\n\n', 'bad.txt')


@test
def a_missing_file_is_named(folder):
    refused_data(folder, None, 'bad.txt')


@test
def a_pattern_without_a_match_is_named(folder):
    refused_data(folder, None, 'part-*', name='part-*')


@test
def a_directory_is_named(folder):
    (folder / 'bad.txt').mkdir()
    refused_data(folder, None, 'bad.txt')


@test
def a_truncated_gz_is_named(folder):
    whole = gzip.compress(small_data(folder, rows=500).read_bytes())
    refused_data(folder, whole[:len(whole) // 2], 'bad.txt')


@test
def a_truncated_zst_is_named(folder):
    small_data(folder, rows=500)
    try:
        run('zstd', '-q', 'small.libsvm', cwd=folder)
    except FileNotFoundError:
        raise Skip('zstd is not installed') from None
    whole = (folder / 'small.libsvm.zst').read_bytes()
    refused_data(folder, whole[:len(whole) // 2], 'bad.txt')


@test
def damage_in_a_gz_is_named(folder):
    whole = bytearray(gzip.compress(small_data(folder, rows=500).read_bytes()))
    whole[-6] ^= 0x55  # in the checksum
    refused_data(folder, bytes(whole), 'bad.txt')


@test
def a_bad_second_file_is_named_and_the_first_is_not_lost(folder):
    (folder / 'a.txt').write_text(GOOD)
    (folder / 'b.txt').write_text(GOOD + '1 1:x\n')
    job = write_job(folder, data=['?.txt'])
    assert_refused(dml('run', job), BAD_DATA, 'b.txt:5')
    assert_nothing_half_written(folder / 'job.state')


@test
def bad_lines_within_the_number_allowed_are_skipped_and_reported(folder):
    (folder / 'bad.txt').write_text(GOOD + '1 1:x\n' + GOOD + '1 0:1\n')
    job = write_job(folder, data=['bad.txt'], bad_lines=2)
    finished = dml('run', job, '--json')
    assert finished.status == 0, finished
    assert finished.json['examples'] == 8, finished
    assert 'bad.txt:5' in finished.stderr and 'bad.txt:10' in finished.stderr, finished
    assert_refused(dml('run', job, '--set', 'bad_lines=1'), BAD_DATA, 'bad.txt:10')
    (folder / 'worse.txt').write_text('1 1:y\n' + GOOD + '1 1:x\n')  # each file may have so many
    assert dml('run', job, '--set', 'data={ "bad.txt", "worse.txt" }', '--json').json['examples'] == 12


@test
def a_damaged_pack_is_noticed(folder):
    job = small_job(folder)
    assert dml('pack', job).status == 0
    packs = [path for path in (folder / 'job.state').rglob('*') if path.suffix in ('.pack', '.set')]
    assert packs
    for path in packs:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
        assert_refused(dml('inspect', path), BAD_DATA, path.name)


@test
def a_damaged_pack_is_made_again_by_the_command_that_needs_it(folder):
    job = small_job(folder)
    quiet = dml('run', job, '--json').json['model_sha256']
    [pack] = (folder / 'job.state/packs').glob('*.pack')
    sound = pack.read_bytes()
    header, block = 24, sound.index(struct.pack('<d', 1.0))  # a label
    for words in ('run', job, '--fresh'), ('run', job, '--fresh', '--set', 'folds=2'), ('pack', job), \
            ('retrain', job):
        for at in header, block:
            damaged = bytearray(sound)
            damaged[at] ^= 1
            pack.write_bytes(damaged)
            again = dml(*words)
            assert again.status == 0 and dml('inspect', pack).status == 0, again
            if at == block:
                assert f'{pack} is damaged (the checksum of a block is wrong)' in again.stderr, again
    assert dml('run', job, '--fresh', '--json').json['model_sha256'] == quiet


@test
def a_file_that_is_no_pack_is_named(folder):
    (folder / 'x.pack').write_text(GOOD)
    assert_refused(dml('inspect', folder / 'x.pack'), BAD_DATA, 'x.pack')


@test
def a_file_that_is_no_model_is_named(folder):
    data = small_data(folder)
    (folder / 'model.safetensors').write_text('nothing of the kind')
    (folder / 'model.json').write_text('{}')
    assert_refused(dml('predict', folder / 'model.safetensors', data), BAD_DATA,
                   'model.safetensors')


# ---- job files ----

def refused_job(folder, line, *said):
    """A job file with that third line is refused by file, line and what it says."""
    small_data(folder)
    job = folder / 'job.conf'
    job.write_text(f'# a job\ndata = {{ "small.libsvm" }}\n{line}\n')
    for command in 'run', 'check':
        assert_refused(dml(command, job), CONFIG, 'job.conf:3', *said)
    assert not (folder / 'job.state').exists()


@test
def an_unknown_key_is_named(folder):
    refused_job(folder, 'colour = 3', 'colour')


@test
def an_unknown_key_of_csv_is_named(folder):
    refused_job(folder, 'csv { colour = 3 }', 'colour')


for key, value in [('l2', '-1'), ('history', '201'), ('history', '0'), ('max_steps', '-5'),
                   ('gradient_tolerance', '-1e-3'), ('loss_tolerance', '-1'), ('shards', '257'),
                   ('replicas', '4097'), ('threads', '257'), ('bad_lines', '-1'),
                   ('max_seconds', '-1'), ('flush_ms', '-1'), ('reconnect_seconds', '-1'),
                   ('checkpoint_seconds', '-1')]:
    def out_of_range(folder, key=key, value=value):
        refused_job(folder, f'{key} = {value}', key, value.lstrip('-'))
    out_of_range.__name__ = f'{key} = {value} is out of range'
    test(out_of_range)

for key, value in [('l2', 'much'), ('history', 'long'), ('max_steps', '1.5'), ('l2', 'nan'),
                   ('intercept', 'perhaps'), ('objective', 'hinge'), ('format', 'xml'),
                   ('history_type', 'half')]:
    def wrong_type(folder, key=key, value=value):
        refused_job(folder, f'{key} = {value}', key)
    wrong_type.__name__ = f'{key} = {value} is not allowed'
    test(wrong_type)


@test
def a_job_without_data_is_refused(folder):
    (folder / 'job.conf').write_text('l2 = 0.5\n')
    assert_refused(dml('check', folder / 'job.conf'), CONFIG, 'job.conf', 'data')


@test
def a_job_file_that_does_not_parse_is_named(folder):
    (folder / 'job.conf').write_text('data = { "x"\nl2 = = 3\n')
    finished = dml('check', folder / 'job.conf')
    assert finished.status == CONFIG and 'job.conf' in finished.stderr, finished


@test
def a_missing_job_file_is_named(folder):
    finished = dml('run', folder / 'none.conf')
    assert finished.status in (CONFIG, USAGE), finished
    assert 'none.conf' in finished.stderr, finished


@test
def a_bad_set_is_a_usage_error(folder):
    job = small_job(folder)
    for setting in 'colour=3', 'l2=-1', 'l2', 'history=long':
        finished = dml('check', job, '--set', setting)
        assert finished.status == USAGE and setting.split('=')[0] in finished.stderr, finished


@test
def unknown_commands_and_options_are_usage_errors(folder):
    job = small_job(folder)
    for words in ['dance'], [], ['run', job, '--fast'], ['run'], ['run', job, 'more'], \
            ['predict', folder], ['inspect']:
        finished = dml(*words)
        assert finished.status == USAGE and finished.stderr, finished
    for program in SHARD, REPLICA:
        for words in ['--fast'], [], ['--listen'], ['more']:
            finished = run(program, *words)
            assert finished.status == USAGE and finished.stderr, finished


# ---- places ----

@test
def a_state_folder_below_a_file_is_refused(folder):
    job = small_job(folder)
    (folder / 'file').write_text('')
    assert_refused(dml('run', job, '--state', folder / 'file/state'), CREATE, folder / 'file')


@test
def a_state_folder_that_may_not_be_written_is_refused(folder):
    job = small_job(folder)
    (folder / 'closed').mkdir()
    user = ordinary_user(folder)
    (folder / 'closed').chmod(0o500)
    for state in folder / 'closed/state', folder / 'closed':
        assert_refused(dml('run', job, '--state', state, user=user), PERMISSION, folder / 'closed')
    assert not any((folder / 'closed').iterdir())


@test
def a_data_file_that_may_not_be_read_is_refused(folder):
    job = small_job(folder)
    user = ordinary_user(folder)
    (folder / 'small.libsvm').chmod(0)
    assert_refused(dml('run', job, user=user), PERMISSION, 'small.libsvm')
    assert_nothing_half_written(folder / 'job.state')


@test
def a_socket_in_use_is_refused(folder):
    path = folder / 'socket'
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        for program in SHARD, REPLICA:
            assert_refused(run(program, '--listen', f'unix:{path}'), UNAVAILABLE, path)
    assert path.exists()


@test
def a_port_in_use_is_refused(folder):
    key = folder / 'key'
    key.touch(mode=0o600)
    key.write_text('0' * 64 + '\n')
    with socket.create_server(('127.0.0.1', 0)) as listener:
        port = listener.getsockname()[1]
        for program in SHARD, REPLICA:
            assert_refused(run(program, '--listen', f'127.0.0.1:{port}', '--key', key), UNAVAILABLE, port)


@test
def a_port_needs_a_key(folder):
    for program in SHARD, REPLICA:
        for address in '127.0.0.1:0', 'localhost:0', '0.0.0.0:0', 'any:0', 'tls:127.0.0.1:0':
            finished = run(program, '--listen', address)
            assert finished.status == USAGE, finished
            assert address in finished.stderr and 'unix:PATH' in finished.stderr, finished
            assert '--key' in finished.stderr, finished


@test
def an_address_that_is_none_is_refused(folder):
    for program in SHARD, REPLICA:
        finished = run(program, '--listen', 'nowhere')
        assert finished.status == USAGE and 'nowhere' in finished.stderr, finished


@test
def workers_that_are_not_there_are_named(folder):
    job = small_job(folder, shard_addresses=[f'unix:{folder}/shard'],
                    replica_addresses=[f'unix:{folder}/replica'])
    finished = dml('run', job, '--wait', 0)
    assert finished.status == UNAVAILABLE and f'{folder}/shard' in finished.stderr, finished
    assert_nothing_half_written(folder / 'job.state')


@test
def too_few_files_are_told_with_the_limit_whatever_it_is(folder):
    job = small_job(folder)
    commands = [(COORDINATOR, 'run', job, '--fresh')]
    commands += [(worker, '--listen', f'unix:{folder}/socket') for worker in (SHARD, REPLICA)]
    for limit in 4, 5, 6, 8, 11, 14, 20, 31:  # with 3 the system cannot load the program
        for command in commands:
            finished = run(*command, prefix=('prlimit', f'--nofile={limit}'))
            assert finished.status == UNAVAILABLE, finished
            assert f'only {limit} files' in finished.stderr, finished
            assert 'ulimit -n' in finished.stderr, finished
    assert dml('run', job, '--fresh', prefix=('prlimit', '--nofile=32')).status == 0


sys.exit(main())
