#!/usr/bin/env python3
"""Checks that README.md and doc/ say of the tree what is so: files, functions, targets, sections and
words in marks that they name are there, versions are the present ones, and a list of the files to change
is complete for the example that it names. Comments in the sources are read for files, functions and
other names, too, and the manual pages for sections, keys and variables of the environment."""

import re
import sys

import source

OF_THE_TOP = sorted(path.name for path in source.ROOT.glob('*.md'))
DOCUMENTS = [*OF_THE_TOP, *sorted(path.relative_to(source.ROOT).as_posix() for path in (source.ROOT / 'doc').rglob('*.md')),
             'bench/NOTES.md', 'tests/fault/README.md', 'tests/hosts/README.md']
PAGES = sorted(f'man/{path.name}' for path in (source.ROOT / 'man').glob('*.[1357]'))

# What a list need not name: what tells of a change, and what was measured.
BESIDE = {'NEWS', 'bench/RESULTS.md', *DOCUMENTS}

# What configure makes, and names that stand for any.
NOT_IN_THE_TREE = {'config.h', 'FOLDER/local.mk', 'tests/unit/FOLDER.mk'}
OF_SYSTEMS = {'cmocka.h', 'linux/magic.h', 'sysexits.h'}
# Names of systems that stand in no code of ours, as functions that we do not call, and why.
NOT_OURS = {'hypot', 'pthread_cancel', 'ASAN_OPTIONS'}
# Words in marks that are of other programs.
OF_OTHERS = {'chrt', 'core_pattern', 'coredumpctl', 'distclean', 'gcore', 'gdb', 'unbuffered'}
# Variables that no user sets: of a shell, and of tests of devices, processes and pages.
NOT_FOR_USERS = {'HOME', 'PWD', 'DML_FAILPOINT_ONCE', 'DML_DEVICE_BYTES', 'DML_DEVICE_PATIENCE_MS',
                 'DML_DEVICE_RACES'}

# What the example in a comment declares.
EXAMPLES = {'scale_arguments'}

# "To add one, as `name` (`other names`), change exactly these files", and the numbered list behind it.
LIST = re.compile(r'To\s+add\s+(?:one|an?\s[\w\s]+?),\s+as\s+(`\w+`(?:\s+\([`\w,\s]+\))?),\s+change\s+exactly'
                  r'\s+these\s+files[^:]*:\n\n((?:(?:\d+\.| ) .*\n)+)')
# The most files that the list for this example may have.
FILES_MOST = {'EVALUATION_SCORES': 4, 'working_phase': 4}
FILE = re.compile(r'`((?:[\w.-]+/)*[\w.-]+\.(?:c|h|def|py|md|mk|sh|cu|html|css|js|[1-8])|NEWS)`')
PATH = re.compile(r'`((?:[\w-]+/)+[\w-]*)`')
# What must be a name in the sources wherever it stands, or the end of one behind a prefix.
IDENTIFIER = re.compile(r'`([A-Za-z]\w*_\w+)`|\bstruct ([a-z]\w+)|\b([A-Z]{2,}_[A-Z][A-Z_]*)\b(?![…*])')
FUNCTION = re.compile(r'\b([a-z]\w*)\(\)')
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*', re.DOTALL)
NAMED = re.compile(r'(?<![\w./-])((?:[\w-]+/)*[\w-]+\.(?:c|h|def|py|md|cu))\b(?!\.\w)')
TWICE = re.compile(r'(`?)([\w./-]+\.(?:c|h|def|py))\1(?:,| and)\s+\1\2\1')
# A stop of a life in doc/ARCHITECTURE.md: an item of a numbered list, to the next one.
STOP = re.compile(r'^\d+\. .*(?:\n   .*)*', re.M)
# What had another name once, and what it is called now.
FORMER = [
    (re.compile(r"coordinator's epoch|epoch of (?:a|the) coordinator|(?:older|lower|higher|former) epoch"),
     'a life of a coordinator is a term'),
    (re.compile(r'in (?:\w+ )?coordinates|coordinates of (?:the|a) run'), 'a change of variables is a scaling'),
]
# A line of code in a text, and what stands in marks on one line.
CODE = re.compile(r'^(?:    .*|```[^`]*```)$', re.M)
MARKED = re.compile(r'`([^`\n]+)`')
# `doc/OTHER.md`, "A section"; or in brackets.
SECTION = re.compile(r'\b((?:doc|bench)/\w+\.md)`?(?:,| \()\s+"([^"]+)"')
LINK = re.compile(r'\]\(#([\w-]+)\)')
HEADING = re.compile(r'^#+ (.*)', re.M)
VERSION = re.compile(r'`(\w+_VERSION)`')
TARGET = re.compile(r'make ((?:check|bench|release)-[\w-]+|coverage|fuzz|screenshots|tidy)')
# Of a line of code: a path, as from the root or from a build folder in it; a unit program with its suites.
IN_CODE = re.compile(r'(?<![\w./-])(?:\.\.?/)?((?:[\w-]+/)+[\w-]+(?:\.[a-z]+)?)')
SUITES = re.compile(r'tests/unit/(\w+_tests)((?: +[a-z]\w*)*)')
FAILPOINTS = re.compile(r'\bDML_FAILPOINT=[\w.]*?(\w+):\d')


def text_of(name):
    return (source.ROOT / name).read_text()


def fragments():
    return ''.join(path.read_text() for path in source.fragments())


def words_of_tree():
    """All words of all files that are no documents, and of the names of all files."""
    names = known_files() | {'configure.ac', 'Makefile.am', 'm4/cuda.m4'}
    texts = [' '.join(names), *((source.ROOT / name).read_text(errors='replace') for name in names - BESIDE)]
    return {word for text in texts for word in re.findall(r'[A-Za-z]\w+', text)}


def known_files():
    """Paths below the root of everything that a document may name."""
    return {path.relative_to(source.ROOT).as_posix()
            for folder in (*source.FOLDERS, 'man', 'doc', 'examples', 'completion', 'quickstart')
            for path in (source.ROOT / folder).rglob('*') if path.is_file()} | {'NEWS', *OF_THE_TOP}


def absent_files(documents, known):
    """Names of sources that no file has. A name without a folder is that of a file anywhere, and
    one with it may begin in the folder that the text is about."""
    return [f'{document} names {name}' for document, text in documents
            for name in dict.fromkeys(FILE.findall(text) + NAMED.findall(text))
            if name not in NOT_IN_THE_TREE
            and not any(f'/{path}'.endswith(f'/{name}') for path in known)]


def named_twice(texts):
    """A file beside itself: one of the two was another before a renaming."""
    return [f'{path} names {twice[2]} twice in a row' for path, text in texts
            for twice in TWICE.finditer(text)]


def absent_paths(documents, known):
    """Names that begin with a folder of the tree and have no extension: a folder, a program, or a
    file whose extension is left out."""
    there = {f'/{path.rsplit(".", 1)[0]}' for path in known}
    folders = {f'/{path[:at]}' for path in known for at, letter in enumerate(path) if letter == '/'}
    names = {folder.rsplit('/', 1)[1] for folder in folders}
    return [f'{document} names {name}' for document, text in documents
            for name in dict.fromkeys(PATH.findall(text)) if name.split('/')[0] in names
            and not any(path.endswith(f'/{name.rstrip("/")}') for path in there | folders)]


def words_of_code(files):
    """Names in the sources, comments aside: what is there can be called or called upon."""
    return {word for path, text in files for word in re.findall(r'[A-Za-z_]\w*', COMMENT.sub('', text))}


def absent_functions(documents, words):
    known = words | NOT_OURS
    return [f'{document} names {name}()' for document, text in documents
            for name in dict.fromkeys(FUNCTION.findall(text)) if name not in known]


def absent_identifiers(texts, words):
    """Names of constants, structs and whatever has marks that are in no source."""
    names = [(path, next(filter(None, groups))) for path, text in texts
             for groups in dict.fromkeys(IDENTIFIER.findall(text))]
    known = words | NOT_OURS | EXAMPLES
    return [f'{path} names {name}' for path, name in names if name not in known
            and not any(word.endswith(f'_{name}') for word in words)]


def comments_of(files):
    """(path, all comments of the file) of C files."""
    return [(path, '\n'.join(COMMENT.findall(text))) for path, text in files]


def absent_in_comments(comments, known):
    """Files that comments name. A name without a folder is that of a neighbour; NAME stands for any,
    and headers of systems are none of ours."""
    return [f'{path} names {name}' for path, text in comments
            for name in dict.fromkeys(NAMED.findall(text))
            if name not in NOT_IN_THE_TREE | OF_SYSTEMS and 'NAME' not in name
            and f'{path.rsplit("/", 1)[0]}/{name}' not in known
            and not ('/' in name and any(f'/{other}'.endswith(f'/{name}') for other in known))]


def stops_without_a_file(text):
    """Stops of the lives in chapter 3 that do not say which file to open."""
    lives = re.search(r'^# 3\. Lives\n(.*?)^# 4', text, re.M | re.S)
    stops = STOP.findall(lives[1]) if lives else []
    return [f'no file is named: {stop[:60]}' for stop in stops if not FILE.search(stop)] \
        if stops else ['no stop was found']


def former_words(texts):
    return [f'{path} says "{word[0]}": {now}' for path, text in texts
            for pattern, now in FORMER for word in pattern.finditer(text)]


def absent_targets(documents):
    makefiles = fragments()
    return [f'{document} names make {target}' for document, text in documents
            for target in dict.fromkeys(TARGET.findall(text))
            if not re.search(rf'^{target}:', makefiles, re.M)]


def absent_in_code(documents, known, makefiles):
    """Paths in lines of code that begin with a folder of the sources, and that no file, folder or program has."""
    there = known | {path[:at] for path in known for at, letter in enumerate(path) if letter == '/'} | \
        set(re.findall(r'[\w./-]+', makefiles))
    return [f'{document} has {path} in a command' for document, text in documents
            for path in dict.fromkeys(IN_CODE.findall('\n'.join(CODE.findall(text))))
            if path.split('/')[0] in source.FOLDERS and path not in there]


def absent_suites(documents, suites):
    return [f'{document} asks {program} for {suite}' for document, text in documents
            for program, names in SUITES.findall('\n'.join(CODE.findall(text)))
            for suite in names.split() if suite not in suites]


def absent_failpoints(documents, failpoints):
    return [f'{document} names the failpoint {name}' for document, text in documents
            for name in dict.fromkeys(FAILPOINTS.findall(text)) if name not in failpoints]


def absent_words(documents, words):
    """Words in marks that nothing in the tree has, nor as a part of another word."""
    known, inside = words | OF_OTHERS, ' '.join(words)
    return [f'{document} has `{marked}`, of which nothing in the tree has {word}'
            for document, text in documents for marked in dict.fromkeys(MARKED.findall(CODE.sub('', text)))
            for word in re.findall(r'[A-Za-z][A-Za-z0-9_]{2,}', marked)
            if word not in known and word.rstrip('_') not in inside]


def anchor_of(heading):
    return re.sub(r'[^\w -]', '', heading).lower().replace(' ', '-')


def absent_sections(texts, headings):
    """Sections of documents that texts name, and links within a document, that lead nowhere. `headings`
    has those of each document."""
    named = [(path, document, ' '.join(section.split())) for path, text in texts
             for document, section in SECTION.findall(text)]
    return [f'{path} names "{section}" of {document}' for path, document, section in named
            if section not in headings.get(document, [])] + \
        [f'{path} links to #{anchor}' for path, text in texts for anchor in LINK.findall(text)
         if anchor not in map(anchor_of, headings.get(path, []))]


def old_versions(documents, sources):
    """Versions of formats of which a document that names the constant does not tell; what the
    coordinator journals has no history there."""
    number = {name: value for _, text in sources
              for name, value in re.findall(r'^#define (\w+_VERSION) (\d+)', text, re.M)}
    return [f'{document} does not tell of version {number.get(name)}, as {name} is'
            for document, text in documents for name in dict.fromkeys(VERSION.findall(text)) if name != 'STATE_VERSION'
            if not re.search(rf'\bversion[ \n]+\**{number.get(name)}\b|^\| {number.get(name)} \|', text, re.I | re.M)]


def absent_page_sections(pages):
    """Sections that manual pages name and none of them has."""
    there = {heading for _, text in pages for heading in re.findall(r'^\.S[hs] (.*)', text, re.M)}
    return [f'{page} names {section}' for page, text in pages
            for section in re.findall(r'\bSx (.*?)(?: [.,;]| No | ,|$)', text, re.M) if section not in there]


def absent_pages(pages):
    names = {path.rsplit('/', 1)[1] for path, _ in pages}
    return [f'{page} names {name}({number})' for page, text in pages
            for name, number in re.findall(r'\bXr (dml[\w.-]*) (\d)', text) if f'{name}.{number}' not in names]


def untold_variables(sources, pages):
    """Variables of the environment that programs read and no manual page has."""
    told = {word for _, text in pages for word in re.findall(r'\w+', text)}
    read = {name for path, text in sources if not path.startswith(('tests/', 'bench/'))
            for name in re.findall(r'\bgetenv\("(\w+)"\)', text)}
    return [f'no page has {name}' for name in sorted(read - told - NOT_FOR_USERS)]


def keys_that_change(table):
    """Of coordinator/job/key_table.c."""
    rows = re.split(r'^    \{(?=")', table, flags=re.M)[1:]
    return {row.split('"')[1] for row in rows if re.search(r'\bCHANGES\b', row)}


def untold_changes(table, page):
    """Keys that may change when a run is resumed, by the table and by dml.conf(5), if these differ."""
    part = page.split('.Ss What may change when a run is resumed')[1].split('.Sh ')[0]
    told = {word for line in re.findall(r'^\.Ic (.*)', part, re.M) for word in line.split() if word not in ',.'}
    return [f'only one of both has {key}' for key in sorted(keys_that_change(table) ^ told)]


def other_kinds(table, text):
    """Kinds of evaluation that only one of wire/kinds.def and the table of doc/PROTOCOL.md has."""
    kinds = set(re.findall(r'^KIND\(\w+, (\w+), (\d+),', table, re.M))
    told = {(name, number) for number, name in re.findall(r'^\| (\d+) \| ([a-z]+) \|', text, re.M)}
    return [f'only one of both has {name}, {number}' for name, number in sorted(kinds ^ told)]


def lists(documents):
    """(document, names of the example, files) of each list of files to change."""
    return [(document, '|'.join(re.findall(r'\w+', example)), FILE.findall(items))
            for document, text in documents for example, items in LIST.findall(text)]


def unlisted(example, listed, files):
    """Files that name the example and are not in its list. Those of a folder of tests count if the
    list has one of that folder: a test may have the example for a job like any other. The package of
    Python passes keys and files on to the programs."""
    word = re.compile(rf'(?<![a-z])(?:{example})(?![a-z_])', re.I)
    with_tests = {name.rsplit('/', 1)[0] for name in listed if name.startswith('tests/')}
    return [path for path, text in files
            if path not in listed and path not in BESIDE and not path.startswith('python/')
            and (not path.startswith('tests/') or path.rsplit('/', 1)[0] in with_tests)
            and word.search(text)]


def incomplete_lists(documents, known):
    """And files in a list that are not there: those have their full paths."""
    files = [(path, text_of(path)) for path in sorted(known)
             if re.fullmatch(r'[\w./-]+\.(c|h|def|cu|py|md|mk|html|css|js|conf|[1-8])', path)]
    return [f'{document}, to add one as {example}: {name} is not there'
            for document, example, listed in lists(documents)
            for name in listed if name not in known] + \
        [f'{document}, to add one as {example}: {name} names it, but is not in the list'
         for document, example, listed in lists(documents)
         for name in unlisted(example, listed, files)]


def long_lists(documents):
    """Lists that name more files than such a change may touch."""
    return [f'{document}, to add one as {example}: {len(listed)} files'
            for document, example, listed in lists(documents)
            for name, most in FILES_MOST.items() if name in example.split('|') and len(set(listed)) > most]


def planted():
    """Every rule must notice a violation made for it."""
    text = ('To add one, as `made_up`, change exactly these files:\n\n'
            '1. `base/gone.c`: it, and\n   more; `make check-gone`.\n')
    document = [('a.md', text)]
    other = [('a.md', 'Bytes go through `base/inlet`, by `gone_away()`.')]
    comments = comments_of([('base/here.h', '/* See base/gone.h; gone.c calls gone_away(). */ int x;')])
    named = [('a.md', 'see `doc/B.md`, "Gone", or [here](#gone)')]
    page = [('man/a.1', '.Sx GONE\n.Xr dml-gone 1 ,\n')]
    seen = {
        'a file that is not there': absent_files(document, {'base/here.c'}),
        'a file without marks that is not there': absent_files([('a.md', 'see base/gone.c.')], set()),
        'a file that is named twice': named_twice([('a.md', '(`base/a.c`,\n`base/a.c`)')]),
        'a file without its extension that is not there': absent_paths(other, {'base/here.c'}),
        'a function that is not there': absent_functions(other, words_of_code([('a.c', '/* gone_away */')])),
        'a header that a comment names and is not there':
            [name for name in absent_in_comments(comments, {'base/here.h'}) if 'gone.h' in name],
        'a neighbour that a comment names and is in another folder':
            [name for name in absent_in_comments(comments, {'data/gone.c'}) if 'gone.c' in name],
        'a function that a comment names and is not there': absent_functions(comments, {'x'}),
        'a constant that is not there': absent_identifiers([('a.md', 'see GONE_MAX')], {'x'}),
        'a name in marks that is not there': absent_identifiers([('a.md', '`gone_away`')], {'x'}),
        'a struct that is not there': absent_identifiers([('a.md', 'by struct gone')], {'x'}),
        'a stop without a file': stops_without_a_file('# 3. Lives\n\n1. It goes\n   on.\n\n# 4. Folders\n'),
        'a word that has another name': former_words([('a.md', 'an older epoch'), ('b.md', '')]),
        'another word that has another name': former_words([('a.md', 'trained in coordinates')]),
        'a target that is not there': absent_targets(document),
        'a path in a command that is not there': absent_in_code([('a.md', '    ../base/gone.py a')], {'base/here.c'}, ''),
        'a suite that is not there': absent_suites([('a.md', '    tests/unit/a_tests gone  # all')], {'here'}),
        'a failpoint that is not there': absent_failpoints([('a.md', 'DML_FAILPOINT=shard0.gone:1:kill')], {'here'}),
        'a word in marks that is nowhere': absent_words([('a.md', '`gone = 1`')], {'here'}),
        'a section that is not there':
            [name for name in absent_sections(named, {'doc/B.md': ['Here']}) if 'names' in name],
        'a link that leads nowhere':
            [name for name in absent_sections(named, {'a.md': ['Here']}) if 'links' in name],
        'a version that is not told of':
            old_versions([('a.md', 'version 1 (`A_VERSION`)')], [('a.h', '#define A_VERSION 2\n')]),
        'a section that a manual page names and is not there': absent_page_sections(page),
        'a manual page that is not there': absent_pages(page),
        'a variable that no page has': untold_variables([('base/a.c', 'getenv("DML_GONE")')], page),
        'a kind that is not told': other_kinds('KIND(GONE, gone, 1, 1, NONE, "")', '| 1 | here |'),
        'a key that may change and is not told': untold_changes(
            '    {"gone", KEY, CHANGES},\n', '.Ss What may change when a run is resumed\n.Sh X\n'),
        'a file that a list names and is not there': incomplete_lists(document, set()),
        'a list of too many files':
            long_lists([('a.md', document[0][1].replace('made_up', 'working_phase')
                         .replace('it, and', '`a/b.c`, `a/c.c`, `a/d.c`, `a/e.c` and'))]),
        'a file that a list lacks': unlisted('made_up', ['a.c'], [('b.c', 'case MADE_UP:')]),
        'a test that a list lacks':
            unlisted('made_up', ['tests/unit/a.c'], [('tests/unit/b.c', 'made_up();')]),
        'a file that has another name of the example':
            unlisted('made_up|invented', ['a.c'], [('b.c', 'INVENTED(x)')]),
    }
    return [f'not noticed: {what}' for what, found in seen.items() if not found]


def main():
    documents, known = [(name, text_of(name)) for name in DOCUMENTS], known_files()
    sources = list(source.c_files())
    comments = comments_of(sources)
    others = [path for path in known if path.endswith(('.py', '.mk', '.html', '.css', '.js'))] + ['m4/cuda.m4', 'configure.ac']
    words = words_of_code(sources + [(name, text_of(name)) for name in others])
    messages = re.findall(r'^MESSAGE\((\w+)', text_of('wire/messages.def'), re.M)
    tests, failpoints = ('\n'.join(text for path, text in sources if re.search(pattern, path))
                         for pattern in (r'^tests/unit/', r'failpoint\w*\.def$'))
    pages = [(name, text_of(name)) for name in PAGES]
    headings = {name: HEADING.findall(text)
                for name, text in documents + [('bench/RESULTS.md', text_of('bench/RESULTS.md'))]}
    return source.report([
        ('every rule notices a planted violation', planted()),
        ('files that documents name are there',
         absent_files(documents, known) + absent_paths(documents, known)),
        ('no file is named twice in a row', named_twice(documents + comments)),
        ('functions that documents name are there', absent_functions(documents, words)),
        ('names that documents and comments have are in the sources',
         absent_identifiers(documents + comments, words)),
        ('files that comments name are there', absent_in_comments(comments, known)),
        ('functions that comments name are there', absent_functions(comments, words)),
        ('each stop of a life names its file', stops_without_a_file(text_of('doc/ARCHITECTURE.md'))),
        ('documents and comments call things by their present names', former_words(documents + comments)),
        ('targets that documents name are there', absent_targets(documents)),
        ('commands name paths, suites and failpoints that are there',
         absent_in_code(documents, known, fragments())
         + absent_suites(documents, set(re.findall(r'^SUITE\((\w+)\)', tests, re.M)))
         + absent_failpoints(documents, set(re.findall(r'^FAILPOINT\((\w+)', failpoints, re.M))
                             | {f'{way}_{name}' for name in messages for way in ('send', 'receive')})),
        ('words in marks are somewhere in the tree', absent_words(documents, words_of_tree())),
        ('sections that documents and comments name are there',
         absent_sections(documents + comments, headings)),
        ('documents tell of the present versions of formats', old_versions(documents, sources)),
        ('sections and pages that manual pages name are there',
         absent_page_sections(pages) + absent_pages(pages)),
        ('variables of the environment are on a manual page', untold_variables(sources, pages)),
        ('the protocol tells of all kinds of evaluation',
         other_kinds(text_of('wire/kinds.def'), text_of('doc/PROTOCOL.md'))),
        ('dml.conf(5) has the keys that may change when a run is resumed',
         untold_changes(text_of('coordinator/job/key_table.c'), text_of('man/dml.conf.5'))),
        ('a kind of evaluation and a phase of the optimizer touch few files',
         long_lists(documents) + [f'no list is for {name}' for name in FILES_MOST
                                  if not any(name in example.split('|') for _, example, _ in lists(documents))]),
        ('lists of the files to change name what the example names',
         incomplete_lists(documents, known) if len(lists(documents)) > 1 else ['no list was found']),
    ])


if __name__ == '__main__':
    sys.exit(main())
