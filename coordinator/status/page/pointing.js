/* Reading a step or an epoch of the charts with the pointer or the keys, and what they show. */

/* `what` answers the steps of a chart, the axis that it runs along, where that ends, and the step
 * that is shown; `show` takes another one, or null. */
function letRead(canvas, what, show) {
  const point = event => {
    const { steps, axis, end } = what(), box = canvas.getBoundingClientRect();
    const place = (event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT) * end;
    show(steps.last < 0 ? null : steps.nearest(axis, place));
  };
  canvas.addEventListener('pointermove', point);
  canvas.addEventListener('pointerdown', point);
  canvas.addEventListener('pointerleave', () => show(null));
  canvas.addEventListener('blur', () => show(null));
  canvas.addEventListener('keydown', event => {
    const { steps: { last }, shown } = what(), stride = Math.max(1, Math.round(last / 200));
    const from = shown === null ? last : shown, by = event.shiftKey ? stride * 10 : stride;
    const to = { ArrowLeft: from - by, ArrowRight: from + by, Home: 0, End: last,
                 Escape: null }[event.key];
    if (to === undefined || last < 0) return;
    event.preventDefault();
    show(to === null ? null : Math.max(0, Math.min(last, to)));
  });
}

function hover(step) {
  known.stepHovered = step;
  drawCharts();
}

for (const { canvas } of charts)
  letRead(canvas, () => ({ steps: known.steps, axis: known.axis, end: reach(),
                           shown: known.stepHovered }), hover);

function hoverEpoch(epoch) {
  known.epochHovered = epoch;
  drawEpochs();
}

/* Numbers of epochs begin with 1. */
for (const { canvas } of epochCharts)
  letRead(canvas, () => ({ steps: known.epochs, axis: known.epochAxis, end: epochReach(),
                           shown: known.epochHovered }),
          epoch => hoverEpoch(epoch === null ? null : Math.max(1, epoch)));

onChoice('loss', value => {
  known.lossAs = value;
  drawCurveLegend();
  drawCharts();
});
onChoice('axis', value => {
  known.axis = value;
  drawCharts();
});
onChoice('epoch-axis', value => {
  known.epochAxis = value;
  drawEpochs();
});

/* A report compares runs, whatever machine they were made on. */
if (record) document.querySelector('input[name=axis][value=evaluations]').click();
