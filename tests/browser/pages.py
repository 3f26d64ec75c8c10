"""Opens pages in one browser, and looks at them: for the tests of the page."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'integration'))

import chromium  # noqa: E402
import harness  # noqa: E402
from harness import BUILD, Skip, some, test  # noqa: E402
from mock import Mock  # noqa: E402

PAGE = BUILD / 'coordinator' / 'status' / 'page.html'
LIVE = "document.getElementById('connection').className === 'live'"
EVENTS = [('lost', 'replica 1 was lost: no sign of life for 2.5 s'),
          ('recovery', 'back to step 31, attempt 2: shard 0 restarted'),
          ('safeguard', 'step 34: pair skipped: too little curvature')]
BROWSERS = []


def browser():
    """The one browser of all tests."""
    if not BROWSERS:
        if not chromium.program():
            raise Skip('chromium is not installed')
        BROWSERS.append(chromium.Browser())
    return BROWSERS[0]


def in_browser(function):
    """A test with a mock and a way to open its page; sees that the console stays silent."""
    def run(_):
        tabs = browser()
        mocks, pages = [], []

        def mock(**how):
            mocks.append(Mock(PAGE, **how))
            return mocks[-1]

        def page(of, **how):
            pages.append(tabs.open(of.url, **how))
            pages[-1].until(LIVE)
            pages[-1].until(f"known.steps.last >= {of.step}")
            settle(pages[-1])
            return pages[-1]

        try:
            function(mock, page)
            for opened in pages:
                assert not opened.errors, opened.errors
        finally:
            for opened in pages:
                opened.close()
            for made in mocks:
                made.stop()
    run.__name__ = function.__name__
    return test(run)


def settle(page):
    """Waits until what was asked for is drawn."""
    page.run(chromium.FRAMES)


def assert_fits(page, width):
    page.resize(width)
    settle(page)
    assert page.run('document.documentElement.scrollWidth') <= width, f'wider than {width}'
    clipped = page.run('''[...document.querySelectorAll('.figures dd, h1, h2, h3, figcaption')]
        .filter(e => e.offsetParent && e.scrollWidth > e.clientWidth + 1).map(e => e.outerHTML)''')
    assert not clipped, f'at {width}: {clipped}'


def colours_in(page, canvas):
    """How many colours a canvas shows."""
    return page.run(f'''(() => {{
        const {{ width, height }} = document.getElementById('{canvas}');
        const copy = Object.assign(document.createElement('canvas'), {{ width, height }});
        const g = copy.getContext('2d', {{ willReadFrequently: true }});
        g.drawImage(document.getElementById('{canvas}'), 0, 0);
        return new Set(new Uint32Array(g.getImageData(0, 0, width, height).data.buffer)).size;
        }})()''')


# Every visible text whose contrast with what is behind it is below 4.5:1.
PALE = '''(() => {
  const paint = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const known = new Map();
  const rgba = css => known.get(css) || known.set(css, painted(css)).get(css);
  const painted = css => {
    paint.clearRect(0, 0, 1, 1);
    paint.fillStyle = css;
    paint.fillRect(0, 0, 1, 1);
    return [...paint.getImageData(0, 0, 1, 1).data]; };
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const behind = e => { for (; e; e = e.parentElement) {
    const c = rgba(getComputedStyle(e).backgroundColor); if (c[3] === 255) return c; }
    return [255, 255, 255, 255]; };
  const cache = new Map(), pale = [];
  for (const e of document.querySelectorAll('body *')) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.getClientRects().length || e.closest('noscript')) continue;
    const back = behind(e), front = getComputedStyle(e).color, key = front + back;
    if (!cache.has(key)) {
      const [a, b] = [light(rgba(front)), light(back)].sort((x, y) => y - x);
      cache.set(key, (a + .05) / (b + .05));
    }
    if (cache.get(key) < 4.5) pale.push([cache.get(key), e.outerHTML.slice(0, 120)]);
  }
  return pale; })()'''


def assert_readable(page):
    pale = page.run(PALE)
    assert not pale, pale[:5]


def shown_in_every_way(page, chart='gradient-chart'):
    """At both widths it fits, in both schemes it can be read, and the curves are there. Every scheme is
    shown at every width in make check-faults only."""
    for scheme, widths in ('dark', (390, 1280)), ('light', (1280, 390)):
        page.call('Emulation.setEmulatedMedia',
                  features=[{'name': 'prefers-color-scheme', 'value': scheme}])
        for width in some(widths, 2):
            assert_fits(page, width)
            assert colours_in(page, chart) > 4, f'{scheme}, {width}: nothing is drawn'
        assert_readable(page)


def main():
    """The tests, and the browser's end."""
    status = harness.main()
    for opened in BROWSERS:
        opened.end()
    return status
