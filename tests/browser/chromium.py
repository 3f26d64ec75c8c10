"""Drives a headless Chromium over a pair of pipes with the DevTools protocol; nothing but the
browser is needed."""

import base64
import itertools
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time

# The protocol is spoken on the descriptors 3 and 4.
EXEC = ('import fcntl, os, sys\n'
        'r, w = (fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3])\n'
        'os.dup2(r, 3), os.dup2(w, 4)\n'
        'os.execvp(sys.argv[3], sys.argv[3:])')
ANSWER_SECONDS = 60
# Awaited, it sees to it that what was asked for is drawn.
FRAMES = 'new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))'
LINK = "(document.getElementById('link') || {}).textContent"


def program():
    """The browser's path, or None."""
    return next(filter(None, map(shutil.which, ('chromium', 'chromium-browser', 'google-chrome'))),
                None)


class Browser:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix='dml-browser-')
        self.numbers = itertools.count(1)
        self.answers, self.pages = {}, {}
        self.closed = False
        theirs_read, ours_write = os.pipe()
        ours_read, theirs_write = os.pipe()
        self.popen = subprocess.Popen(
            [sys.executable, '-c', EXEC, str(theirs_read), str(theirs_write), program(),
             '--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage',
             '--no-first-run', '--disable-extensions', '--disable-background-networking',
             '--disable-component-update', '--hide-scrollbars', '--force-color-profile=srgb',
             '--lang=en-US', '--no-proxy-server', f'--user-data-dir={self.folder}',
             '--remote-debugging-pipe'],
            pass_fds=(theirs_read, theirs_write), env={**os.environ, 'HOME': self.folder},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs_read), os.close(theirs_write)
        self.output, self.input = os.fdopen(ours_write, 'wb', 0), os.fdopen(ours_read, 'rb')
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        pending = b''
        while chunk := self.input.read1(1 << 16):
            *messages, pending = (pending + chunk).split(b'\0')
            for message in map(json.loads, messages):
                if 'id' in message:
                    self.answers.pop(message['id']).put(message)
                elif message.get('sessionId') in self.pages:
                    self.pages[message['sessionId']].take(message['method'], message['params'])
        self.closed = True
        for answer in list(self.answers.values()):
            answer.put({'error': {'message': 'the browser has ended'}})

    def call(self, method, session=None, **parameters):
        message = {'id': next(self.numbers), 'method': method, 'params': parameters}
        if session:
            message['sessionId'] = session
        answer = self.answers[message['id']] = queue.Queue()
        self.output.write(json.dumps(message).encode() + b'\0')
        found = answer.get(timeout=ANSWER_SECONDS)
        assert 'error' not in found, f'{method}: {found["error"]}'
        return found['result']

    def open(self, url, width=1280, height=900, scheme='light', **options):
        return Page(self, url, width, height, scheme, **options)

    def end(self):
        self.popen.kill()
        self.popen.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Page:
    """A tab. `errors` are the messages of the console and exceptions that were not caught."""

    def __init__(self, browser, url, width, height, scheme, scripts=True):
        self.browser = browser
        self.errors, self.requests = [], []
        self.target = browser.call('Target.createTarget', url='about:blank')['targetId']
        self.session = browser.call('Target.attachToTarget', targetId=self.target,
                                    flatten=True)['sessionId']
        browser.pages[self.session] = self
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            self.call(f'{domain}.enable')
        if not scripts:
            self.call('Emulation.setScriptExecutionDisabled', value=True)
        self.resize(width, height)
        self.call('Emulation.setEmulatedMedia',
                  features=[{'name': 'prefers-color-scheme', 'value': scheme}])
        self.call('Page.navigate', url=url)
        self.until("location.href != 'about:blank' && document.readyState == 'complete'")

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def take(self, method, parameters):
        if method == 'Runtime.exceptionThrown':
            details = parameters['exceptionDetails']
            self.errors.append(details.get('exception', {}).get('description') or details['text'])
        elif method == 'Runtime.consoleAPICalled':
            if parameters['type'] in ('error', 'warning', 'assert'):
                self.errors.append(str([a.get('description', a.get('value'))
                                        for a in parameters['args']]))
        elif method == 'Log.entryAdded':
            entry = parameters['entry']
            if entry['level'] in ('error', 'warning'):
                self.errors.append(f'{entry["text"]} {entry.get("url", "")}')
        elif method == 'Network.requestWillBeSent':
            self.requests.append(parameters['request']['url'])

    def resize(self, width, height=900):
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=round(height),
                  deviceScaleFactor=1, mobile=False)

    def run(self, script):
        """The value of an expression, awaited."""
        found = self.call('Runtime.evaluate', expression=script, returnByValue=True,
                          awaitPromise=True)
        assert 'exceptionDetails' not in found, found['exceptionDetails']
        return found['result'].get('value')

    def until(self, script, seconds=60):
        """Polls an expression until it is true and returns its value."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = self.run(script)
            if value:
                return value
            time.sleep(.03)
        raise AssertionError(f'not within {seconds} s: {script}; console: {self.errors[-3:]}; '
                             f'link: {self.run(LINK)}')

    def text(self, element):
        return self.run(f'document.getElementById({json.dumps(element)}).textContent')

    def key(self, name):
        for kind in ('rawKeyDown', 'keyUp'):
            self.call('Input.dispatchKeyEvent', type=kind, key=name, code=name,
                      windowsVirtualKeyCode={'ArrowLeft': 37, 'ArrowRight': 39, 'Tab': 9,
                                             'Home': 36, 'End': 35}.get(name, 0))

    def move(self, x, y):
        self.call('Input.dispatchMouseEvent', type='mouseMoved', x=x, y=y)

    def screenshot(self, path, whole=True):
        """A PNG of the whole page, or of what the window shows."""
        self.call('Page.bringToFront')  # nothing is drawn in a tab that is hidden
        if whole:
            height = self.run('document.documentElement.scrollHeight')
            width = self.run('innerWidth')
            self.resize(width, height)
            self.run(FRAMES)
        data = self.call('Page.captureScreenshot', format='png')['data']
        with open(path, 'wb') as file:
            file.write(base64.b64decode(data))

    def close(self):
        self.browser.call('Target.closeTarget', targetId=self.target)
        del self.browser.pages[self.session]
