/* What charts are drawn of: axes, curves, bars, rings, and lines of legends. */

const LEFT = 62, RIGHT = 14, TOP = 8, BOTTOM = 22;   // around a chart, in CSS pixels

/* A column as {x, least, most, mean, last}, at most one entry for each pixel. `shift` is subtracted
 * from the values. With `positive` the mean is the geometric mean. `xOf` answers where the place of
 * a step on the axis is drawn. */
function pixels(steps, column, shift, positive, axis, xOf) {
  const into = positive ? Math.log : value => value, back = positive ? Math.exp : value => value;
  const low = steps.low[column], high = steps.high[column], found = [];
  for (let i = 0; i < low.length; i++) {
    let least = low[i] - shift;
    const most = high[i] - shift;
    if (!(most > 0) && (positive || Number.isNaN(most))) continue;
    if (positive && !(least > 0)) least = most;
    const x = xOf(steps.along(axis, i * steps.stride));
    if (Number.isNaN(x)) continue;
    const before = found[found.length - 1], middle = (into(least) + into(most)) / 2;
    if (before && x - before.x < .7) {
      before.least = Math.min(before.least, least);
      before.most = Math.max(before.most, most);
      before.sum += middle, before.count++, before.bucket = i;
    } else {
      found.push({ x, least, most, sum: middle, count: 1, bucket: i });
    }
  }
  for (const pixel of found) {
    pixel.mean = pixel.least < pixel.most ? back(pixel.sum / pixel.count) : pixel.most;
    pixel.last = pixel.bucket === steps.size - 1;
  }
  return found;
}

/* A line through the means. Where a pixel holds several steps, a band from the least to the
 * greatest value is drawn too. */
function drawCurve(g, points, curve, yOf) {
  g.strokeStyle = g.fillStyle = curve.colour;
  if (points.some(point => point.least < point.most)) {
    g.globalAlpha = .22;
    g.beginPath();
    for (const { x, most } of points) g.lineTo(x, yOf(most));
    for (const { x, least } of [...points].reverse()) g.lineTo(x, yOf(least));
    g.fill();
    g.globalAlpha = 1;
  }
  g.lineWidth = curve.width;
  g.lineJoin = 'round';
  g.setLineDash(curve.dash);
  g.beginPath();
  for (const { x, mean } of points) g.lineTo(x, yOf(mean));
  g.stroke();
  g.setLineDash([]);
  const end = points[points.length - 1];
  if (!end || curve.run !== null || (points.length > 1 && !end.last)) return;
  g.beginPath();
  g.arc(end.x, yOf(end.mean), 3.2, 0, 7);
  g.fill();
}

/* A bar for each step: a quiet colour for the first trial, which every step needs, and a strong
 * one for further trials. Where a pixel holds several steps, the bar is strong up to their mean and
 * pale up to their maximum. */
function drawBars(g, points, yOf, step) {
  const half = Math.min(5, Math.max(.75, step / 2)), gap = step > 3 ? 1 : 0;
  const bar = (x, from, to) => {
    const left = Math.round(x - half), right = Math.max(left + 1, Math.round(x + half) - gap);
    if (to > from) g.fillRect(left, yOf(to), right - left, yOf(from) - yOf(to));
  };
  for (const { x, mean, most } of points) {
    g.fillStyle = colour('quiet');
    bar(x, 0, Math.min(1, most));
    g.fillStyle = colour('accent');
    g.globalAlpha = .35;
    bar(x, Math.max(1, mean), most);
    g.globalAlpha = 1;
    bar(x, 1, mean);
  }
}

const SPANS = [[86400, 'd', 2], [3600, 'h', 2], [60, 'min', 5], [1, 's', 0]];

/* Where numbers stand below a chart, and which: whole ones, or times. */
function axisTicks(axis, last, count) {
  if (axis !== 'seconds')
    return roundTicks(0, last, count).ticks.filter(Number.isInteger)
      .map(value => [value, integer(value)]);
  const [size, name] = SPANS.find(([seconds, , least]) => last >= least * seconds);
  const { ticks, unit } = roundTicks(0, last / size, count);
  return ticks.map(value => [value * size, value ? `${tickText(value, unit)} ${name}` : '0']);
}

function drawAxes(g, scale, xOf, yOf, width, height, axis, last) {
  g.font = '11px system-ui, "DejaVu Sans", sans-serif';
  g.textBaseline = 'middle';
  g.textAlign = 'right';
  let above = Infinity;
  for (const [value, text] of scale ? scale.ticks : []) {
    const y = Math.round(yOf(value)) + .5;
    if (y < TOP - 1 || y > height - BOTTOM + 1) continue;
    g.fillStyle = colour('grid');
    g.fillRect(LEFT, y - .5, width - LEFT - RIGHT, 1);
    if (above - y < 13) continue;
    above = y;
    g.fillStyle = colour('muted');
    g.fillText(text, LEFT - 8, y);
  }
  g.fillStyle = colour('muted');
  const most = Math.min(8, (width - LEFT) / (axis === 'seconds' ? 80 : 70));
  for (const [tick, text] of axisTicks(axis, last, Math.max(axis === 'seconds' ? 3 : 5, most))) {
    const x = xOf(tick);
    g.textAlign = x + g.measureText(text).width / 2 > width ? 'right' : 'center';
    g.fillText(text, g.textAlign === 'right' ? width : x, height - 9);
  }
  g.fillStyle = colour('line');
  g.fillRect(LEFT, height - BOTTOM, width - LEFT - RIGHT, 1);
}

/* How a curve of the holdout is drawn beside one of the training. */
const holdoutLook = () => ({ run: -1, dash: [5, 3], width: 1.6, colour: colour('warn') });

/* The step with the least loss on the holdout, of which the model is with early stopping; null if
 * there is none, or if steps share buckets. */
function bestStep(steps) {
  const list = steps.low.holdout_loss;
  if (steps.stride > 1) return null;
  let best = null;
  list.forEach((value, step) => {
    if (!Number.isNaN(value) && (best === null || value < list[best])) best = step;
  });
  return best;
}

/* A line and a ring where somebody points. */
function drawPointed(g, x, y, height) {
  g.fillStyle = colour('muted');
  g.fillRect(x - .5, TOP, 1, height - TOP - BOTTOM);
  if (!Number.isFinite(x + y) || y > height - BOTTOM + 1) return;
  g.fillStyle = colour('panel');
  g.strokeStyle = colour('accent');
  g.lineWidth = 2;
  g.beginPath();
  g.arc(x, y, 4, 0, 7);
  g.fill(), g.stroke();
}

/* A ring around the best step. */
function drawBest(g, steps, column, axis, xOf, yOf) {
  const step = bestStep(steps);
  if (step === null) return;
  g.strokeStyle = colour('good');
  g.lineWidth = 2;
  g.beginPath();
  g.arc(xOf(steps.along(axis, step)), yOf(steps.at(step, column)), 5.5, 0, 7);
  g.stroke();
}

/* An element of a drawing. */
function drawn(tag, attributes, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/* How a curve is drawn, for a legend. */
const line = look => drawn('svg', { width: 30, height: 8 },
  drawn('path', { 'd': 'M0 4h30', 'stroke': look.colour, 'stroke-width': look.width,
                  'stroke-dasharray': look.dash.join(' ') }));
