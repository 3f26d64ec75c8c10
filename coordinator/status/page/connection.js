/* Asks the coordinator, again and again, and says how the connection is. */

const STEPS_A_TICK = 10, HIDDEN_MS = 15000, GIVE_UP_MS = 15000, RUNS_MS = 60000;

/* Another run, or another coordinator: what was fetched before is forgotten. */
function begin(status, before) {
  known.next = known.eventsNext = known.eventsSeen = known.runsAt = 0;
  $('events').replaceChildren();
  if (before && before.run === status.run && before.job === status.job) return;
  known.steps = new Steps();
  known.epochs = new Steps();
  known.nextEpoch = 0;
  known.overlays.clear();
  known.stepHovered = known.epochHovered = known.replicaChosen = null;
}

/* Fetches the new steps. Steps after that of the status were rolled back, or are newer than the
 * status: then they are fetched the next time. True if there are more. */
async function fetchSteps(status) {
  const started = isNumber(status.loss) || isNumber(status.gradient_max);
  const limit = started && isNumber(status.step) ? status.step : Infinity;
  if (limit < known.steps.last) {
    known.steps.cut(limit);
    known.next = limit;
  }
  for (let page = 0; page < STEPS_A_TICK; page++) {
    const since = known.next, answer = await get(`api/v1/steps?since=${since}`);
    if (answer.run !== status.run) return false;
    const steps = answer.steps.filter(step => step.step <= limit);
    for (const step of steps) known.steps.add(step);
    if (steps.length) known.next = steps[steps.length - 1].step + 1;
    known.curvesFollow = known.steps.last < 0 && limit > 0 && limit < Infinity;
    if (!answer.more || steps.length < answer.steps.length || known.next <= since) return false;
    draw();
  }
  return true;
}

/* With the number of minibatches up to its end. */
function addEpoch(epoch) {
  const before = epoch.epoch > 1 ? known.epochs.at(epoch.epoch - 1, 'minibatches') : 0;
  known.epochs.add({ ...epoch, step: epoch.epoch, minibatches: before + epoch.minibatches });
}

/* The same for epochs. */
async function fetchEpochs(status) {
  const downpour = downpourOf(status);
  if (!downpour) return;
  if (downpour.epoch < known.epochs.last) {
    known.epochs.cut(downpour.epoch);
    known.nextEpoch = downpour.epoch + 1;
  }
  for (let page = 0; page < STEPS_A_TICK && known.epochs.last < downpour.epoch; page++) {
    const answer = await get(`api/v1/epochs?since=${known.nextEpoch}`);
    if (answer.run !== status.run) return;
    for (const epoch of answer.epochs)
      if (epoch.epoch <= downpour.epoch) addEpoch(epoch);
    known.nextEpoch = Math.max(0, known.epochs.last + 1);
    if (!answer.more) return;
  }
}

async function fetchEvents(status) {
  for (let page = 0; page < STEPS_A_TICK; page++) {
    const answer = await get(`api/v1/events?since=${known.eventsNext}`);
    if (answer.run !== status.run) return;
    addEvents(answer.events);
    if (answer.events.some(event => event.kind === 'recovery'))
      known.next = Math.max(0, known.next - 2000);  // these steps may have been made again
    const more = answer.more && answer.next > known.eventsNext;
    known.eventsNext = answer.next;
    if (!more) return;
  }
}

async function fetchRuns() {
  if (Date.now() - known.runsAt < RUNS_MS) return;
  known.runsAt = Date.now();
  ({ runs: known.runs, sweeps: known.sweeps = [], invocations: known.invocations = [] } =
    await get('api/v1/runs'));
}

/* Of the model of a run that has ended. */
async function fetchWeights(status) {
  if (!isRecord(status) || !status.model_sha256 || known.weightsOf === status.model_sha256) return;
  known.weightsOf = status.model_sha256;
  known.weights = [];
  known.summary = known.importance = null;
  const { outputs } = await getIfAny('api/v1/weights');
  const summary = await getIfAny('api/v1/summary');
  const importance = await getIfAny('api/v1/importance');
  known.weights = outputs || [];
  known.summary = summary.objective ? summary : null;
  known.importance = importance.columns ? importance : null;
}

/* Takes what the holdout says of the last step from the status if the list of steps does not have
 * it. */
function noteHoldout(status) {
  const { steps } = known, at = Math.floor(status.step / steps.stride);
  if (isRecord(status) || steps.last !== status.step) return;
  for (const column of ['holdout_loss', 'holdout_accuracy'])
    if (isNumber(status[column]) && Number.isNaN(steps.low[column][at]))
      steps.low[column][at] = steps.high[column][at] = status[column];
}

/* Asks for everything that is new. True if there is more to fetch without a pause. */
async function follow() {
  const status = await get('api/v1/status'), before = known.status;
  if (!before || before.run !== status.run || before.pid !== status.pid) begin(status, before);
  known.status = status;
  answered();
  await fetchEvents(status);
  await fetchEpochs(status);
  await fetchRuns();
  await fetchWeights(status);
  const more = await fetchSteps(status);
  noteHoldout(status);
  return more;
}

function answered() {
  link.failures = 0;
  link.answeredAt = Date.now();
  if (isRecord(known.status))
    connection('recorded', record ? 'what was recorded; this page does not change'
      : `what was recorded, read at ${clock(link.answeredAt)}; no run is alive`);
  else
    connection('live', `live, answered at ${clock(link.answeredAt)}`);
}

function missed() {
  link.failures++;
  const { status } = known;
  if (!status)
    connection('lost', 'no answer from the coordinator: lost or ended');
  else if (hasEnded(status))
    connection('ended', `the run has ended${status.reason ? ' (' + endText(status) + ')' : ''}; ` +
      `last seen at ${clock(link.answeredAt)}`);
  else if (status.state === 'failed')
    connection('lost', `the run has failed; last seen at ${clock(link.answeredAt)}`);
  else
    connection('lost',
               `no answer from the coordinator since ${clock(link.answeredAt)}: lost or ended`);
}

function connection(name, text) {
  $('connection').className = name;
  setText($('link'), text);
  const answers = name === 'live' || name === 'recorded';
  $('again').hidden = answers;
  document.body.classList.toggle('stale', !answers);
  const s = known.status;
  const sign = { live: '', recorded: '■ ', ended: '■ ', lost: '✕ ', waiting: '○ ' }[name];
  document.title = sign +
    (s ? `${s.job}: step ${integer(s.step)}, loss ${figure(s.loss, 6)}` : 'dml');
}

function pause(more) {
  if (document.visibilityState === 'hidden' || isRecord(known.status)) return HIDDEN_MS;
  if (link.failures) return Math.min(GIVE_UP_MS, 1000 * 2 ** (link.failures - 1));
  return more ? 0 : 1000;
}

async function tick() {
  clearTimeout(link.timer);
  if (link.busy) {
    link.again = true;
    return;
  }
  link.busy = true;
  let more = false;
  try {
    more = await follow();
  } catch (error) {
    missed();
    if (!(error instanceof NoAnswer)) console.error(error);
  }
  draw();
  link.busy = false;
  if (record && !more) return;
  link.timer = setTimeout(tick, link.again ? 0 : pause(more));
  link.again = false;
}
