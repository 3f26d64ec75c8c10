#!/usr/bin/env python3
"""Checks that README.md and doc/ say of the tree what is so: files, functions and targets that they
name are there, and a list of the files to change is complete for the example that it names. Comments
in the sources are read for files, functions and other names, too."""

import re
import sys

import source

DOCUMENTS = ['README.md', *sorted(f'doc/{path.name}' for path in (source.ROOT / 'doc').glob('*.md')),
             'bench/NOTES.md', 'tests/fault/README.md', 'tests/hosts/README.md']

# What a list need not name: what tells of a change, and what was measured.
BESIDE = {'NEWS', 'bench/RESULTS.md', *DOCUMENTS}

# What configure makes, and names that stand for any.
NOT_IN_THE_TREE = {'config.h', 'FOLDER/local.mk', 'tests/unit/FOLDER.mk'}
OF_SYSTEMS = {'cmocka.h', 'linux/magic.h', 'sysexits.h'}
# Names of systems that stand in no code of ours, as functions that we do not call, and why.
NOT_OURS = {'hypot', 'pthread_cancel', 'ASAN_OPTIONS'}

# What the example in a comment declares.
EXAMPLES = {'scale_arguments'}

# "To add one, as `name` (`other names`), change exactly these files", and the numbered list behind it.
LIST = re.compile(r'To\s+add\s+(?:one|an?\s[\w\s]+?),\s+as\s+(`\w+`(?:\s+\([`\w,\s]+\))?),\s+change\s+exactly'
                  r'\s+these\s+files[^:]*:\n\n((?:(?:\d+\.| ) .*\n)+)')
FILE = re.compile(r'`((?:[\w.-]+/)*[\w.-]+\.(?:c|h|def|py|md|mk|sh|cu|html|[1-8])|NEWS)`')
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
TARGET = re.compile(r'make ((?:check|bench)-[\w-]+|fuzz|screenshots)')


def text_of(name):
    return (source.ROOT / name).read_text()


def fragments():
    return ''.join(path.read_text() for path in source.fragments())


def known_files():
    """Paths below the root of everything that a document may name."""
    return {path.relative_to(source.ROOT).as_posix()
            for folder in (*source.FOLDERS, 'man', 'doc', 'examples', 'completion', 'quickstart')
            for path in (source.ROOT / folder).rglob('*') if path.is_file()} | {'NEWS', 'README.md'}


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


def lists(documents):
    """(document, names of the example, files) of each list of files to change."""
    return [(document, '|'.join(re.findall(r'\w+', example)), FILE.findall(items))
            for document, text in documents for example, items in LIST.findall(text)]


def unlisted(example, listed, files):
    """Files that name the example and are not in its list. Those of a folder of tests count if the
    list has one of that folder: a test may have the example for a job like any other."""
    word = re.compile(rf'(?<![a-z])(?:{example})(?![a-z_])', re.I)
    with_tests = {name.rsplit('/', 1)[0] for name in listed if name.startswith('tests/')}
    return [path for path, text in files
            if path not in listed and path not in BESIDE
            and (not path.startswith('tests/') or path.rsplit('/', 1)[0] in with_tests)
            and word.search(text)]


def incomplete_lists(documents, known):
    """And files in a list that are not there: those have their full paths."""
    files = [(path, text_of(path)) for path in sorted(known)
             if re.fullmatch(r'[\w./-]+\.(c|h|def|cu|py|md|mk|html|conf|[1-8])', path)]
    return [f'{document}, to add one as {example}: {name} is not there'
            for document, example, listed in lists(documents)
            for name in listed if name not in known] + \
        [f'{document}, to add one as {example}: {name} names it, but is not in the list'
         for document, example, listed in lists(documents)
         for name in unlisted(example, listed, files)]


def planted():
    """Every rule must notice a violation made for it."""
    text = ('To add one, as `made_up`, change exactly these files:\n\n'
            '1. `base/gone.c`: it, and\n   more; `make check-gone`.\n')
    document = [('a.md', text)]
    other = [('a.md', 'Bytes go through `base/inlet`, by `gone_away()`.')]
    comments = comments_of([('base/here.h', '/* See base/gone.h; gone.c calls gone_away(). */ int x;')])
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
        'a file that a list names and is not there': incomplete_lists(document, set()),
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
    others = [path for path in known if path.endswith(('.py', '.mk', '.html'))] + ['m4/cuda.m4', 'configure.ac']
    words = words_of_code(sources + [(name, text_of(name)) for name in others])
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
        ('lists of the files to change name what the example names',
         incomplete_lists(documents, known) if len(lists(documents)) > 1 else ['no list was found']),
    ])


if __name__ == '__main__':
    sys.exit(main())
