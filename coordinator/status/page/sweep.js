/* The sweep of a run: each value that was tried, and the one that was chosen. */

const SPREAD = { width: 420, height: 220, left: 62, right: 16, top: 12, bottom: 34 };

/* The standard error of the mean over the folds, by which `choose = one_se` decides; 0 if there is
 * none. */
const errorOf = ({ score }) => isNumber(score.standard_error) ? score.standard_error : 0;

/* What the chart of a sweep shows: rows by l2, or by l1 if only that varies, and where each is
 * drawn. Null if there are fewer than two places. */
function sweepScales(sweep) {
  const axis = new Set(sweep.path.map(row => row.l2)).size > 1 ? 'l2' : 'l1';
  const rows = sweep.path.filter(row => row[axis] > 0 && row.score && isNumber(row.score.mean));
  const places = rows.map(row => Math.log10(row[axis]));
  if (new Set(places).size < 2) return null;
  const { width, height, left, right, top, bottom } = SPREAD;
  const least = Math.min(...places), most = Math.max(...places);
  const scale = linearScale(Math.min(...rows.map(row => row.score.mean - errorOf(row))),
                            Math.max(...rows.map(row => row.score.mean + errorOf(row))),
                            false);
  const across = width - left - right - 16;
  return {
    axis, rows, ticks: scale.ticks, ends: [10 ** least, 10 ** most],
    xOf: value => left + 8 + (Math.log10(value) - least) / (most - least) * across,
    yOf: value => height - bottom - scale.place(value) * (height - top - bottom),
  };
}

/* A curve of the means; one for each l1 if both penalties vary. */
function sweepCurves({ axis, rows, xOf, yOf }) {
  const groups = new Map();
  for (const row of rows) {
    const key = axis === 'l2' ? row.l1 : '';
    groups.set(key, [...groups.get(key) || [], row]);
  }
  return [...groups.values()].map(list => drawn('path', { class: 'curve', d: list.map((row, i) =>
    `${i ? 'L' : 'M'}${xOf(row[axis]).toFixed(1)} ${yOf(row.score.mean).toFixed(1)}`).join('') }));
}

/* A dot for a row, with its standard error on each side. */
function sweepDot({ axis, xOf, yOf }, row) {
  const { mean } = row.score, spread = errorOf(row), x = xOf(row[axis]);
  const line = `M${x} ${yOf(mean - spread)}V${yOf(mean + spread)}`;
  return [...spread ? [drawn('path', { class: 'spread', d: line })] : [],
          drawn('circle', { class: row.chosen ? 'inforce' : 'dot', cx: x, cy: yOf(mean),
                            r: row.chosen ? 5 : 3 })];
}

function sweepAxes({ axis, ticks, ends, xOf, yOf }) {
  const { width, height, left, right, top, bottom } = SPREAD;
  const text = (words, x, y, anchor) => drawn('text', { x, y, 'text-anchor': anchor }, words);
  return [
    drawn('rect', { class: 'frame', x: left, y: top, width: width - left - right,
                    height: height - top - bottom }),
    ...ticks.filter(([value]) => yOf(value) >= top && yOf(value) <= height - bottom)
      .map(([value, words]) => text(words, left - 6, yOf(value) + 4, 'end')),
    ...['start', 'end'].map((anchor, i) =>
      text(figure(ends[i], 3), xOf(ends[i]), height - bottom + 14, anchor)),
    text(axis + ', logarithmic', (left + width - right) / 2, height - 4, 'middle')];
}

/* Nothing if there are fewer than two places. */
function sweepChart(sweep, by) {
  const scales = sweepScales(sweep);
  if (!scales) return [];
  const over = !sweep.folds ? ' on the holdout'
    : ', the mean of the folds with its standard error on each side';
  return [
    make('div', { className: 'curves', style: 'padding: 0 12px' },
      drawn('svg', { 'viewBox': `0 0 ${SPREAD.width} ${SPREAD.height}`, 'role': 'img',
                     'style': 'max-width: 560px', 'aria-label': `${by} by ${scales.axis}` },
        ...sweepAxes(scales), ...sweepCurves(scales),
        ...scales.rows.flatMap(row => sweepDot(scales, row)))),
    noteBelow(`${by}${over}; the larger dot is the value that was chosen`)];
}

/* The columns of the table, as [head, cell(row)]. */
function sweepColumns(sweep, by) {
  const { path, folds } = sweep;
  const some = name => path.some(row => isNumber(row[name]));
  const varies = name => new Set(path.map(row => row[name])).size > 1;
  const keys = ['l2', 'l1'].filter((name, i) => some(name) && (!i || varies(name)));
  const score = row => row.score || {};   // those of before have none
  const over = folds ? `, mean of ${counted(folds, 'fold')}` : ' on the holdout';
  const fate = row => [row.chosen ? 'chosen' : '', row.publication === 'live' ? '★ live' : ''];
  return [
    ...keys.map(key => [key, row => figure(row[key])]),
    [by + over, row => figure(score(row).mean)],
    ...folds ? [['std error', row => figure(score(row).standard_error, 2)]] : [],
    ...some('nonzero') ? [['nonzero', row => integer(row.nonzero)]] : [],
    ['run', row => integer(row.run)],
    ['', row => fate(row).filter(Boolean).join(', ')]];
}

/* A row a value of the sweep, with the figure by which one of them is chosen: where none has what
 * was asked for, that is the loss. */
function sweepTable(sweep, chosen) {
  const by = ((chosen || sweep).choose_by || 'loss').replaceAll('_', ' ');
  const columns = sweepColumns(sweep, by);
  const row = of => make('tr', {}, ...columns.map(([, cell]) => make('td', {}, cell(of))));
  return make('div', { className: 'panel' },
    make('h3', {}, `The sweep: ${sweep.done} of ${counted(sweep.runs, 'run')}`),
    ...sweepChart(sweep, by),
    scrolled('the sweep', make('table', { className: 'sweep' },
      headRow(columns.map(([head]) => head)), make('tbody', {}, ...sweep.path.map(row)))));
}
