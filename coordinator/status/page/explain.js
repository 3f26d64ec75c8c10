/* What each column of a row adds to its prediction: of a row that somebody pastes. */

const EXPLAIN_MS = 20000;

/* The models there are, as [run, text]; the one that is shown first comes first. */
function modelsToExplain() {
  const { status, runs } = known, own = status && status.model_sha256 ? status.run : null;
  const having = runs.filter(run => run.model_sha256).reverse();
  const live = run => run.publication === 'live' ? ', ★ live' : '';
  const rank = run => run.run === own ? 0 : live(run) ? 1 : 2;
  having.sort((a, b) => rank(a) - rank(b));
  return having.map(run => [run.run, `run ${run.run}${live(run)}${run.tag ? `, ${run.tag}` : ''}`]);
}

function drawExplain() {
  const models = modelsToExplain(), key = JSON.stringify(models), select = $('explain-model');
  $('explain').hidden = Boolean(record);
  $('explain-none').hidden = models.length > 0;
  $('explain-form').hidden = !models.length;
  if (select.dataset.key === key) return;
  select.dataset.key = key;
  const before = select.value;
  select.replaceChildren(...models.map(([run, text]) => make('option', { value: run }, text)));
  if (models.some(([run]) => String(run) === before)) select.value = before;
}

/* A bar from the middle for what a column adds to the margin, and the sums before and after. */
function explainTable({ base, contributions, rest, margin }) {
  const added = contributions.reduce((sum, each) => sum + each.contribution, base + rest);
  const most = Math.max(...contributions.map(each => Math.abs(each.contribution)), 0);
  const row = (name, size, part) => make('tr', {}, make('td', { title: name }, shortened(name)),
    make('td', {}, figure(size, 5)),
    make('td', { className: size < 0 ? 'weight less' : 'weight' },
         make('span', { style: `--part: ${Math.round(100 * part)}%` })));
  const offset = margin - added, hasOffset = Math.abs(offset) > 1e-9 * (1 + Math.abs(base));
  return make('table', { className: 'weights bars' }, make('tbody', {},
    row('at the training means', base, 0),
    ...contributions.map(({ column, contribution }) =>
      row(column, contribution, most > 0 ? Math.abs(contribution) / most : 0)),
    ...rest ? [row('all other columns', rest, 0)] : [],
    ...hasOffset ? [row('offset of the row', offset, 0)] : [],
    row('margin', margin, 0)));
}

const chanceText = ({ probability, of }) =>
  isNumber(probability) ? `probability${of ? ` of ${of}` : ''} ${figure(probability, 5)}` : '';

function predictionText({ run, label, value, outputs }) {
  const what = isNumber(value) ? figure(value, 7) : [label].flat().join(', ') || 'no class';
  return [`run ${run} predicts ${what}`, chanceText(outputs[0])].filter(Boolean).join(', ');
}

/* One margin at a time, of several classes. */
function explainPanel(answer) {
  const { outputs, more, network, notes } = answer;
  const box = scrolled('what each column adds');
  const show = output => box.replaceChildren(explainTable(output));
  const name = output => [output.class, chanceText(output)].filter(Boolean).join(', ');
  const select = make('select', { 'aria-label': 'the class whose margin is shown' },
    ...outputs.map((output, i) => make('option', { value: i }, name(output))));
  select.addEventListener('change', () => show(outputs[Number(select.value)]));
  show(outputs[0]);
  return make('div', { className: 'panel' },
    make('div', { className: 'bar' }, make('h3', {}, predictionText(answer)),
         ...outputs.length > 1 ? [select] : []),
    box,
    ...notes.map(noteBelow),
    noteBelow('what each column adds to the margin, compared with the means of the training rows' +
              (network ? ', by integrated gradients' : '') +
              (more ? `; ${counted(more, 'smaller margin')} left out` : '')));
}

async function askExplanation(run, row) {
  try {
    const answer = await fetch(`api/v1/explain?run=${run}`, {
      method: 'POST', body: row, headers: { 'Content-Type': 'application/octet-stream' },
      cache: 'no-store', signal: AbortSignal.timeout(EXPLAIN_MS) });
    return await answer.json();
  } catch (error) {
    return { error: 'no answer from the coordinator' };
  }
}

async function explainRow() {
  const button = $('explain-ask'), box = $('explain-answer');
  button.disabled = true;
  const answer = await askExplanation($('explain-model').value, $('explain-row').value);
  button.disabled = false;
  box.replaceChildren(answer.error
    ? make('p', { className: 'none bad' }, String(answer.error)) : explainPanel(answer));
}

$('explain-ask').addEventListener('click', explainRow);
$('explain-row').addEventListener('keydown', event => {
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && !$('explain-ask').disabled)
    explainRow();
});
