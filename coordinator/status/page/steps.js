/* The steps of a run, in bounded memory, and what they tell about a column. */

const COLUMNS = ['loss', 'gradient_max', 'step_length', 'trials', 'holdout_loss',
                 'holdout_accuracy', 'seconds', 'history', 'evaluations', 'minibatches'];
const BUCKETS_MAX = 20000, NOTES_MAX = 1000;

/* Steps by number, in buckets of `stride` steps. A bucket has the least and the greatest value of
 * each column. The stride is 1 until there are more steps than buckets. Then it doubles, so that a
 * run without end takes no more memory. */
class Steps {
  constructor() {
    this.stride = 1;
    this.last = -1;
    this.size = 0;
    this.notes = new Map();
    this.low = {}, this.high = {};
    for (const column of COLUMNS) this.low[column] = [], this.high[column] = [];
  }

  add(step) {
    while (step.step >= this.stride * BUCKETS_MAX) this.halve();
    const at = Math.floor(step.step / this.stride);
    for (const column of COLUMNS) {
      const low = this.low[column], high = this.high[column];
      while (low.length <= at) low.push(NaN), high.push(NaN);
      const value = isNumber(step[column]) ? step[column] : NaN;
      const replace = this.stride === 1 || Number.isNaN(low[at]);
      low[at] = replace ? value : Math.min(low[at], Number.isNaN(value) ? low[at] : value);
      high[at] = replace ? value : Math.max(high[at], Number.isNaN(value) ? high[at] : value);
    }
    this.notes.delete(step.step);
    if (step.note) this.notes.set(step.step, String(step.note));
    if (this.notes.size > NOTES_MAX) this.notes.delete(this.notes.keys().next().value);
    this.last = Math.max(this.last, step.step);
    this.size = Math.max(this.size, at + 1);
  }

  halve() {
    this.stride *= 2;
    this.size = Math.ceil(this.size / 2);
    for (const column of COLUMNS) {
      const pair = (values, choose) => {
        const length = Math.ceil(values.length / 2);
        return Array.from({ length }, (_, i) => {
          const both = values.slice(2 * i, 2 * i + 2).filter(value => !Number.isNaN(value));
          return both.length ? choose(...both) : NaN;
        });
      };
      this.low[column] = pair(this.low[column], Math.min);
      this.high[column] = pair(this.high[column], Math.max);
    }
  }

  /* Forgets the steps after `last`: they were rolled back. */
  cut(last) {
    if (last >= this.last) return;
    this.last = last;
    this.size = Math.floor(last / this.stride) + 1;
    for (const column of COLUMNS)
      this.low[column].length = this.high[column].length = this.size;
    for (const step of this.notes.keys()) if (step > last) this.notes.delete(step);
  }

  at(step, column) {
    return this.low[column][Math.floor(step / this.stride)];
  }

  /* Where a step lies on an axis: its number, or a column whose values rise. */
  along(axis, step) {
    return axis === 'step' ? step : this.at(step, axis);
  }

  /* The place of the last step that has one; 0 if there is none. */
  reach(axis) {
    if (axis === 'step') return Math.max(0, this.last);
    const last = this.high[axis].findLast(value => !Number.isNaN(value));
    return last === undefined ? 0 : last;
  }

  /* The step that is nearest to a place on an axis. */
  nearest(axis, place) {
    let best = 0, apart = Infinity;
    for (let i = 0; i < this.size; i++) {
      const step = Math.min(i * this.stride, this.last);
      const distance = Math.abs(this.along(axis, step) - place);
      if (distance < apart) best = step, apart = distance;
    }
    return axis === 'step' ? Math.max(0, Math.min(this.last, Math.round(place))) : best;
  }

  /* Least and greatest value of a column, minus `shift`; [Infinity, -Infinity] if there is none.
   * With `positive` only values above `shift` count. */
  range(column, shift = 0, positive = false) {
    let least = Infinity, most = -Infinity;
    for (const values of [this.low[column], this.high[column]])
      for (const value of values) {
        const y = value - shift;
        if (!(y > 0) && (positive || Number.isNaN(y))) continue;
        if (y < least) least = y;
        if (y > most) most = y;
      }
    return [least, most];
  }
}
