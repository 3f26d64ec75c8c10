#!/usr/bin/env python3
"""Checks that no file and no function is too large to be read at once, and that they are not crumbs:
half of the product's files hold a subject, and half of its functions a thought."""

import re
import statistics
import sys

import source

FUNCTION_LINES_MAX = 80
SCRIPT_LINES_MAX = 40
FUNCTION_LINES_MEDIAN = 25
FUNCTION_LINES_MEDIAN_MIN = 9
FILE_LINES_MAX = 800
FILE_LINES_MEDIAN_MIN = 120
TESTS = ('tests/', 'bench/')  # the median leaves them out
SUFFIXES = ('.c', '.h', '.def', '.py', '.mk', '.sh', '.js', '.css', '.html')
LARGEST = 5  # how many of the largest are printed

# A function as clang-format lays it out: its head begins in the first column and ends with "{"; its
# last brace stands alone in the first column.
HEAD = re.compile(r'^(?!typedef\b|(?:static )?(?:const )?(?:struct|union|enum)\b[^(]*\{)'
                  r'[A-Za-z_][^;{}=#]*\)[^;{}=()]*\{$', re.M)


def functions(text):
    """(name, lines) of each function."""
    for head in HEAD.finditer(text):
        end = text.find('\n}', head.end() - 1)
        body = text[head.start():end if end > 0 else len(text)]
        yield re.match(r'(?s).*?(\w+)\s*\(', head[0])[1], body.count('\n') + 2


# Of a script: its head, which names it, and what ends it.
SCRIPT_FUNCTIONS = [(re.compile(r'^(?:async )?function (\w+)', re.M), '\n}\n'),
                    (re.compile(r'^const (\w+) = .*=>', re.M), '\n\n'),
                    (re.compile(r'^  (?:async )?(\w+)\(.*\) \{$', re.M), '\n  }\n')]


def long_script_functions(path, text):
    found = [(head[1], (text[head.start():].split(end)[0] + end).rstrip('\n').count('\n') + 1)
             for pattern, end in SCRIPT_FUNCTIONS for head in pattern.finditer(text)]
    return [f'{path}: {name}() has {lines} lines' for name, lines in found
            if lines > SCRIPT_LINES_MAX]


def long_functions(path, text):
    return [f'{path}: {name}() has {lines} lines' for name, lines in functions(text)
            if lines > FUNCTION_LINES_MAX]


def long_files(path, text):
    lines = text.count('\n')
    return [f'{path} has {lines} lines'] if lines > FILE_LINES_MAX else []


def long_median(lengths):
    median = statistics.median(lengths)
    return [f'it is {median}'] if median > FUNCTION_LINES_MEDIAN else []


def short_median(lengths, least):
    """The floor below which a reader jumps more than reads."""
    median = statistics.median(lengths)
    return [f'it is {median}, and should be {least}'] if median < least else []


def planted():
    """Every rule must notice a violation made for it, and accept what is just allowed."""
    def function(lines, head='static int f(int a,\n             int b) {'):
        return head + '\n' * (lines - head.count('\n') - 1) + '}\n'

    least = function(FUNCTION_LINES_MAX)
    noticed = {
        'a long function': long_functions('base/a.c', function(FUNCTION_LINES_MAX + 1)),
        'a long function among others':
            long_functions('base/a.c', least + function(FUNCTION_LINES_MAX + 1, 'int *f(void) {')),
        'a long function of a script':
            long_script_functions('a.js', 'async function f(a) {' + '\n' * SCRIPT_LINES_MAX + '}\n'),
        'a long arrow function':
            long_script_functions('a.js', 'const f = a => {' + '\n//' * SCRIPT_LINES_MAX + '\n};\n\n'),
        'a long method':
            long_script_functions('a.js', '  f({ a = 1 }) {' + '\n' * SCRIPT_LINES_MAX + '  }\n'),
        'a long file': long_files('tests/a.py', '\n' * (FILE_LINES_MAX + 1)),
        'a large median': long_median([1, FUNCTION_LINES_MEDIAN + 1, FUNCTION_LINES_MEDIAN + 1]),
        'a small median': short_median([1, 1, 99], 2),
    }
    spared = {
        'the longest function': long_functions('base/a.c', least),
        'the longest file': long_files('tests/a.py', '\n' * FILE_LINES_MAX),
        'a long table': long_functions('base/a.c', 'static const struct f g[] = {'
                                       + '\n' * FUNCTION_LINES_MAX + '};\n'),
        'a long struct': long_functions('base/a.h', 'struct f {\n    int (*g)(void);'
                                        + '\n' * FUNCTION_LINES_MAX + '};\n'),
    }
    return [f'not noticed: {what}' for what, found in noticed.items() if not found] + \
        [f'refused: {what}' for what, found in spared.items() if found]


def all_files():
    """Every file that people write and read."""
    for path in sorted(source.ROOT.rglob('*')):
        relative = path.relative_to(source.ROOT)
        if path.suffix in SUFFIXES and relative.parts[0] in source.FOLDERS:
            yield relative.as_posix(), path.read_text()


def tell(files, lengths):
    """Prints the figures, so that a reader sees how they develop."""
    print(f'# {len(lengths)} functions, median {statistics.median(lengths)} lines, 9 in 10 at most '
          f'{statistics.quantiles(lengths, n=10)[-1]:.0f}')
    longest = sorted(((lines, path, name) for path, text in files if path.endswith(('.c', '.h'))
                      for name, lines in functions(text)), reverse=True)[:LARGEST]
    for lines, path, name in longest:
        print(f'# {path}: {name}() has {lines} lines')
    for lines, path in sorted(((text.count('\n'), path) for path, text in files),
                              reverse=True)[:LARGEST]:
        print(f'# {path} has {lines} lines')


def main():
    files = list(all_files())
    code = [(path, text) for path, text in files if path.endswith(('.c', '.h'))]
    lengths = [lines for path, text in code if path.endswith('.c') and not path.startswith(TESTS)
               for _, lines in functions(text)]
    product = [text.count('\n') for path, text in code if not path.startswith((*TESTS, 'examples/'))]
    tell(files, lengths)
    return source.report([
        ('every rule notices a planted violation', planted()),
        (f'no function is longer than {FUNCTION_LINES_MAX} lines',
         [found for path, text in code for found in long_functions(path, text)]),
        (f'no function of a script is longer than {SCRIPT_LINES_MAX} lines',
         [found for path, text in files if path.endswith('.js')
          for found in long_script_functions(path, text)]),
        (f'half of all functions have at most {FUNCTION_LINES_MEDIAN} lines', long_median(lengths)),
        (f'half of all functions have at least {FUNCTION_LINES_MEDIAN_MIN} lines',
         short_median(lengths, FUNCTION_LINES_MEDIAN_MIN)),
        (f'half of the product\'s files have at least {FILE_LINES_MEDIAN_MIN} lines',
         short_median(product, FILE_LINES_MEDIAN_MIN)),
        (f'no file is longer than {FILE_LINES_MAX} lines',
         [found for path, text in files for found in long_files(path, text)]),
    ])


if __name__ == '__main__':
    sys.exit(main())
