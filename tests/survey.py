#!/usr/bin/env python3
"""Prints the figures that describe the shape of the tree: sizes of files and functions, headers
that serve one file, names that mean several things, assertions, circles of files, comments, documents.

    tests/survey.py            # the tree in which this script lies
    tests/survey.py TREE...    # several trees side by side, as before and after a change

No figure is a limit. Two columns of figures show what a change of the whole tree did."""

import collections
import pathlib
import re
import statistics
import sys

PRODUCT = ('base', 'wire', 'device', 'numeric', 'data', 'plugin', 'objective', 'model', 'library',
           'store', 'optimizer', 'coordinator', 'shard', 'replica', 'cuda')
CODE = ('.c', '.h', '.def', '.cu')
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*', re.DOTALL)
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
STATIC = re.compile(r'^static (?!const|struct \w+ \w+ =)[^;{}=#]*?\b(\w+)\([^;{}=]*\) \{$', re.MULTILINE)
STRUCT = re.compile(r'^struct (\w+) \{', re.MULTILINE)
ASSERTION = re.compile(r'\b(?:static_assert|_Static_assert|assert|invariant)\s*\(')
SHARED_BY_MANY = 4  # grep no longer finds a static function whose name so many files share
LONG_FUNCTION, LONG_FILE = 60, 600  # lines
# Files that people read, apart from the code.
DOCUMENTS = ('NEWS', '*.md', 'doc/**/*.md', 'man/*.[1357]', 'bench/*.md', 'examples/*.md', 'tests/*/*.md')

# A function as clang-format lays it out: its head begins in the first column and ends with "{"; its
# last brace stands alone in the first column.
HEAD = re.compile(r'^(?!typedef\b|(?:static )?(?:const )?(?:struct|union|enum)\b[^(]*\{)'
                  r'[A-Za-z_][^;{}=#]*\)[^;{}=()]*\{$', re.MULTILINE)

# A comment that begins so takes its subject from another place, mostly from the comment above it.
WITHOUT_SUBJECT = re.compile(r'(?:/\*|//)[\s*]*(Of\b|[Tt]he same\b|[Ll]ikewise\b)')

# Members, variables and functions of optimizer/ that name a mode or a phase. Structs that have these
# words in their names (`o->working.count`) and what only counts (`window->most`) are none.
MODES = re.compile(r'by_rows|tile[sd]?|summary|polishing|refreshing|stage|phase|measuring|upper|patience|holdout|'
                   r'directions|orthants|boxed|l1|preconditioned|unconditioned|scaled|biases_due|limited|'
                   r'\w+_phase|patience_is_over|working_set_steps')


def functions(text):
    """(name, lines) of each function."""
    for head in HEAD.finditer(text):
        end = text.find('\n}', head.end() - 1)
        body = text[head.start():end if end > 0 else len(text)]
        yield re.match(r'(?s).*?(\w+)\s*\(', head[0])[1], body.count('\n') + 2


def comments_without_subject(text):
    """(line, opening) of each comment that begins with "Of", "The same" or "Likewise"."""
    return [(text.count('\n', 0, comment.start()) + 1, found[1]) for comment in COMMENT.finditer(text)
            if (found := WITHOUT_SUBJECT.match(comment[0]))]


def tests_of_modes(files):
    """Conditions in optimizer/ that ask which mode or phase is on: each `if`, `while`, `?:`, && and ||
    outside assertions, checks of stored numbers and bugs for the simulator, one a statement, that has
    a name of a mode (MODES). What a table or a switch decides does not count, nor do subscripts."""
    found = 0
    for path, text in files.items():
        if path.startswith('optimizer/') and path.endswith('.c'):
            code = re.sub(r'\b(?:assert|serialize_fails_if)\(.*?\);|^#[^\n]*|\[[^]]*\]', '', COMMENT.sub('', text),
                          flags=re.DOTALL | re.MULTILINE)
            for statement in re.split(r'[;{}]', code):
                # Of `x = condition ? a : b` and of `if (condition)\n action` only the condition asks.
                before = re.split(r'\s\? |\)\n', statement)[0]
                condition = re.split(r'\s=\s', before)[-1]
                asks = before != statement or re.search(r'\b(if|while) \(|&&|\|\|', condition)
                names = re.findall(r'[A-Za-z_]\w*(?!\w|\.|->)', condition)
                found += bool(asks and 'mutant' not in names and any(map(MODES.fullmatch, names)))
    return found


def kinds_named_elsewhere(files):
    """Files that name kinds of evaluations outside the table of kinds, wire/kinds.def."""
    table = next((text for path, text in files.items() if path == 'wire/kinds.def'), '')
    kinds = re.findall(r'^KIND\((\w+)', table, re.MULTILINE)
    name = re.compile(rf'\bEVALUATION_({"|".join(kinds)})\b')
    return [path for path, text in files.items() if kinds and name.search(COMMENT.sub('', text))]


def words_of_documents(root):
    return sum(len(path.read_text().split()) for pattern in DOCUMENTS for path in root.glob(pattern))


def rooms(files):
    """The files of each folder; those of the coordinator room by room."""
    found = {}
    for path, text in files.items():
        parts = path.split('/')
        room = '/'.join(parts[:2]) if parts[0] == 'coordinator' and len(parts) > 2 else parts[0]
        found.setdefault(room, {})[path] = text
    return found


def assertions_per_thousand_lines(files):
    sources = [text for path, text in files.items() if path.endswith('.c')]
    lines = sum(text.count('\n') for text in sources)
    return round(1000 * sum(len(ASSERTION.findall(text)) for text in sources) / lines, 1) if lines else 0


def files_of(root, folders):
    return {path.relative_to(root).as_posix(): path.read_text() for folder in folders
            for path in sorted((root / folder).rglob('*')) if path.suffix in CODE}


def module(path):
    """A source and its header are one node of the graph of files."""
    return path.rsplit('.', 1)[0]


def groups_of(edges):
    """The nodes that reach one another, the largest group first (Tarjan's algorithm)."""
    number, low, stack, found = {}, {}, [], []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in sorted(edges[node]):
            if other not in number:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == number[node]:
            place = stack.index(node)
            group, stack[place:] = stack[place:], []
            if len(group) > 1:
                found.append(sorted(group))

    sys.setrecursionlimit(10000)
    for node in sorted(edges):
        if node not in number:
            visit(node)
    return sorted(found, key=len, reverse=True)


def circles(files):
    """Groups of files that include one another, and of sources that need one another's headers. What
    a header without a source of its own includes counts for those that include it: it has no code."""
    included = {path: [name for name in INCLUDE.findall(text) if name in files]
                for path, text in files.items()}
    sources = {module(path) for path in files if path.endswith(('.c', '.cu'))}

    def needed(path, seen):
        found = set()
        for name in included[path]:
            if module(name) in sources:
                found.add(module(name))
            elif name not in seen:
                seen.add(name)
                found |= needed(name, seen)
        return found

    edges = {name: set() for name in sources}
    for path in files:
        if module(path) in sources:
            edges[module(path)] |= needed(path, set()) - {module(path)}
    return groups_of({path: set(names) for path, names in included.items()}) + groups_of(edges)


def served_by(files):
    """Of each header, the files that include it beside its own source."""
    users = {path: set() for path in files if path.endswith('.h')}
    for path, text in files.items():
        for name in INCLUDE.findall(text):
            if name in users and module(path) != module(name):
                users[name].add(path)
    return users


def share_of_comments(files):
    sources = [text for path, text in files.items() if path.endswith('.c')]
    comments = sum(comment.count('\n') + 1 for text in sources for comment in COMMENT.findall(text))
    return comments / sum(text.count('\n') for text in sources)


def counted(files, pattern):
    return collections.Counter(name for text in files.values() for name in set(pattern.findall(text)))


def called_once(files):
    """Static functions of a source that it names once beside their head."""
    return sum(len(re.findall(rf'\b{name}\b', text)) == 2
               for path, text in files.items() if path.endswith('.c')
               for name in STATIC.findall(text))


def survey(root):
    files = files_of(root, PRODUCT)
    tests = files_of(root, ('tests', 'bench'))
    sources = {path: text for path, text in files.items() if path.endswith('.c')}
    lines = [text.count('\n') for text in files.values()]
    lengths = [length for text in sources.values() for _, length in functions(text)]
    statics = counted(sources, STATIC)
    shared = {least: [count for count in statics.values() if count >= least] for least in (2, SHARED_BY_MANY)}
    users = served_by(files)
    groups = circles(files)
    unclear = {path: len(comments_without_subject(text)) for path, text in {**files, **tests}.items()}
    return {
        'product files': len(files),
        'product lines': sum(lines),
        'lines of C in tests and bench': sum(text.count('\n') for text in tests.values()),
        'words of documents': words_of_documents(root),
        'median file, lines': statistics.median(lines),
        f'files of more than {LONG_FILE} lines': sum(count > LONG_FILE for count in lines),
        'longest file, lines': max(lines),
        'functions': len(lengths),
        'functions a thousand lines of .c':
            round(1000 * len(lengths) / sum(text.count('\n') for text in sources.values()), 1),
        'median function, lines': statistics.median(lengths),
        'nine functions in ten have at most': round(statistics.quantiles(lengths, n=10)[-1]),
        f'functions of more than {LONG_FUNCTION} lines': sum(length > LONG_FUNCTION for length in lengths),
        'longest function, lines': max(lengths),
        'static functions': sum(statics.values()),
        'static functions that are called once': called_once(files),
        **{f'static functions named as in {least} files or more': f'{sum(counts) / sum(statics.values()):.1%}'
           for least, counts in shared.items()},
        'struct names with two meanings': sum(count > 1 for count in counted(files, STRUCT).values()),
        'headers': len(users),
        'headers that serve one file beside their own': sum(len(u) == 1 for u in users.values()),
        'circles of files': len(groups),
        'files in the largest circle': len(groups[0]) if groups else 0,
        'tests of a mode in optimizer/': tests_of_modes(files),
        'files that name kinds of evaluations': len(kinds_named_elsewhere(files)),
        'comments, share of lines of .c': f'{share_of_comments(files):.1%}',
        'comments without a subject': sum(unclear.values()),
        'comments without a subject, in the product': sum(unclear[path] for path in files),
        'assertions': sum(len(ASSERTION.findall(text)) for text in files.values()),
        'assertions a function': round(sum(len(ASSERTION.findall(text)) for text in files.values())
                                       / len(lengths), 3),
        **{f'assertions a thousand lines, {room}': assertions_per_thousand_lines(texts)
           for room, texts in rooms(files).items()},
    }


def main():
    roots = [pathlib.Path(name) for name in sys.argv[1:]] or \
        [pathlib.Path(__file__).resolve().parents[1]]
    surveys = [survey(root) for root in roots]
    for name in dict.fromkeys(name for figures in surveys for name in figures):
        print(f'{name:<52}' + ''.join(f'{figures.get(name, "-"):>12}' for figures in surveys))
    return 0


if __name__ == '__main__':
    sys.exit(main())
