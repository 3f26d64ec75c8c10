/* The head: what runs, how it stands, how it ended. */

const ENDINGS = ['making the last step durable', 'reading the model', 'ending', 'ended'];

/* No coordinator works on the run any more: the answers are what was recorded. */
const isRecord = status => ['ended', 'interrupted', 'unknown'].includes((status || {}).state);

/* The training has ended, or is about to. After it the model is scored and written. */
const hasEnded = ({ state, reason }) => Boolean(reason) || ENDINGS.includes(state);

function stateClass(status) {
  return status.state === 'failed' ? 'failed' : hasEnded(status) ? 'ending'
    : status.state === 'running' ? 'running' : 'starting';
}

const shortfallOf = ({ shortfall }) => Array.isArray(shortfall) ? shortfall : [];

/* Why the training ended, and whether it has converged. */
function endText(status) {
  const { reason, converged } = status;
  if (!reason) return '';
  return reason + (converged === true ? ', converged' : shortfallOf(status).length
    ? ', not converged' : '');
}

/* While the coordinator does not answer, its last known state. */
function stateText(status) {
  const { state } = status, end = endText(status);
  const name = link.failures === 0 ? state : hasEnded(status) ? 'ended' : `was ${state}`;
  return name + (end ? `: ${end}` : '');
}

/* Why the run has not converged, and what to do about it. */
function drawShortfall(status) {
  const texts = shortfallOf(status).map(String), box = $('shortfall');
  box.hidden = !texts.length;
  if (box.dataset.key === texts.join('\n')) return;
  box.dataset.key = texts.join('\n');
  box.querySelector('ul').replaceChildren(...texts.map(text => make('li', {}, text)));
}

/* The hidden layers of a network. */
function networkText(network) {
  if (!network) return '';
  const layers = [network.layers].flat().join('-');
  return `hidden layers ${layers}, ${network.activation}` +
    (network.precision === 'float' ? ', float' : '');
}

/* What is trained. */
const whatText = s => [
  s.objective, networkText(s.network), isNumber(s.examples) ? counted(s.examples, 'example') : '',
  isNumber(s.features) ? counted(s.features, 'feature') : '',
  isNumber(s.parameters) ? counted(s.parameters, 'parameter') : '',
  isNumber(s.nonzero) ? `${integer(s.nonzero)} not zero` : '',
].filter(Boolean).join(', ');

function stepNote(s) {
  const downpour = downpourOf(s), { max_steps: most } = s.settings || {};
  if (downpour && downpour.running) return `epoch ${integer(downpour.epoch + 1)} of minibatches`;
  if (downpour && !s.step) return `after ${counted(downpour.epoch, 'epoch')} of minibatches`;
  return isNumber(most) ? `of at most ${integer(most)}` : '';
}

/* A figure of the head and what stands below it. */
function setFigure(name, text, note) {
  setText($(name), text);
  setText($(name + '-note'), note);
}

function drawFigures(s) {
  const { counted: done, chunks } = s.evaluation || {};
  setFigure('step', integer(s.step), stepNote(s));
  setFigure('loss', figure(s.loss, 8), fallText());
  setFigure('gradient', figure(s.gradient_max, 3),
            s.gradient_tolerance > 0 ? `tolerance ${figure(s.gradient_tolerance, 3)}` : '');
  setFigure('holdout', figure(s.holdout_loss, 8), isNumber(s.holdout_accuracy)
    ? `accuracy ${figure(s.holdout_accuracy, 5)}` : 'rows left out of training');
  setFigure('evaluations', integer(s.evaluations),
            isNumber(done) && chunks > 0 ? `this one ${Math.floor(100 * done / chunks)} %` : '');
  setFigure('time', duration(s.seconds), s.step > 0 && s.seconds > 0
    ? `${rateText(s.step / s.seconds)} steps a second` : '');
  setFigure('left', duration(s.seconds_left), isNumber(s.seconds_left) ? 'estimated'
    : isRecord(s) ? 'ended' : 'not known');
}

/* The last command, if it came to no model: why there is none of the last night. */
function drawInvocation() {
  const last = known.invocations[known.invocations.length - 1], box = $('invocation');
  const told = !last || ['refused', 'running'].includes(last.outcome) ||
    (last.status === 0 && last.outcome !== 'nothing new') ||
    (last.outcome === 'stopped' && last.run);
  box.hidden = told;
  if (told) return;
  const wrong = last.status > 0 || last.outcome === 'lost';
  box.className = wrong ? 'bad' : 'muted';
  setText(box, `${wrong ? '✕ ' : ''}last command, ${moment(last.began_ms)}, ${last.command}: ` +
          last.outcome + (last.status > 0 ? ` (${last.status})` : '') +
          (last.times > 1 ? `, ${last.times} times since ${moment(last.first_ms)}` : '') +
          (last.reason ? `: ${last.reason}` : ''));
}

function drawHead() {
  const s = known.status;
  setText($('job'), String(s.job));
  setText($('state'), stateText(s));
  $('state').className = stateClass(s);
  drawShortfall(s);
  setText($('run'), `${s.run ? `run ${s.run}` : 'no run yet'}, begun ${moment(s.started_ms)}` +
          (FATES[s.publication] ? `, ${FATES[s.publication][0]}` : s.why ? ', ✕ failed' : '') +
          (s.why ? `: ${s.why}` : '') +
          (tagText(s) ? `, ${tagText(s)}` : ''));
  setText($('what'), whatText(s));
  drawInvocation();
  drawFigures(s);
  setText($('footer'), `dml ${s.version || ''}` + (s.pid ? `, coordinator ${s.pid}` : '') +
          (s.http ? ` at ${s.http}` : ''));
}

/* The relative fall of the loss over the last ten steps, which the loss tolerance is about. */
function fallText() {
  const { steps } = known;
  if (steps.last < 10) return '';
  const then = steps.at(steps.last - 10, 'loss'), now = steps.at(steps.last, 'loss');
  const fall = (then - now) / Math.abs(then);
  if (!Number.isFinite(fall)) return '';
  const size = Math.abs(fall);
  const text = size > 1e-3 ? figure(100 * size, 2) + ' %' : figure(size, 2) + '·F';
  return `10 steps: ${fall < 0 ? '+' : '−'}${text}`;
}
