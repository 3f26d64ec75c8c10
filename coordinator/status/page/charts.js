/* The charts of convergence: of this run, with the curves of earlier runs beside its own. */

const OVERLAYS = [  // told apart by dashes as well as by colour
  { light: '#b25e00', dark: '#f0a85a', dash: [7, 4] },
  { light: '#0b7a63', dark: '#5fd0b2', dash: [2, 3] },
  { light: '#8a3fa0', dark: '#d79ae8', dash: [10, 3, 2, 3] },
  { light: '#9a1f4a', dark: '#ff8fae', dash: [4, 2] },
  { light: '#5a6470', dark: '#aab6c2', dash: [1, 4] },
  { light: '#6b6a00', dark: '#d6d15a', dash: [14, 4] },
];

const charts = ['loss', 'gradient', 'length', 'trials', 'holdout', 'accuracy'].map(name => {
  const canvas = $(name + '-chart');
  return {
    name, canvas, compared: !['length', 'trials'].includes(name),
    output: canvas.parentNode.querySelector('output'),
    column: { loss: 'loss', gradient: 'gradient_max', length: 'step_length', trials: 'trials',
              holdout: 'holdout_loss', accuracy: 'holdout_accuracy' }[name],
    digits: { holdout: 8, accuracy: 5 }[name] || 3,
  };
});

/* What is drawn: earlier runs first, this one on top. */
function curves() {
  const all = [...known.overlays].map(([run, overlay]) => ({
    run, steps: overlay.steps, dash: overlay.look.dash, width: 1.4,
    colour: dark.matches ? overlay.look.dark : overlay.look.light,
  }));
  return [...all, { run: null, steps: known.steps, dash: [], width: 2, colour: colour('accent') }];
}

/* The lowest loss of all curves. */
function lowestLoss() {
  return Math.min(...curves().map(curve => curve.steps.range('loss')[0]));
}

/* F itself is drawn beside the loss on the holdout, which is a mean of the same losses. */
const drawsHoldout = chart => chart.name === 'loss' && known.lossAs === 'itself' &&
  known.steps.range('holdout_loss')[1] > -Infinity;

/* The scale of a chart, what is subtracted from its values, and its tolerance if it has one. */
function chartScale(chart, all) {
  const bounds = (shift, positive) => all
    .map(curve => curve.steps.range(chart.column, shift, positive))
    .reduce(([a, b], [c, d]) => [Math.min(a, c), Math.max(b, d)]);
  const above = chart.name === 'loss' && known.lossAs === 'above';
  const shift = above ? lowestLoss() : 0;
  const logarithmic = above || chart.name === 'gradient' || chart.name === 'length' ||
    (chart.name === 'loss' && bounds(0, false)[0] > 0);
  let [least, most] = bounds(shift, logarithmic);
  if (drawsHoldout(chart)) {
    const [low, high] = known.steps.range('holdout_loss', 0, logarithmic);
    least = Math.min(least, low), most = Math.max(most, high);
  }
  if (above) least = Math.max(least, 1e-17);
  const limit = chart.name === 'gradient' && known.status ? known.status.gradient_tolerance : 0;
  if (limit > 0) least = Math.min(least, limit * .6), most = Math.max(most, limit * 100);
  if (!(least <= most)) return { shift, logarithmic, scale: null };
  if (chart.name === 'length' && least === most) least *= .5, most *= 2;  // else of equal numbers
  const scale = logarithmic ? logScale(least, most)
    : linearScale(least, most, chart.name === 'trials');
  if (chart.name === 'trials') scale.ticks = scale.ticks
    .filter(([value]) => Number.isInteger(value)).map(([value]) => [value, integer(value)]);
  return { shift, logarithmic, scale, limit };
}

/* Where the charts end. */
const reach = () => Math.max(known.axis === 'seconds' ? 1e-3 : 10,
                             ...curves().map(curve => curve.steps.reach(known.axis)));

/* Marks on the axis: the steps in which a safeguard fired. */
function drawNotes(g, xOf, bottom) {
  g.fillStyle = colour('warn');
  let drawn = -9;
  for (const step of [...known.steps.notes.keys()].sort((a, b) => a - b)) {
    const x = xOf(known.steps.along(known.axis, step));
    if (!(x - drawn >= 3)) continue;
    drawn = x;
    g.beginPath();
    g.moveTo(x - 4, bottom), g.lineTo(x + 4, bottom), g.lineTo(x, bottom - 7);
    g.fill();
  }
}

function drawLimit(g, limit, yOf, width) {
  const y = Math.round(yOf(limit));
  g.fillStyle = colour('muted');
  g.fillRect(LEFT, y, width - LEFT - RIGHT, 1);
  g.textAlign = 'left';
  g.textBaseline = 'bottom';
  g.fillText('tolerance ' + figure(limit, 3), LEFT + 4, y - 2);
}

/* Whether the curve of this run passes through a line of text there. */
function isCrossed(left, top, wide, width, shift, yOf) {
  for (let k = 0; k <= 16; k++) {
    const place = (left + wide * k / 16 - LEFT) / (width - LEFT - RIGHT) * reach();
    const y = yOf(known.steps.at(known.steps.nearest(known.axis, place), 'loss') - shift);
    if (y > top - 6 && y < top + 18) return true;
  }
  return false;
}

/* What the loss chart shows, in a corner that a falling curve leaves free: on the right above, or
 * on the left below where a curve that falls late is in the way. */
function lossLabelPlace(wide, width, height, shift, yOf) {
  const above = [width - RIGHT - 2 - wide, TOP + 4], below = [LEFT + 4, height - BOTTOM - 15];
  return isCrossed(...above, wide, width, shift, yOf) ? below : above;
}

function drawLossLabel(g, shift, logarithmic, width, height, yOf) {
  const text = known.lossAs === 'above' ? `F − ${figure(shift, 8)}, the lowest so far`
    : logarithmic ? 'F' : 'F on a linear scale: not all values are positive';
  g.textAlign = 'left';
  g.textBaseline = 'top';
  g.fillStyle = colour('muted');
  g.fillText(text, ...lossLabelPlace(g.measureText(text).width, width, height, shift, yOf));
}

function drawHover(g, chart, shift, scale, xOf, yOf, height) {
  const step = known.stepHovered;
  if (step === null || step > known.steps.last) return;
  const x = Math.round(xOf(known.steps.along(known.axis, step))) + .5;
  drawPointed(g, x, yOf(known.steps.at(step, chart.column) - shift), height);
}

function drawChart(chart) {
  if (!chart.canvas.clientWidth) return;
  const { g, width, height } = fit(chart.canvas);
  const all = chart.compared ? curves() : curves().slice(-1), { axis } = known, last = reach();
  const { shift, logarithmic, scale, limit } = chartScale(chart, all);
  const xOf = place => LEFT + place / last * (width - LEFT - RIGHT);
  const yOf = value => height - BOTTOM - scale.place(value) * (height - TOP - BOTTOM);
  drawAxes(g, scale, xOf, yOf, width, height, axis, last);
  if (scale) {
    if (limit > 0) drawLimit(g, limit, yOf, width);
    if (chart.name === 'loss') drawLossLabel(g, shift, logarithmic, width, height, yOf);
    for (const curve of all) {
      const points = pixels(curve.steps, chart.column, shift, logarithmic, axis, xOf);
      if (chart.name === 'trials')
        drawBars(g, points, yOf, (width - LEFT - RIGHT) / Math.max(10, known.steps.last));
      else drawCurve(g, points, curve, yOf);
    }
    if (drawsHoldout(chart))
      drawCurve(g, pixels(known.steps, 'holdout_loss', 0, logarithmic, axis, xOf), holdoutLook(),
                yOf);
    if (chart.name === 'holdout' || chart.name === 'accuracy' || drawsHoldout(chart))
      drawBest(g, known.steps, drawsHoldout(chart) ? 'holdout_loss' : chart.column, axis, xOf, yOf);
    if (chart.name === 'length') drawNotes(g, xOf, height - BOTTOM);
    drawHover(g, chart, shift, scale, xOf, yOf, height);
  }
  describeChart(chart);
}

/* Title, figure and description of a chart. */
function describeChart(chart) {
  const step = known.stepHovered === null ? known.steps.last : known.stepHovered;
  const value = known.steps.last < 0 ? NaN : known.steps.at(step, chart.column);
  if (chart.output) setText(chart.output, figure(value, chart.digits));
  if (chart.name === 'loss')
    setText($('loss-title'), known.lossAs === 'above' ? 'Loss above the lowest' : 'Loss F');
  const title = chart.canvas.parentNode.querySelector('h3').textContent;
  setLabel(chart.canvas, `${title}: ${figure(value, 6)} at step ${integer(step)}`);
}

function drawRead() {
  const step = known.stepHovered, steps = known.steps;
  if (step === null || step > steps.last) {
    setText($('read'), known.curvesFollow
      ? 'of a run that goes on the curves are here when it has ended; its own page, that of http ' +
        'in the job file, has them now'
      : 'point at a chart, or use ← and →, to read a step');
    return;
  }
  const history = steps.at(step, 'history'), passes = steps.at(step, 'evaluations');
  const note = steps.notes.get(step);
  setText($('read'), `step ${integer(step)}: F ${figure(steps.at(step, 'loss'), 8)} after ` +
    `${duration(steps.at(step, 'seconds'))}` +
    (isNumber(passes) ? `, ${integer(passes)} pass${passes === 1 ? '' : 'es'}` : '') +
    (isNumber(history) ? `, ${counted(history, 'pair')}` : '') + (note ? `, ${note}` : ''));
}

function drawCurveLegend() {
  const all = curves().reverse();
  const entries = all.length < 2 && !known.steps.notes.size ? [] : all.map(curve =>
    make('span', {}, line(curve), curve.run === null ? 'this run' : 'run ' + curve.run));
  if (known.steps.notes.size)
    entries.push(make('span', {}, make('b', { className: 'warn' }, '▲'), 'a safeguard fired'));
  const best = bestStep(known.steps);
  if (best !== null)
    entries.push(make('span', {}, make('b', { className: 'good' }, '○'),
                      `best on the holdout: step ${integer(best)}`));
  if (drawsHoldout({ name: 'loss' }))
    entries.push(make('span', {}, line(holdoutLook()), 'loss on the holdout'));
  $('shown').replaceChildren(...entries);
}

function drawCharts() {
  for (const chart of charts) drawChart(chart);
  drawRead();
}
