/* Draws all of it. */

function drawAll() {
  const has = column => known.steps.range(column)[1] > -Infinity;
  const holds = has('holdout_loss'), accurate = has('holdout_accuracy');
  $('holdout-figure').hidden = $('holdout-figures').hidden = !holds;
  $('accuracy-figure').hidden = !accurate;
  $('charts').classList.toggle('three', holds);
  $('charts').classList.toggle('four', accurate);
  $('figures').classList.toggle('seven', holds);
  $('convergence').hidden =
    downpourOf(known.status) && known.steps.last < 1 && !known.overlays.size;
  if (known.status) {
    drawHead();
    drawOutcome();
    drawExplain();
    drawEpochs();
    $('evaluation').hidden = isRecord(known.status);
    drawProcesses();
    drawHosts();
    drawLayers();
    drawEvents();
    drawSettings();
  }
  drawRuns();
  drawCurveLegend();
  drawCharts();
  drawReplicaLegend();
  drawChunks();
}

frame.draw = drawAll;
dark.addEventListener('change', () => { colours.clear(); draw(); });
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible') tick();
});
$('again').addEventListener('click', tick);
new ResizeObserver(draw).observe($('charts'));
tick();
