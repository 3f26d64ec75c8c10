/* Earlier runs, and their curves beside those of this one. */

function tickCell(td, run) {
  if (!td.firstChild) {
    const box = make('input', { type: 'checkbox', id: 'run-' + run.run });
    box.addEventListener('change', () => box.checked ? overlay(run.run) : cover(run.run));
    td.append(make('label', {}, box, ' run ' + run.run));
  }
  const box = td.querySelector('input');
  box.checked = known.overlays.has(run.run);
  box.disabled = !box.checked && known.overlays.size >= OVERLAYS.length;
}

/* What is not as it was in the run before. */
function changesText(changed) {
  const words = Object.entries(changed || {}).map(([key, { from, to }]) =>
    key === 'data' && typeof from === 'string' ? 'the data' :
      key + ' ' + settingText(from) + ' → ' + settingText(to));
  return words.join(', ') || '–';
}

/* What became of the model of a run, and why. */
const FATES = {
  live: ['★ live', 'good'], pending: ['◐ goes live', 'warn'], refused: ['✕ refused', 'warn'],
  published: ['was live', 'muted'], kept: ['kept', 'muted'],
};
function fateCell(td, run) {
  const [text, look] = FATES[run.publication] || (run.why ? ['✕ failed', 'bad'] : ['–', 'muted']);
  setText(td, run.why ? `${text}: ${run.why}` : text);
  td.className = 'left ' + look + (run.why ? ' why' : '');
}

const tagText = run => [run.tag, run.note].filter(Boolean).join(': ');

/* A run of a sweep that has ended, in which another one was chosen: it stands for nothing. */
function isFolded(run) {
  const sweep = known.sweeps.find(({ number }) => run.sweep && number === run.sweep.number);
  return Boolean(sweep && sweep.chosen && !run.sweep.chosen && !run.publication);
}

const runTable = new Table($('runs'), [
  { name: 'run', left: true, cell: tickCell },
  { name: 'model is', left: true, cell: fateCell },
  { name: 'tag', left: true, text: run => tagText(run) || '–' },
  { name: 'began', left: true, text: run => moment(run.started_ms) },
  { name: 'took', text: run => duration(run.seconds) },
  { name: 'ended by', left: true, text: run => String(run.reason || run.state || '–') },
  { name: 'converged', left: true,
    text: run => run.converged === true ? 'yes' : run.converged === false ? 'no' : '–' },
  { name: 'steps', text: run => integer(run.steps) },
  { name: 'evaluations', text: run => integer(run.evaluations) },
  { name: 'loss F', text: run => figure(run.loss, 8) },
  { name: 'max |∂F|', text: run => figure(run.gradient_max, 3) },
  { name: 'nonzero', text: run => integer(run.nonzero) },
  { name: 'holdout loss', text: run => figure((run.holdout || {}).loss, 6) },
  { name: 'accuracy', text: run => figure((run.holdout || {}).accuracy, 5) },
  { name: 'changed', left: true, text: run => changesText(run.changed) },
  { name: 'model', text: run => run.model_sha256 ? String(run.model_sha256).slice(0, 8) : '–' },
], run => run.run, false);

function drawRuns() {
  const others = known.runs.filter(run => run.run !== (known.status || {}).run);
  const earlier = others.filter(run => $('folds').checked || !isFolded(run)).slice(-500).reverse();
  $('folds-choice').hidden = !others.some(isFolded);
  $('no-runs').hidden = earlier.length > 0;
  $('runs-text').hidden = !earlier.length;
  $('runs-scroll').hidden = !earlier.length;
  runTable.show(earlier);
}
$('folds').addEventListener('change', drawRuns);

/* Also draws the curves of an earlier run. */
async function overlay(run) {
  const used = new Set([...known.overlays.values()].map(other => other.look));
  const entry = { steps: new Steps(), look: OVERLAYS.find(look => !used.has(look)) };
  known.overlays.set(run, entry);
  drawRuns();
  try {
    for (let since = 0, more = true; more && known.overlays.get(run) === entry;) {
      const answer = await get(`api/v1/steps?since=${since}&run=${run}`);
      for (const step of answer.steps) entry.steps.add(step);
      more = answer.more && answer.next > since;
      since = answer.next;
      draw();
    }
  } catch (error) {
    cover(run);
    if (!(error instanceof NoAnswer)) console.error(error);
  }
}

function cover(run) {
  known.overlays.delete(run);
  draw();
}
