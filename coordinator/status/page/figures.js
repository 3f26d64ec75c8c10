/* Figures of the model on the holdout and the test data, and who is taken for whom. */

const LISTED_CLASSES = 40;   // with more of them the confusion matrix is a picture without numbers
const WIDE_CLASSES = 6;      // with more of them it takes the width of the page, and scrolls

/* What a figure is called and how it is written: a name of the JSON has _ between words. */
const figureRow = (name, ...sets) => make('tr', {},
  make('td', {}, name.replaceAll('_', ' ')),
  ...sets.map(set => make('td', {}, Number.isInteger(set[name]) ? integer(set[name])
    : figure(set[name], 6))));

/* With the accuracy of guessing the largest class for each row, beside which that of the model is
 * read; without it where examples have weights, which the counts of classes have not. */
function withBaseline(set) {
  if (!isNumber(set.accuracy) || isNumber(set.weight) || !hasConfusion(set)) return set;
  const largest = Math.max(...set.classes.map(({ examples }) => examples));
  return Object.fromEntries(Object.entries(set).flatMap(([name, value]) => name === 'accuracy'
    ? [[name, value], ['accuracy of the largest class', largest / set.examples]]
    : [[name, value]]));
}

function figureTable(given) {
  const sets = given.map(([over, set]) => [over, withBaseline(set)]);
  const names = [...new Set(sets.flatMap(([, set]) =>
    Object.keys(set).filter(name => isNumber(set[name]) || set[name] === null)))];
  return make('div', { className: 'panel' }, make('div', { className: 'scroll' },
    make('table', {},
      headRow(['figure', ...sets.map(([over]) => 'on the ' + over)]),
      make('tbody', {}, ...names.map(name => figureRow(name, ...sets.map(([, set]) => set)))))));
}

/* A row a true class, a column a predicted one; the colour is the share of the row. */
function confusionTable(over, set) {
  const names = set.classes.map(entry => String(entry.class));
  const dense = names.length > LISTED_CLASSES;
  const cell = (count, row, i, j) => {
    const part = count / Math.max(1, row.reduce((sum, n) => sum + n, 0));
    return make('td', { style: `--part: ${Math.round(100 * part)}%`,
                        title: `${names[i]} taken for ${names[j]}: ${count}` },
                dense ? '' : integer(count));
  };
  const corner = make('th', {}, 'true ↓ ', make('wbr'), 'predicted\u00a0→');
  const heads = dense ? [] : [make('thead', {}, make('tr', {}, corner,
    ...names.map(name => make('th', { title: name }, make('span', {}, name)))))];
  const rows = set.confusion.map((row, i) => make('tr', {},
    ...dense ? [] : [make('th', { title: names[i] }, names[i])],
    ...row.map((count, j) => cell(count, row, i, j))));
  const wide = names.length > WIDE_CLASSES && !dense ? ' wide' : '';
  return make('div', { className: 'panel' + wide }, make('h3', {}, `Confusion on the ${over}`),
    scrolled(`confusion on the ${over}`,
      make('table', { className: 'confusion' + (dense ? ' dense' : '') + wide }, ...heads,
        make('tbody', {}, ...rows))),
    ...dense ? [noteBelow(`${names.length} classes: a row a true one, a column a predicted one, ` +
      `from ${names[0]} to ${names.at(-1)}; a stronger colour is a larger share of the row`)] : []);
}

const hasConfusion = set => Array.isArray(set.confusion) && Array.isArray(set.classes) &&
  set.classes.length === set.confusion.length;
