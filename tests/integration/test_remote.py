#!/usr/bin/env python3
"""Data behind s3:// and https:// addresses: the model of the local file, or a refusal that says why."""

import gzip
import os
import random
import subprocess
import sys

import objects
from harness import BAD_DATA, COORDINATOR, Skip, dml, main, test, write_job

UNAVAILABLE, PERMISSION = 69, 77


def table(rows=4000, seed=1):
    rng = random.Random(seed)
    lines = ['a,b,c,y']
    for _ in range(rows):
        a, b = rng.gauss(0, 1), rng.randint(0, 9)
        lines.append(f'{a:.6f},{b},{rng.choice("xyz")},{int(a + b / 5 + rng.gauss(0, 1) > 1)}')
    return ('\n'.join(lines) + '\n').encode()


def trained(folder, data, environment, name='job', fresh=True, **settings):
    job = write_job(folder, name=name, data=data, max_steps=20, **settings)
    return dml('run', job, '--json', *(['--fresh'] if fresh else []), **environment)


def local_hash(folder, data=None):
    (folder / 'local.csv').write_bytes(data or table())
    ended = trained(folder, ['local.csv'], {}, name='local')
    assert ended.status == 0, ended
    return ended.json['model_sha256']


@test
def objects_of_s3_are_read_with_signatures_links_that_break_and_servers_that_ask_to_wait(folder):
    expected = local_hash(folder)
    data, key = table(), 'in a/b+c=ö.csv'
    with objects.Store(signed=True) as store:
        for name, content, ways in ((key, data, {}), ('cut.csv', data, {'cut': 6}),
                                    ('dot/./../key.csv', data, {}),
                                    ('slow.csv', data, {'throttled': 3}),
                                    ('zipped.csv', gzip.compress(data), {'cut': 2}),
                                    ('whole.csv', data, {'cut': 3, 'no_range': True}),
                                    ('plain.csv', data, {'cut': 3, 'no_etag': True}),
                                    ('chunks.csv', data, {'chunked': True})):
            store.put('bucket/' + name, content, **ways)
            ended = trained(folder, ['s3://bucket/' + name], store.environment(), name='of' + name[:3])
            assert ended.status == 0, ended
            assert ended.json['model_sha256'] == expected, name
            # What has an ETag is looked at again, and not read.
            before = store.count('GET')
            again = trained(folder, ['s3://bucket/' + name], store.environment(), name='of' + name[:3])
            read = store.count('GET') - before
            assert again.status == 0, again
            assert read == ('no_etag' in ways or 'chunked' in ways), (name, read)
        wrong = store.environment(AWS_SECRET_ACCESS_KEY='x')
        ended = trained(folder, ['s3://bucket/cut.csv'], wrong, name='wrong')
        assert ended.status == PERMISSION and 'credentials' in ended.stderr, ended
        none = {name: value for name, value in store.environment().items() if 'KEY' not in name}
        (folder / 'keys').write_text('[other]\naws_access_key_id = x\n\n[work]\naws_access_key_id = '
                                     f'{objects.KEY}\naws_secret_access_key={objects.SECRET}\n')
        profile = {'AWS_SHARED_CREDENTIALS_FILE': str(folder / 'keys'), 'AWS_PROFILE': 'work'}
        store.put('bucket/new.csv', data)
        ended = trained(folder, ['s3://bucket/new.csv'], {**none, **profile}, name='profile')
        assert ended.status == 0 and ended.json['model_sha256'] == expected, ended
        # Predictions, and evaluations.
        (folder / 'few.csv').write_bytes(data[:2000].rsplit(b'\n', 1)[0] + b'\n')
        store.put('bucket/few.csv', (folder / 'few.csv').read_bytes(), cut=1)
        found = [dml('predict', folder / 'local.state', path, **store.environment()).stdout
                 for path in (folder / 'few.csv', 's3://bucket/few.csv')]
        assert found[0] == found[1] != '', found


@test
def what_comes_again_may_take_longer_than_nothing_may_come(folder):
    data = table()
    ways = {'cut': 1, 'cut_at': 52000, 'no_range': True, 'no_etag': True, 'slow': True}
    expected = local_hash(folder)
    with objects.Store() as store:
        store.put('b/slow.csv', data, **ways)
        ended = trained(folder, ['s3://b/slow.csv'], store.environment(DML_REMOTE_SECONDS='2'))
        assert ended.status == 0 and ended.json['model_sha256'] == expected, ended


@test
def what_is_not_one_object_is_refused_with_its_reason(folder):
    data, other = table(), table(seed=2)
    cases = (
        ('changed', data, {'cut': 1, 'cut_at': 5000, 'becomes': other}, BAD_DATA, 'was changed while it was read'),
        ('grown', data, {'cut': 1, 'cut_at': 5000, 'becomes': data + b'1,2,x,1\n'}, BAD_DATA, 'was changed'),
        ('untagged', data, {'cut': 1, 'becomes': other[:-9] + data[-9:], 'no_etag': True}, BAD_DATA,
         'was changed'),
        ('short', data, {'lie': 500}, BAD_DATA, 'sends no more than'),
        ('empty', b'', {}, BAD_DATA, 'has no rows'),
        ('endless', data, {'endless': True}, BAD_DATA, 'longer than'),
        ('shrunk', data, {'endless': 3}, BAD_DATA, 'has sent 3145728 bytes of it, and says'),
        ('silent', data, {'silent': True, 'no_range': True}, UNAVAILABLE, 'without progress'),
        ('trickle', data, {'trickle': True}, UNAVAILABLE, 'without progress'),
        ('throttled', data, {'throttled': 99, 'retry_after': 60}, UNAVAILABLE,
         'asks for a longer wait'),
        ('postponed', data, {'throttled': 99, 'retry_after': 2**63 - 808}, UNAVAILABLE,
         'asks for a longer wait'),
        ('broken', data, {'cut': 99, 'no_etag': True, 'no_range': True}, UNAVAILABLE, 'gave up'),
    )
    with objects.Store() as store:
        for name, content, ways, status, said in cases:
            store.put(f'b/{name}.csv', content, **ways)
            patience = '30' if name == 'endless' else '1'  # what comes may be slow on a busy machine
            ended = trained(folder, [f's3://b/{name}.csv'],
                            store.environment(DML_REMOTE_SECONDS=patience), name=name)
            assert ended.status == status and said in ended.stderr, (name, ended)
            assert f's3://b/{name}.csv' in ended.stderr, ended
        ended = trained(folder, ['s3://b/none.csv'], store.environment())
        assert ended.status == BAD_DATA and 'it is not there' in ended.stderr, ended
        store.redirects['/to-file'] = 'file:///etc/passwd'
        store.redirects['/round'] = store.url + '/round'
        for path in ('/to-file', '/round'):
            ended = trained(folder, [store.url + path], store.environment())
            assert ended.status == UNAVAILABLE and 'it leads' in ended.stderr, ended
    gone = store.environment(DML_REMOTE_SECONDS='1')
    ended = trained(folder, ['s3://b/x.csv'], gone)
    assert ended.status == UNAVAILABLE and 's3://b/x.csv' in ended.stderr, ended


@test
def without_libcurl_files_are_read_and_addresses_refused_with_what_to_install(folder):
    (folder / 'lib').mkdir()
    (folder / 'lib/libcurl.so.4').write_text('no library')
    none = {'LD_LIBRARY_PATH': str(folder / 'lib')}
    (folder / 'data.csv').write_bytes(table(200))
    ended = trained(folder, ['data.csv'], none)
    assert ended.status == 0, ended
    for path in 's3://b/x.csv', 's3://b/*.csv', 'https://127.0.0.1:1/x.csv':
        ended = trained(folder, [path], none)
        assert ended.status == UNAVAILABLE and f'{path}: ' in ended.stderr, ended
        assert 'libcurl4' in ended.stderr, ended


@test
def patterns_are_listed_page_by_page_and_nights_see_new_objects(folder):
    parts = [table(800, seed) for seed in range(5)]
    for i, part in enumerate(parts):
        (folder / f'p {i}.csv').write_bytes(part)
    expected = trained(folder, ['p *.csv'], {}, name='local').json['model_sha256']
    with objects.Store(signed=True, page=2) as store:
        for i, part in reversed(list(enumerate(parts))):
            store.put(f'b/day/p {i}.csv', part)
        store.put('b/day/deep/p 9.csv', b'not,matched\n')
        store.put('b/day/p 9.txt', b'not,matched\n')
        ended = trained(folder, ['s3://b/day/p *.csv'], store.environment())
        assert ended.status == 0 and ended.json['model_sha256'] == expected, ended
        job = write_job(folder, name='night', data=['s3://b/day/p *.csv'], max_steps=20)
        ended = dml('retrain', job, '--json', **store.environment())
        assert ended.status == 0, ended
        reads = store.count('GET', '.csv')
        store.put('b/day/p 5.csv', table(800, 9))
        ended = dml('retrain', job, '--json', **store.environment())
        assert ended.status == 0 and ended.json['examples'] == 4800, ended
        assert store.count('GET', '0.csv') + store.count('GET', '5.csv') <= reads
        for listing in ('<html/>', '<!DOCTYPE x><ListBucketResult/>', '<ListBucketResult>' * 99,
                        '<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>',
                        '<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>COUNT'
                        '</NextContinuationToken></ListBucketResult>'):
            store.listing = listing
            ended = trained(folder, ['s3://b/day/*'], store.environment())
            assert ended.status == UNAVAILABLE and 'the list of keys has' in ended.stderr, ended
        store.listing = '<ListBucketResult/>'
        ended = trained(folder, ['s3://b/day/*'], store.environment())
        assert ended.status == BAD_DATA and 'no object matches' in ended.stderr, ended


@test
def a_prefix_means_the_objects_below_it_as_a_folder_means_its_files(folder):
    tree = {f'tree/{path}': table(400, seed) for seed, path in
            enumerate(['a.csv', 'deep/b.csv', 'deep/er/part-0', 'deep/er/c.csv.gz'])}
    tree['tree/deep/er/c.csv.gz'] = gzip.compress(tree['tree/deep/er/c.csv.gz'])
    passed_over = ['tree/_SUCCESS', 'tree/_tmp/x.csv', 'tree/deep/.y.csv', 'tree/deep/README.md', 'other/z.csv']
    with objects.Store(signed=True, page=2) as store:
        for path, rows in [*tree.items(), *((path, b'no,rows\n') for path in passed_over)]:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(rows)
            store.put('b/' + path, rows)
        store.put('b/tree/deep/', b'')
        expected = trained(folder, sorted(tree), {}, name='listed').json['model_sha256']
        for entry in 'tree', 'tree/', 'tree/**', 's3://b/tree/', 's3://b/tree/**', 's3://b/t*e/', 't*e', 's3://b/t*e':
            ended = trained(folder, [entry], store.environment())
            assert ended.status == 0 and ended.json['model_sha256'] == expected, (entry, ended)
            assert '1 file is passed over' in ended.stderr and 'deep/README.md' in ended.stderr, ended
        few = trained(folder, ['tree/**/*.csv'], {}).json['model_sha256']
        ended = trained(folder, ['s3://b/tree/**/*.csv'], store.environment())
        assert ended.json['model_sha256'] == few != expected, ended
        for data in folder / 'tree', 's3://b/tree/':
            scored = dml('predict', folder / 'listed.state', data, **store.environment())
            assert scored.stdout.count('\n') == 1600, scored


@test
def what_is_scored_may_be_a_pattern_of_objects(folder):
    local_hash(folder)
    paths = [folder / f'part{i}.csv' for i in range(3)]
    model = folder / 'local.state'
    with objects.Store(signed=True, page=2) as store:
        for i, path in enumerate(paths):
            path.write_bytes(table(300, seed=i))
            path.with_suffix('.weights').write_text(f'{i + 1}\n' * 300)
            store.put(f'b/{path.name}', path.read_bytes())
        weights = f'weights={folder}/part*.weights'
        for command in ['predict'], ['evaluate', '--json'], ['evaluate', '--json', '--set', weights]:
            local, listed = (dml(command[0], model, *data, *command[1:], **store.environment())
                             for data in (paths, ['s3://b/part*.csv']))
            assert listed.status == 0, listed
            assert local.stdout == listed.stdout != '', (local, listed)
        # Files stand as they are given, and again as often.
        twice = dml('predict', model, paths[0], 's3://b/part[0].csv', **store.environment())
        assert twice.stdout.count('\n') == 600, twice
        for command in 'predict', 'evaluate':
            none = dml(command, model, 's3://b/none*.csv', **store.environment())
            assert none.status == BAD_DATA and 'no object matches s3://b/none*.csv' in none.stderr, none


@test
def certificates_are_checked_and_secrets_stay_unseen(folder):
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2',
                    '-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1',
                    '-keyout', folder / 'key', '-out', folder / 'crt'], check=True,
                   capture_output=True)
    (folder / 'both').write_bytes((folder / 'crt').read_bytes() + (folder / 'key').read_bytes())
    expected = local_hash(folder)
    with objects.Store(certificate=folder / 'both') as store:
        store.put('x/data.csv', table(), cut=2)
        secret = store.url.replace('//', '//eve:hidden1@') + \
            '/x/data.csv?version=3&X-Amz-Signature=hidden2&token=hidden3'
        ended = trained(folder, [secret], store.environment())
        assert ended.status == UNAVAILABLE and 'certificate' in ended.stderr, ended
        trust = store.environment(SSL_CERT_FILE=str(folder / 'crt'), CURL_CA_BUNDLE='')
        ended = trained(folder, [secret], trust, name='trusted')
        assert ended.status == 0 and ended.json['model_sha256'] == expected, ended
        assert any('hidden2' in path and headers.get('Authorization', '').startswith('Basic ')
                   for _, path, headers in store.requests)
        shown = dml('status', folder / 'trusted.state', '--json').stdout
        assert 'version=3' in (folder / 'trusted.state/models/current/model.json').read_text()
        for text in (ended.stdout, ended.stderr, shown):
            assert 'hidden' not in text, text
    for path in (folder / 'trusted.state').rglob('*'):
        assert not path.is_file() or b'hidden' not in path.read_bytes(), path


@test
def what_tells_objects_apart_as_a_secret_alone_is_no_address(folder):
    local_hash(folder)
    with objects.Store() as store:
        store.put('x/data.csv', table())
        both = [f'{store.url}/x/data.csv?key={key}' for key in ('hidden1', 'hidden2')]
        for data, more in (both, {}), (both[:1], {'test': both[1:]}):
            ended = trained(folder, data, store.environment(), **more)
            assert ended.status == BAD_DATA and 'path of its own' in ended.stderr, ended
            assert 'hidden' not in ended.stderr + ended.stdout, ended
        # One takes the place of another that has expired.
        job = write_job(folder, name='later', data=both[:1], max_steps=20)
        for value in both[1], f'{{ "{both[1]}" }}':
            before = len(store.requests)
            ended = dml('run', job, '--fresh', '--set', f'data={value}', **store.environment())
            assert ended.status == 0, ended
            assert all('hidden2' in path for _, path, _ in store.requests[before:]), store.requests
        # The same twice is one.
        ended = trained(folder, both[:1] * 2, store.environment())
        assert ended.status == 0 and ended.json['examples'] == 4000, ended


@test
def a_bucket_has_no_password_and_leads_to_no_other_host(folder):
    local_hash(folder)
    with objects.Store() as store:
        for address in ('s3://eve:hidden@b/x.csv', 's3://eve:hidden@b/x*.csv', 's3://b?/x.csv',
                        's3://b:80#/x*.csv', 's3://b%2f/x.csv', 's3://b', 's3:///x.csv', 's3://b/'):
            for ended in (trained(folder, [address], store.environment()),
                          dml('predict', folder / 'local.state', address, **store.environment())):
                assert ended.status == BAD_DATA and 'is no object' in ended.stderr, (address, ended)
                assert 'hidden' not in ended.stderr + ended.stdout, ended
        assert not store.requests, store.requests
    for path in (folder / 'job.state').rglob('*'):
        assert not path.is_file() or b'hidden' not in path.read_bytes(), path


if __name__ == '__main__':
    INSIDE = """
ip link set lo up && ip address add 198.51.100.7/32 dev lo && ip address add 10.1.2.3/32 dev lo &&
exec "$@"
"""


@test
def a_redirect_from_outside_leads_to_no_address_inside(folder):
    """In a network of its own, where a public address and a private one are this machine's."""
    shell = ['unshare', '--user', '--map-root-user', '--net', 'sh', '-c', INSIDE, 'sh']
    if subprocess.run([*shell, 'true'], capture_output=True, check=False).returncode:
        raise Skip('no network namespaces here')
    server = folder / 'server.py'
    server.write_text(REDIRECTS.replace('TABLE', repr(table(300))))
    job = write_job(folder, data=['x'], max_steps=5)
    ended = subprocess.run([*shell, sys.executable, server, COORDINATOR, job], capture_output=True, text=True,
                           env={**os.environ, 'no_proxy': '*'}, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    for line in ended.stdout.splitlines():
        expected, status, said = line.split(' ', 2)
        assert status == expected and (expected == '0' or 'internal network' in said), ended.stdout
    assert len(ended.stdout.splitlines()) == 6, ended.stdout


REDIRECTS = """
import http.server, subprocess, sys, threading
OUTSIDE, INSIDE, HERE = '198.51.100.7', '10.1.2.3', '127.0.0.1'
table = TABLE
class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def do_GET(self):
        to = self.path[1:].removesuffix('.csv')
        if to == 'data':
            self.send_response(200)
            self.send_header('Content-Length', str(len(table)))
            self.end_headers()
            if self.command == 'GET': self.wfile.write(table)
        else:
            self.send_response(302)
            self.send_header('Location', f'http://{to}:{port}/data.csv')
            self.send_header('Content-Length', '0')
            self.end_headers()
    do_HEAD = do_GET
server = http.server.ThreadingHTTPServer(('0.0.0.0', 0), Handler)
port = server.server_address[1]
threading.Thread(target=server.serve_forever, daemon=True).start()
for asked, to, status in [(OUTSIDE, OUTSIDE, 0), (OUTSIDE, INSIDE, 77), (OUTSIDE, HERE, 77),
                          (OUTSIDE, '[::ffff:10.1.2.3]', 77), (INSIDE, HERE, 0), (HERE, INSIDE, 0)]:
    ended = subprocess.run([sys.argv[1], 'run', sys.argv[2], '--fresh', '--set',
                            f'data=http://{asked}:{port}/{to}.csv'], capture_output=True, text=True)
    print(status, ended.returncode, ended.stderr.strip().replace(chr(10), ' / '), flush=True)
"""


@test
def what_a_server_answers_is_said_as_it_is(folder):
    with objects.Store() as store:
        for status, code, said in ((204, UNAVAILABLE, 'sent nothing (status 204)'),
                                   (403, PERMISSION, 'does not allow it (status 403)')):
            store.put(f'web/{status}.csv', table(), status=status)
            ended = trained(folder, [f'{store.url}/web/{status}.csv'], store.environment())
            assert ended.status == code and said in ended.stderr, ended
            assert '.aws' not in ended.stderr, ended


sys.exit(main())
