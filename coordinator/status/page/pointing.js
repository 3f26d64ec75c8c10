/* Reading a step of the charts with the pointer or the keys, and what they show. */

function hover(step) {
  known.stepHovered = step;
  drawCharts();
}

for (const { canvas } of charts) {
  const point = event => {
    const box = canvas.getBoundingClientRect();
    const place = (event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT) * reach();
    hover(known.steps.last < 0 ? null : known.steps.nearest(known.axis, place));
  };
  canvas.addEventListener('pointermove', point);
  canvas.addEventListener('pointerdown', point);
  canvas.addEventListener('pointerleave', () => hover(null));
  canvas.addEventListener('blur', () => hover(null));
  canvas.addEventListener('keydown', event => {
    const last = known.steps.last, stride = Math.max(1, Math.round(last / 200));
    const from = known.stepHovered === null ? last : known.stepHovered;
    const to = { ArrowLeft: from - (event.shiftKey ? stride * 10 : stride),
                 ArrowRight: from + (event.shiftKey ? stride * 10 : stride),
                 Home: 0, End: last, Escape: null }[event.key];
    if (to === undefined || last < 0) return;
    event.preventDefault();
    hover(to === null ? null : Math.max(0, Math.min(last, to)));
  });
}

onChoice('loss', value => {
  known.lossAs = value;
  drawCurveLegend();
  drawCharts();
});
onChoice('axis', value => {
  known.axis = value;
  drawCharts();
});
