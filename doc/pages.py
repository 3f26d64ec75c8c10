#!/usr/bin/env python3
"""Writes the manual pages and the documents as pages of HTML, with an index by task, a glossary and a search that needs
no server: python3 doc/pages.py FOLDER. It needs mandoc and cmark-gfm."""

import html
import json
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
FIRST = ('dml-intro.7', 'dml-tasks.7', 'dml.conf.5', 'dml-coordinator.1', 'dml-python.7')
DOCUMENTS = ('README.md', 'CONTRIBUTING.md', 'SECURITY.md')

STYLE = '''
:root { color-scheme: light dark; --line: #8884; --dim: #777; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 62rem; padding: 0 1rem 4rem; }
header { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: baseline; border-bottom: 1px solid var(--line);
         padding: .7rem 0; }
header a { text-decoration: none; } header input { flex: 1 1 12rem; font: inherit; padding: .2rem .5rem; min-width: 0; }
#found { list-style: none; padding: 0; } #found li { border-bottom: 1px solid var(--line); padding: .3rem 0; }
#found small { color: var(--dim); display: block; overflow-wrap: anywhere; }
pre { overflow-x: auto; background: #8881; padding: .6rem; } code, pre { font-size: 90%; }
table { border-collapse: collapse; display: block; overflow-x: auto; } td, th { border: 1px solid var(--line);
        padding: .15rem .5rem; text-align: left; vertical-align: top; }
img { max-width: 100%; } dd { margin-left: 1.5rem; } table.head, table.foot { display: none; }
a { overflow-wrap: anywhere; } td:first-child > a { white-space: nowrap; } a.permalink { color: inherit; text-decoration: none; }
@media (max-width: 500px) { dd { margin-left: .8rem; } body { padding: 0 .6rem 3rem; } }
'''

SEARCH = '''
const box = document.querySelector('input'), list = document.getElementById('found');
box.addEventListener('input', () => {
  const words = box.value.toLowerCase().split(/\\s+/).filter(Boolean);
  list.replaceChildren();
  if (!words.length) return;
  const rank = s => words.reduce((sum, w) => sum + (s.title.toLowerCase().includes(w) ? 10 : 0) + (s.text.toLowerCase().split(w).length - 1), 0);
  SECTIONS.filter(s => words.every(w => (s.page + ' ' + s.title + ' ' + s.text).toLowerCase().includes(w)))
    .sort((a, b) => rank(b) - rank(a)).slice(0, 20).forEach(s => {
      const item = document.createElement('li'), link = document.createElement('a'), text = document.createElement('small');
      link.href = s.href; link.textContent = s.page + ': ' + s.title;
      const at = Math.max(0, s.text.toLowerCase().indexOf(words[0]) - 60);
      text.textContent = s.text.slice(at, at + 160);
      item.append(link, text); list.append(item);
    });
});
'''


def output_of(*command, given=None):
    try:
        return subprocess.run(command, input=given, capture_output=True, check=True, text=True).stdout
    except FileNotFoundError:
        raise SystemExit(f'{command[0]} is not installed: apt-get install mandoc cmark-gfm') from None


def manual(path):
    """The body of a manual page, whose references lead to the pages that are there."""
    body = output_of('mandoc', '-Thtml', '-Ofragment,man=%N.%S.html', path)
    known = {page.name for page in (ROOT / 'man').iterdir()}
    return re.sub(r'<a class="Xr" href="([^"]*)\.html">(.*?)</a>',
                  lambda link: link[0] if link[1] in known else link[2], body)


def document(path):
    """The body of a document; its references to other documents lead to their pages, and headings have names."""
    body = output_of('cmark-gfm', '-e', 'table', '-e', 'autolink', '--unsafe', given=path.read_text())
    body = re.sub(r'<(h[1-4])>(.*?)</\1>', lambda found: f'<{found[1]} id="{name_of(found[2])}">{found[2]}</{found[1]}>', body)
    return re.sub(r'(href|src)="(?!https?:)([^"#]*)', lambda link: f'{link[1]}="{target(path, link[2])}', body)


def name_of(heading):
    return re.sub(r'[^a-z0-9]+', '-', re.sub('<.*?>', '', heading).lower()).strip('-')


def target(path, link):
    """Where a reference of a document leads among the pages, which all stand in one folder."""
    if not link:
        return link
    found = (path.parent / link).resolve()
    return f'{page_name(found)}.html' if found.suffix == '.md' else found.name


def page_name(path):
    folder = path.parent.relative_to(ROOT)
    return '-'.join([*folder.parts[1:], path.stem]) if folder.parts[:1] == ('doc',) else '-'.join([*folder.parts, path.stem])


def plain(part):
    return html.unescape(' '.join(re.sub('<[^>]+>', ' ', part).split()))


def sections(page, href, body):
    """What the search finds: each section, with its heading and text."""
    parts = re.split(r'(<h[1-3][^>]*id="[^"]*"[^>]*>.*?</h[1-3]>)', body, flags=re.S)
    for heading, text in zip(parts[1::2], parts[2::2]):
        anchor = re.search('id="([^"]*)', heading)[1]
        yield {'page': page, 'title': plain(heading), 'href': f'{href}#{anchor}', 'text': plain(text)}


def resolved(name, bodies, places):
    """The body with references to sections of other pages, which manual pages name by the section alone."""
    def lead(link):
        anchor = link[1].lower().replace('-', '_')
        found = places.get((name, anchor)) or next((href for (_, known), href in places.items() if known == anchor), None)
        return f'href="{found}"' if found else ''
    return re.sub('href="#([^"]*)"', lead, bodies[name])


def whole(title, body):
    return (f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
            f'<title>{html.escape(title)}</title><link rel="stylesheet" href="style.css"><header><a href="index.html"><b>dml</b></a>'
            f'<a href="dml.conf.5.html#Index_by_task">index by task</a><a href="GLOSSARY.html">glossary</a>'
            f'<input type="search" placeholder="search" aria-label="search"></header><ul id="found"></ul>'
            f'<main>{body}</main><script src="search.js"></script></html>')


def index(manuals, documents, keys):
    def entry(href, name, about):
        return f'<tr><td><a href="{href}">{name}</a><td>{html.escape(about)}'
    abouts = {path.name: re.search(r'^\.Nd (.*)', path.read_text(), re.M)[1] for path in manuals}
    order = sorted(manuals, key=lambda path: (path.name not in FIRST, FIRST.index(path.name) if path.name in FIRST else 0, path.name))
    rows = [entry(f'{path.name}.html', f'{path.stem}({path.suffix[1:]})', abouts[path.name]) for path in order]
    others = [entry(f'{page_name(path)}.html', page_name(path), path.read_text().split('\n', 1)[0].lstrip('# '))
              for path in documents]
    tasks = re.search(r'(<section class="Ss">\s*<h2[^>]*id="Index_by_task".*?</section>)', keys, re.S)[1]
    return ('<h1>dml</h1><h2>Manual pages</h2><table>' + ''.join(rows) + '</table>' +
            tasks + '<h2>Documents</h2><table>' + ''.join(others) + '</table>')


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    manuals = sorted((ROOT / 'man').glob('*.[1-8]'))
    documents = [ROOT / name for name in DOCUMENTS] + sorted((ROOT / 'doc').rglob('*.md'))
    bodies = {path.name: manual(path) for path in manuals} | {page_name(path): document(path) for path in documents}
    places = {(name, anchor.lower().replace('-', '_')): f'{name}.html#{anchor}'
              for name, body in bodies.items() for anchor in re.findall('id="([^"]*)"', body)}
    found = []
    for name in bodies:
        title = re.sub(r'\.([1-8])$', r'(\1)', name)
        body = resolved(name, bodies, places)
        found += sections(title, f'{name}.html', body)
        (folder / f'{name}.html').write_text(whole(title, body))
    (folder / 'index.html').write_text(whole('dml', index(manuals, documents, resolved('dml.conf.5', bodies, places))))
    (folder / 'style.css').write_text(STYLE)
    (folder / 'search.js').write_text(f'const SECTIONS = {json.dumps(found)};{SEARCH}')
    for picture in (ROOT / 'doc').glob('*.png'):
        shutil.copy(picture, folder)
    print(f'{len(bodies)} pages, {len(found)} sections: {folder / "index.html"}')


if __name__ == '__main__':
    main(pathlib.Path(sys.argv[1]))
