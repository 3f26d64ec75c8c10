#!/usr/bin/env python3
"""Prints the figures by which the shape of the tree is judged: sizes of files and functions, headers
that serve one file, names that mean several things, assertions, circles of files, comments.

    tests/survey.py            # of the tree it stands in
    tests/survey.py TREE...    # of several trees side by side, as before and after a change

shape.py holds limits; this only tells, so that a change of the whole can be compared."""

import collections
import pathlib
import re
import statistics
import sys

import shape

PRODUCT = ('base', 'wire', 'device', 'numeric', 'data', 'plugin', 'objective', 'model', 'library',
           'store', 'optimizer', 'coordinator', 'shard', 'replica')
CODE = ('.c', '.h', '.def', '.cu')
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*', re.DOTALL)
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
STATIC = re.compile(r'^static (?!const|struct \w+ \w+ =)[^;{}=#]*?\b(\w+)\([^;{}=]*\) \{$', re.MULTILINE)
STRUCT = re.compile(r'^struct (\w+) \{', re.MULTILINE)
ASSERTION = re.compile(r'\b(?:static_assert|_Static_assert|assert|invariant)\s*\(')
SHARED_BY_MANY = 5  # so many files with a static function of one name: grep no longer finds it


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
    lines = [text.count('\n') for text in files.values()]
    functions = [length for path, text in files.items() if path.endswith('.c')
                 for _, length in shape.functions(text)]
    statics = counted({path: text for path, text in files.items() if path.endswith('.c')}, STATIC)
    users = served_by(files)
    groups = circles(files)
    code_lines = sum(lines)
    return {
        'product files': len(files),
        'product lines': code_lines,
        'lines of C in tests and bench': sum(text.count('\n') for text in tests.values()),
        'median file, lines': statistics.median(lines),
        'longest file, lines': max(lines),
        'functions': len(functions),
        'median function, lines': statistics.median(functions),
        'nine functions in ten have at most': round(statistics.quantiles(functions, n=10)[-1]),
        'longest function, lines': max(functions),
        'static functions': sum(statics.values()),
        'of these called once': called_once(files),
        f'static names in {SHARED_BY_MANY} files or more':
            sum(count >= SHARED_BY_MANY for count in statics.values()),
        'struct names with two meanings': sum(count > 1 for count in counted(files, STRUCT).values()),
        'headers': len(users),
        'headers that serve one file beside their own': sum(len(u) == 1 for u in users.values()),
        'circles of files': len(groups),
        'files in the largest circle': len(groups[0]) if groups else 0,
        'assertions': sum(len(ASSERTION.findall(text)) for text in files.values()),
        'assertions a function': round(sum(len(ASSERTION.findall(text)) for text in files.values())
                                       / len(functions), 3),
        'comments, share of lines of .c': f'{share_of_comments(files):.1%}',
    }


def main():
    roots = [pathlib.Path(name) for name in sys.argv[1:]] or \
        [pathlib.Path(__file__).resolve().parents[1]]
    surveys = [survey(root) for root in roots]
    for name in surveys[0]:
        print(f'{name:<46}' + ''.join(f'{figures[name]:>12}' for figures in surveys))
    return 0


if __name__ == '__main__':
    sys.exit(main())
