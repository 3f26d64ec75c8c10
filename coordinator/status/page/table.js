/* Tables whose rows stay as elements. */

/* A table that keeps its row elements. `columns` are {name, left, text(row), sort(row), cell(td,
 * row)}; `key(row)` identifies a row. Columns of figures are sorted again only every ten seconds,
 * so that rows do not jump. */
class Table {
  constructor(element, columns, key, sortable) {
    Object.assign(this, { element, columns, key, rows: new Map(), order: null, sortedAt: 0 });
    const heads = columns.map((column, i) => {
      const sorter = { type: 'button', onclick: () => this.sortBy(i) };
      const name = sortable && column.sort ? make('button', sorter, column.name) : column.name;
      return make('th', { scope: 'col', className: column.left ? 'left' : '' }, name);
    });
    this.heads = heads;
    element.tHead.append(make('tr', {}, ...heads));
  }

  sortBy(column) {
    const same = this.order && this.order.column === column;
    const falls = same ? !this.order.falls : !this.columns[column].left;
    this.order = { column, falls };
    this.heads.forEach((head, i) => {
      if (i === column) head.setAttribute('aria-sort', falls ? 'descending' : 'ascending');
      else head.removeAttribute('aria-sort');
    });
    this.sortedAt = 0;
    this.show(this.data);
  }

  sorted(data) {
    if (!this.order) return data;
    const now = Date.now(), { sort, left } = this.columns[this.order.column];
    const sign = this.order.falls ? -1 : 1;
    if (left || now - this.sortedAt > 10000) {
      this.sortedAt = now;
      this.ranks = new Map([...data].sort((a, b) => {
        const x = sort(a), y = sort(b);
        return sign * (x < y ? -1 : x > y ? 1 : 0);
      }).map((row, i) => [this.key(row), i]));
    }
    return [...data].sort((a, b) => this.ranks.get(this.key(a)) - this.ranks.get(this.key(b)));
  }

  show(data) {
    this.data = data;
    const body = this.element.tBodies[0], left = new Set(this.rows.keys());
    this.sorted(data).forEach((row, i) => {
      const key = this.key(row);
      left.delete(key);
      if (!this.rows.has(key))
        this.rows.set(key, make('tr', {}, ...this.columns.map(column =>
          make('td', { className: column.left ? 'left' : column.className || '' }))));
      const element = this.rows.get(key);
      this.columns.forEach((column, c) => {
        if (column.cell) column.cell(element.cells[c], row);
        else setText(element.cells[c], column.text(row));
      });
      if (body.rows[i] !== element) body.insertBefore(element, body.rows[i] || null);
    });
    for (const key of left) {
      this.rows.get(key).remove();
      this.rows.delete(key);
    }
  }
}
