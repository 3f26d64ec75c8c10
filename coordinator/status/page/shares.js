/* Of two classes: what each threshold comes to, and whether probabilities are frequencies. */

/* A chart of shares, from 0 to `most` on both axes: lists of [x, y] as a curve, as dots with a
 * size, and as what chance would come to; `mark` is the point of the threshold in force. */
const CHART = { width: 260, height: 236, left: 34, right: 10, top: 24, bottom: 34 };
function shareChart({ name, x, y, label, curve, dots = [], chance = [], mark = null, most = 1 }) {
  const { width, height, left, right, top, bottom } = CHART;
  const at = ([a, b]) => [left + (width - left - right) * Math.min(1, a / most),
                          height - bottom - (height - top - bottom) * Math.min(1, b / most)];
  const path = points => points.map(at).map(([a, b], i) =>
    `${i ? 'L' : 'M'}${a.toFixed(1)} ${b.toFixed(1)}`).join('');
  const text = (words, a, b, anchor, look = '') =>
    drawn('text', { x: a, y: b, 'text-anchor': anchor, class: look }, words);
  const tick = figure(most / 2, 2), end = figure(most, 2);
  return drawn('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label },
    drawn('rect', { class: 'frame', x: left, y: top, width: width - left - right,
                    height: height - top - bottom }),
    text(name, left, 14, 'start', 'name'), text(x, width - right, height - 4, 'end'),
    text(y, width - right, 14, 'end'), text('0', left, height - bottom + 14, 'middle'),
    text(tick, at([most / 2, 0])[0], height - bottom + 14, 'middle'),
    text(end, width - right, height - bottom + 14, 'end'),
    text(tick, left - 5, at([0, most / 2])[1] + 4, 'end'), text(end, left - 5, top + 8, 'end'),
    ...chance.length ? [drawn('path', { class: 'chance', d: path(chance) })] : [],
    drawn('path', { class: 'curve', d: path(curve) }),
    ...dots.map(([a, b, size]) => drawn('circle', { class: 'dot', cx: at([a, b])[0],
                                                    cy: at([a, b])[1], r: size })),
    ...mark ? [drawn('circle', { class: 'inforce', cx: at(mark)[0], cy: at(mark)[1],
                                 r: 4.5 })] : []);
}

/* Frequencies by probability; only as far as probabilities go, which may be rare. */
function reliabilityChart(over, { reliability }, error) {
  const points = reliability.map(tenth => [tenth.probability, tenth.frequency]);
  const largest = Math.max(...points.flat());
  const most = [.01, .02, .05, .1, .2, .5, 1].find(value => value >= largest) || 1;
  const all = reliability.reduce((sum, tenth) => sum + tenth.examples, 0);
  return shareChart({ name: 'Reliability', x: 'probability', y: 'frequency', most, curve: points,
    label: `reliability on the ${over}: calibration error ${figure(error, 3)}`,
    dots: reliability.map((tenth, i) =>
      [...points[i], 3 + 5 * Math.sqrt(tenth.examples / all)]),
    chance: [[0, 0], [most, most]] });
}

/* Of two classes: what each threshold comes to. */
function curvesPanel(over, set) {
  const { points, reliability } = set.curves;
  const pairs = (a, b) => points[a].map((value, i) => [value, points[b][i]]);
  const threshold = isNumber(set.threshold) ? set.threshold : reliability ? .5 : 0;
  const last = points.threshold.findLastIndex(value => value >= threshold);
  const positives = points.precision.at(-1);
  const marked = list => last < 0 ? null : list[last];
  const roc = pairs('false_positive_rate', 'recall'), gains = pairs('share', 'recall');
  const precision = pairs('recall', 'precision');
  const charts = [
    shareChart({ name: 'ROC', x: 'false positive rate', y: 'recall', curve: [[0, 0], ...roc],
      chance: [[0, 0], [1, 1]], mark: marked(roc),
      label: `ROC curve on the ${over}: area ${figure(set.auc, 4)}` }),
    shareChart({ name: 'Precision', x: 'recall', y: 'precision',
      curve: [[0, precision[0][1]], ...precision], mark: marked(precision),
      chance: [[0, positives], [1, positives]],
      label: `precision by recall on the ${over}: average ${figure(set.average_precision, 4)}` }),
    shareChart({ name: 'Gains', x: 'share of all', y: 'share of positives',
      curve: [[0, 0], ...gains], chance: [[0, 0], [1, 1]], mark: marked(gains),
      label: `gains on the ${over}` }),
    ...reliability ? [reliabilityChart(over, set.curves, set.calibration_error)] : []];
  return make('div', { className: 'panel curves' }, make('h3', {}, `Curves on the ${over}`),
    make('div', {}, ...charts),
    noteBelow(`a dot marks the threshold, ${figure(threshold, 4)}; dashed is what chance would ` +
              'come to, and where probabilities are frequencies'));
}

const hasCurves = set => set.curves && set.curves.points && set.curves.points.recall.length > 0;
