/* Epochs of minibatches. */

const epochCharts = [['loss', 'holdout_loss'], ['holdout_accuracy']].map(columns => {
  const canvas = $(`epoch-${columns[0]}-chart`);
  return { columns, canvas, figure: canvas.parentNode };
});
const epochsHave = column => known.epochs.range(column)[1] > -Infinity;

const downpourOf = status =>
  (status && typeof status.downpour === 'object' && status.downpour) || null;

function epochsText(downpour) {
  const { epoch, epochs, minibatch, minibatches, done, running } = downpour;
  const speed = downpour.minibatches_per_second;
  const early = downpour.stopped_early ? `, stopped early of ${integer(epochs)}` : '';
  if (!running) return `${counted(epoch, 'epoch')}${early}, ${integer(done)} minibatches`;
  return `epoch ${integer(epoch + 1)} of ${integer(epochs)}: ${integer(minibatch)} of ` +
    `${integer(minibatches)} minibatches` +
    (isNumber(speed) ? `, ${rateText(speed)} a second` : '') +
    (isNumber(downpour.rate) ? `, rate ${figure(downpour.rate, 3)}` : '');
}

const epochLook = () => ({ run: null, dash: [], width: 2, colour: colour('accent') });

/* Where the charts end. */
const epochReach = () =>
  Math.max(known.epochAxis === 'seconds' ? 1e-3 : 3, known.epochs.reach(known.epochAxis));

/* The epoch that is read: the one that is pointed at, or the last. */
const epochShown = () => known.epochHovered === null || known.epochHovered > known.epochs.last
  ? known.epochs.last : known.epochHovered;

/* The first column as the curve of this run, the second as that of the holdout. */
function drawEpochChart({ columns, canvas }) {
  if (!canvas.clientWidth) return;
  const { epochs, epochAxis: axis } = known, { g, width, height } = fit(canvas);
  const last = epochReach();
  const shown = columns.filter(epochsHave), bounds = shown.map(column => epochs.range(column));
  const least = Math.min(...bounds.map(([low]) => low));
  const most = Math.max(...bounds.map(([, high]) => high));
  const scale = shown.length ? linearScale(least, most, false) : null;
  const xOf = place => LEFT + place / last * (width - LEFT - RIGHT);
  const yOf = value => height - BOTTOM - scale.place(value) * (height - TOP - BOTTOM);
  drawAxes(g, scale, xOf, yOf, width, height, axis, last);
  for (const column of shown)
    drawCurve(g, pixels(epochs, column, 0, false, axis, xOf),
              column === 'holdout_loss' ? holdoutLook() : epochLook(), yOf);
  const onHoldout = shown.find(column => column !== 'loss');
  if (onHoldout) drawBest(g, epochs, onHoldout, axis, xOf, yOf);
  if (known.epochHovered !== null && scale)
    drawPointed(g, Math.round(xOf(epochs.along(axis, epochShown()))) + .5,
                yOf(epochs.at(epochShown(), shown[0])), height);
  describeEpochChart(canvas, shown);
}

/* Figure and description of a chart. */
function describeEpochChart(canvas, shown) {
  const { epochs } = known, epoch = epochShown();
  const value = column => epochs.last < 0 ? '–' : figure(epochs.at(epoch, column), 5);
  const text = shown.map(column => (column === 'holdout_loss' ? 'holdout ' : '') + value(column))
    .join(', ');
  const at = known.epochHovered === null ? '' : `epoch ${integer(epoch)}: `;
  setText(canvas.parentNode.querySelector('output'), at + text);
  const title = canvas.parentNode.querySelector('h3').textContent;
  setLabel(canvas, `${title}: ${text} after epoch ${integer(Math.max(0, epoch))}`);
}

function drawEpochLegend() {
  const best = bestStep(known.epochs);
  $('epochs-shown').replaceChildren(...epochsHave('holdout_loss') ? [
    make('span', {}, line(epochLook()), 'mean over the minibatches'),
    make('span', {}, line(holdoutLook()), 'on the holdout, after the epoch')] : [],
    ...best === null ? [] : [make('span', {}, make('b', { className: 'good' }, '○'),
                                  `best on the holdout: epoch ${integer(best)}`)]);
}

function drawEpochs() {
  const downpour = downpourOf(known.status);
  $('epochs').hidden = !downpour;
  if (!downpour) return;
  setText($('epochs-text'), epochsText(downpour));
  epochCharts[1].figure.hidden = !epochsHave('holdout_accuracy');
  $('epoch-charts').classList.toggle('alone', epochCharts[1].figure.hidden);
  drawEpochLegend();
  for (const chart of epochCharts) drawEpochChart(chart);
}
