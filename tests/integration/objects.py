"""A server of objects on loopback, as S3 has them, that checks signatures and misbehaves as told."""

import hashlib
import hmac
import http.server
import random
import socket
import ssl
import threading
import urllib.parse
from xml.sax.saxutils import escape

KEY, SECRET, REGION = 'AKIDEXAMPLE', 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY', 'us-west-9'


def digest(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def signature_of(handler, authorization):
    """What Signature Version 4 says of the request: written from its description."""
    fields = dict(field.strip().split('=', 1)
                  for field in authorization.split(' ', 1)[1].split(','))
    _, date, region, service, end = fields['Credential'].split('/')
    address = urllib.parse.urlsplit(handler.path)
    query = '&'.join(sorted(
        part if '=' in part else part + '=' for part in address.query.split('&') if part))
    names = fields['SignedHeaders'].split(';')
    headers = ''.join(f"{name}:{' '.join(handler.headers[name].split())}\n" for name in names)
    request = '\n'.join([handler.command, address.path, query, headers, ';'.join(names),
                         handler.headers['x-amz-content-sha256']])
    text = '\n'.join(['AWS4-HMAC-SHA256', handler.headers['x-amz-date'],
                      f'{date}/{region}/{service}/{end}',
                      hashlib.sha256(request.encode()).hexdigest()])
    key = ('AWS4' + SECRET).encode()
    for part in (date, region, service, end):
        key = digest(key, part)
    sound = (fields['Credential'].startswith(KEY + '/') and region == REGION and service == 's3'
             and {'host', 'x-amz-date'} <= set(names))
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest() == fields['Signature'] and sound


class Object:
    def __init__(self, data, **ways):
        self.data = data
        self.ways = ways        # how it misbehaves; numbers count down
        self.etag = None if ways.get('no_etag') else '"%s"' % hashlib.md5(data).hexdigest()

    def takes(self, way):
        """Whether to misbehave so once more."""
        left = self.ways.get(way, 0)
        self.ways[way] = left - 1
        return left > 0


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def refuse(self, status, code, **headers):
        body = f'<?xml version="1.0"?><Error><Code>{code}</Code></Error>'.encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace('_', '-'), value)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(body)

    def answer(self):
        store = self.server.store
        with store.lock:
            store.requests.append((self.command, self.path, dict(self.headers)))
        authorization = self.headers.get('Authorization')
        if store.signed and not (authorization and signature_of(self, authorization)):
            return self.refuse(403, 'SignatureDoesNotMatch')
        address = urllib.parse.urlsplit(self.path)
        path = urllib.parse.unquote(address.path)
        query = urllib.parse.parse_qs(address.query)
        if 'list-type' in query:
            return self.list_keys(path.strip('/'), query)
        if path in store.redirects:
            self.send_response(302)
            self.send_header('Location', store.redirects[path])
            self.send_header('Content-Length', '0')
            return self.end_headers()
        found = store.objects.get(path.lstrip('/'))
        return self.send(found) if found else self.refuse(404, 'NoSuchKey')

    do_GET = do_HEAD = answer

    def list_keys(self, bucket, query):
        store = self.server.store
        prefix = query.get('prefix', [''])[0]
        keys = sorted(key[len(bucket) + 1:] for key in store.objects
                      if key.startswith(bucket + '/' + prefix))
        first = int(query.get('continuation-token', ['0'])[0].strip('= &+'))
        page = keys[first:first + store.page]
        more = first + store.page < len(keys)
        token = f'= &amp;+{first + store.page}' if more else ''
        body = '<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3/"><Name>'
        body += f'{bucket}</Name><IsTruncated>{str(more).lower()}</IsTruncated>'
        body += ''.join(f'<Contents><Key>{escape(urllib.parse.quote(key))}</Key><Size>1</Size>'
                        f'<Owner><ID>x</ID></Owner></Contents>' for key in page)
        body += f'<NextContinuationToken>{token}</NextContinuationToken>' if more else ''
        listing = store.listing and store.listing.replace('COUNT', str(len(store.requests)))
        body = (listing or body + '</ListBucketResult>').encode()
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def send(self, found):
        ways, data = found.ways, found.data
        if 'status' in ways:
            self.send_response(ways['status'])
            self.send_header('Content-Length', '0')
            return self.end_headers()
        if found.takes('throttled'):
            return self.refuse(503, 'SlowDown', Retry_After=str(ways.get('retry_after', 0)))
        if self.headers.get('If-Match') not in (None, found.etag):
            return self.refuse(412, 'PreconditionFailed')
        wanted = self.headers.get('Range')
        first = int(wanted.split('=')[1].split('-')[0]) if wanted and not ways.get('no_range') else 0
        if first and first >= len(data):
            return self.refuse(416, 'InvalidRange', Content_Range=f'bytes */{len(data)}')
        self.send_response(206 if first else 200)
        if found.etag:
            self.send_header('ETag', found.etag)
        if first:
            self.send_header('Content-Range', f'bytes {first}-{len(data) - 1}/{len(data)}')
        length = len(data) - first + ways.get('lie', 0)
        if ways.get('endless') or ways.get('chunked'):
            self.send_header('Transfer-Encoding', 'chunked')
        else:
            self.send_header('Content-Length', str(length))
        self.end_headers()
        if self.command == 'HEAD':
            return None
        if ways.get('endless'):
            pieces = ways['endless']  # True: without end; a number: the link breaks behind so many
            while pieces:
                self.wfile.write(b'100000\r\n' + b'7' * 0x100000 + b'\r\n')
                pieces = pieces is True or pieces - 1
            self.close_connection = True
            return None
        rest = data[first:]
        if found.takes('cut'):
            with self.server.store.lock:
                at = ways.get('cut_at') or self.server.store.random.randrange(len(rest) + 1)
                self.wfile.write(rest[:at])
            changed = ways.pop('becomes', None)
            if changed is not None:
                found.data = changed
                found.etag = found.etag and '"%s"' % hashlib.md5(changed).hexdigest()
            return self.break_off()
        if ways.get('silent'):
            self.wfile.write(rest[:100])
            self.server.store.ended.wait(30)
            return self.break_off()
        if ways.get('trickle'):
            for byte in rest:
                self.wfile.write(bytes([byte]))
                if self.server.store.ended.wait(.05):
                    break
            return self.break_off()
        if ways.get('slow'):
            for at in range(0, len(rest), 2000):
                self.wfile.write(rest[at:at + 2000])
                self.server.store.ended.wait(.1)
            return None
        if ways.get('chunked'):
            rest = b'%x\r\n%s\r\n0\r\n\r\n' % (len(rest), rest)
        self.wfile.write(rest)
        if ways.get('lie', 0):
            self.break_off()
        return None

    def break_off(self):
        self.wfile.flush()
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # clients go away


class Store:
    """`with Store() as store`: store.objects has objects by BUCKET/KEY."""

    def __init__(self, signed=False, page=1000, certificate=None):
        self.objects, self.redirects, self.requests = {}, {}, []
        self.signed, self.page, self.listing = signed, page, None
        self.lock, self.random, self.ended = threading.Lock(), random.Random(1), threading.Event()
        self.server = Server(('127.0.0.1', 0), Handler)
        self.server.store = self
        self.scheme = 'https' if certificate else 'http'
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(.05,))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def put(self, key, data, **ways):
        self.objects[key] = Object(data, **ways)

    @property
    def url(self):
        return f'{self.scheme}://127.0.0.1:{self.server.server_address[1]}'

    def count(self, command, part=''):
        return sum(1 for request in self.requests if request[0] == command and part in request[1])

    def environment(self, **more):
        """For programs that read from here."""
        keys = {'AWS_ACCESS_KEY_ID': KEY, 'AWS_SECRET_ACCESS_KEY': SECRET} if self.signed else {}
        return {'AWS_ENDPOINT_URL': self.url, 'AWS_REGION': REGION, 'HOME': '/nonexistent',
                'no_proxy': '*', **keys, **more}
