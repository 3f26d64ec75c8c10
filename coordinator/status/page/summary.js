/* Estimates with their errors, and the fit. */

const SUMMARY_ROWS = 50;   // more of them are in a report, and `dml-coordinator summary` prints all
const FIT_FIGURES = ['null_deviance', 'deviance', 'pearson', 'dispersion', 'log_likelihood', 'aic',
                     'bic', 'parameters', 'freedom', 'null_freedom', 'rows', 'weight'];
const probability = p => isNumber(p) && p < 2.2e-16 ? '<2e-16' : figure(p, 3);

function summaryRow(row, hasRatio) {
  const columns = ['estimate', 'error', 'statistic', 'p', 'low', 'high',
                   ...hasRatio ? ['ratio', 'ratio_low', 'ratio_high'] : []];
  const name = row.class === undefined ? row.name : `${row.class}: ${row.name}`;
  const first = make('td', { title: name }, name);
  if (row.aliased)
    return make('tr', {}, first, make('td', {}, figure(row.estimate, 5)),
      make('td', { className: 'left muted', colSpan: columns.length - 1 },
           row.reference ? 'reference level' : 'aliased'));
  return make('tr', {}, first, ...columns.map(column => make('td', {},
    column === 'p' ? probability(row.p) : figure(row[column], column === 'estimate' ? 5 : 4))));
}

/* Estimates with their errors and tests, and what is to be said about them. */
function summaryTables(table) {
  const level = `${figure(100 * table.level, 4)}%`, hasRatio = table.ratio !== null;
  const heads = ['', 'estimate', 'error', table.test, 'p', `${level} low`, 'high',
                 ...hasRatio ? [table.ratio, `${level} low`, 'high'] : []];
  const shown = record ? table.rows : table.rows.slice(0, SUMMARY_ROWS);
  const rest = table.rows.length - shown.length;
  const left = rest ? [`${counted(rest, 'more row')} are not shown here.`] : [];
  return [
    make('div', { className: 'panel wide' }, make('h3', {}, `Estimates, errors: ${table.errors}`),
      scrolled('estimates', make('table', { className: 'weights' }, headRow(heads),
        make('tbody', {}, ...shown.map(row => summaryRow(row, hasRatio))))),
      ...[...table.notes, ...left].map(note => make('p', { className: 'none' }, note)))];
}

/* How well the model fits. */
function fitTable({ fit }) {
  return make('div', { className: 'panel' }, make('h3', {}, 'Fit over the training rows'),
    make('div', { className: 'scroll' }, make('table', {}, make('tbody', {},
      ...FIT_FIGURES.filter(name => isNumber(fit[name])).map(name => figureRow(name, fit))))));
}
