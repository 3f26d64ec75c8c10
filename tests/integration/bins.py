"""Where the bins of a column part, as the manual says it, written independently."""

import collections


def bin_edges(values, bins):
    """The least values of all bins but the first."""
    counts = collections.Counter(values)
    frequent = {value for value in counts if counts[value] >= len(values) // bins + 1}
    others, left = sum(n for value, n in counts.items() if value not in frequent), bins - len(frequent)
    edges, filled, order = [], 0, sorted(counts)
    for value, after in zip(order, order[1:]):
        filled += 0 if value in frequent else counts[value]
        share = -(-others // left)
        full = value in frequent or filled >= share or (after in frequent and filled >= (share + 1) // 2)
        if full and len(edges) + 1 < bins:
            edges.append(after)
            others, filled = others - filled, 0
            left -= value not in frequent and left > 1
    return edges
