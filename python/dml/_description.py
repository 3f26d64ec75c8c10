"""The description of a model, its file model.json: names of columns and classes, which a fit on arrays does not know."""

import hashlib
import json

CHECKSUM = 'json_sha256'


def text_of_class(label):
    """A class as the programs write it in tables; None: no cell of a table can hold it."""
    if isinstance(label, str):
        return label if label.strip() == label != '' and label.isprintable() else None
    if hasattr(label, 'item'):
        label = label.item()
    if isinstance(label, bool):
        return 'true' if label else 'false'
    if isinstance(label, (int, float)):
        return str(int(label)) if label == int(label) else repr(label)
    return None


def with_names(content, columns=(), means=(), classes=()):
    """The bytes of a model.json, in which the columns of an array, by their order, and the classes have these names."""
    described = json.loads(content)
    known = described.get(CHECKSUM) == checksum(described)
    texts = [text_of_class(label) for label in classes]
    if texts and None not in texts and len(set(texts)) == len(texts):
        described['classes'] = texts
    if len(columns) and len(set(columns)) == len(columns) and '' not in columns:
        described['feature_names'] = [columns[place] for place in means]
        described['preparation'] = {'columns': [{'name': name, 'kind': 'number', 'mean': means.get(place, 0.0)}
                                                for place, name in enumerate(columns)],
                                    'missing': ['NA', 'NaN', 'nan', 'null'], 'trim': True}
        described['source'] = {'format': 'csv', 'header': 'yes', 'skip': []}
    described.pop(CHECKSUM, None)
    if known:
        described[CHECKSUM] = checksum(described)
    return json.dumps(described, indent=2, ensure_ascii=False).encode()


def checksum(described):
    """Of the whole description without this member, as doc/FORMATS.md has it."""
    rest = {name: value for name, value in described.items() if name != CHECKSUM}
    return hashlib.sha256(canonical(rest).encode(errors='surrogatepass')).hexdigest()


def canonical(value):
    if isinstance(value, dict):
        return '{' + ','.join(f'{canonical(name)}:{canonical(value[name])}' for name in sorted(value)) + '}'
    if isinstance(value, list):
        return '[' + ','.join(map(canonical, value)) + ']'
    return number_text(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


def number_text(number):
    """With 17 digits, a point or an exponent, and no + or leading zeros in the exponent."""
    digits, _, exponent = f'{number:.17g}'.partition('e')
    if exponent:
        return f'{digits}e{int(exponent)}'
    return digits if '.' in digits else f'{digits}.0'
