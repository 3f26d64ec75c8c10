/* Weights of the model, and what columns bring. */

/* The beginning and the end of a long name: bins and texts of one column differ in the end alone.
 */
const shortened = name => name.length > 72 ? `${name.slice(0, 40)}…${name.slice(-30)}` : name;

/* A bar from the middle for each weight, as long as it is heavy, and what it comes to for a
 * deviation of its feature, if the list is by that. */
function weightsTable({ intercept, weights }, by) {
  const sizeOf = entry => by === 'raw' ? entry.weight : entry.weight * entry.deviation;
  const most = Math.max(...weights.map(entry => Math.abs(sizeOf(entry))), 0);
  const row = (name, size, part) => make('tr', {}, make('td', { title: name }, shortened(name)),
    make('td', {}, figure(size, 4)),
    make('td', { className: size < 0 ? 'weight less' : 'weight' },
         make('span', { style: `--part: ${Math.round(100 * part)}%` })));
  const rows = weights.map(entry =>
    row(String(entry.feature), sizeOf(entry), Math.abs(sizeOf(entry)) / most));
  if (isNumber(intercept) && by === 'raw') rows.push(row('(intercept)', intercept, 0));
  return make('table', { className: 'weights bars' }, make('tbody', {}, ...rows));
}

/* Calls `chosen` with how weights are to be compared. */
function deviationChoice(by, chosen) {
  const labels = [['deviation', 'by deviation'], ['raw', 'as they are']].map(([value, text]) => {
    const radio = make('input', { type: 'radio', name: 'weights', value, checked: value === by });
    radio.addEventListener('change', () => chosen(value));
    return make('label', { title: value === 'raw' ? 'of one more of the feature'
      : 'times the standard deviation of the feature' }, radio, text);
  });
  return make('span', { 'className': 'choice', 'role': 'radiogroup',
                        'aria-label': 'how weights are compared' }, ...labels);
}

/* The heaviest weights of one output at a time, as they are or by the deviation of their features.
 */
function weightsPanel(outputs) {
  const names = outputs.map(output => output.class === null ? '' : String(output.class));
  const box = scrolled('weights'), shown = known.weightsShown;
  const hasDeviations = outputs.some(output => output.by_deviation);
  const show = () => {
    const output = outputs[shown.output] || outputs[0], by = hasDeviations ? shown.by : 'raw';
    const weights = by === 'raw' ? output.weights : output.by_deviation || [];
    box.replaceChildren(weightsTable({ ...output, weights }, by));
  };
  const select = make('select', { 'aria-label': 'the class whose weights are shown' },
    ...names.map((name, i) => make('option', { value: i, selected: i === shown.output }, name)));
  select.addEventListener('change', () => { shown.output = Number(select.value); show(); });
  const choice = deviationChoice(shown.by, by => { shown.by = by; show(); });
  show();
  const towards = names.length > 1 ? ', towards' : names[0] ? `, towards ${names[0]}` : '';
  return make('div', { className: 'panel' },
    make('div', { className: 'bar' }, make('h3', {}, 'Heaviest weights' + towards),
         ...names.length > 1 ? [select] : [], ...hasDeviations ? [choice] : []),
    box);
}

const IMPORTANCE_ROWS = 30;

/* What each column of the data brings to the score: a bar as long as its contributions differ. */
function importancePanel({ columns, more, rows, training_rows: all }) {
  const shown = columns.slice(0, record ? columns.length : IMPORTANCE_ROWS);
  const most = Math.max(...columns.map(column => column.deviation), 0);
  const rest = more + columns.length - shown.length;
  const row = ({ column, deviation, share, features }) => make('tr', {},
    make('td', { title: `${column}: ${counted(features, 'feature')}` }, shortened(column)),
    make('td', {}, figure(deviation, 4)),
    make('td', {}, (100 * share).toFixed(1).replace('-0.0', '0.0') + ' %'),
    make('td', { className: 'bring' },
         make('span', { style: `--part: ${most > 0 ? Math.round(100 * deviation / most) : 0}%` })));
  const counts = rows < all ? `${integer(rows)} of ${integer(all)}` : `the ${integer(rows)}`;
  return make('div', { className: 'panel' }, make('h3', {}, 'What each column brings'),
    scrolled('what each column brings', make('table', { className: 'weights bars' },
      headRow(['column', 'deviation', 'share', '']), make('tbody', {}, ...shown.map(row)))),
    noteBelow(`deviation: of what the column adds to the score, over ${counts} training rows; ` +
              'share: of the variance of the score' +
              (rest ? `; ${counted(rest, 'more column')}` : '')));
}
