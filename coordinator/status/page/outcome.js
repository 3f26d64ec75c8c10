/* What became of the model: all panels about it. */

/* The figures of the model on the holdout and the test data, once there are any. */
function drawOutcome() {
  const s = known.status, box = $('outcome-parts');
  const sets = ['holdout', 'test'].filter(over => s[over] && typeof s[over] === 'object')
    .map(over => [over, s[over]]);
  const sweep = s.sweep && s.sweep.path && s.sweep.path.length ? s.sweep : null;
  $('outcome').hidden = !sets.length && !s.model_sha256 && !sweep;
  setText($('model'), s.model_sha256 ? `${s.model || ''}, SHA-256 ${s.model_sha256}` : '');
  const outputs = known.weightsOf === s.model_sha256 ? known.weights : [];
  const summary = known.weightsOf === s.model_sha256 ? known.summary : null;
  const importance = known.weightsOf === s.model_sha256 ? known.importance : null;
  const key = JSON.stringify([sets, outputs, summary, importance, sweep, s.chosen]);
  if (box.dataset.key === key) return;
  box.dataset.key = key;
  const matrices = sets.filter(([, set]) => hasConfusion(set))
    .map(([over, set]) => confusionTable(over, set));
  const hasFit = Boolean(summary && summary.fit);
  const isNarrow = matrix => !matrix.classList.contains('wide');
  box.replaceChildren(...sweep ? [sweepTable(sweep, s.chosen)] : [],
    ...sets.length || hasFit ? [make('div', { className: 'stack' },
      ...sets.length ? [figureTable(sets)] : [], ...matrices.filter(isNarrow),
      ...hasFit ? [fitTable(summary)] : [])] : [],
    ...importance ? [importancePanel(importance)] : [],
    ...outputs.length ? [weightsPanel(outputs)] : [],
    ...matrices.filter(matrix => !isNarrow(matrix)),
    ...summary ? summaryTables(summary) : [],
    ...sets.filter(([, set]) => hasCurves(set)).map(([over, set]) => curvesPanel(over, set)));
}
