/* Layers, events with safeguards, and settings. */

// ---- layers ----

const layerTable = new Table($('layers'), [
  { name: 'tensor', left: true, text: t => String(t.name) },
  { name: 'shape', text: t => `${integer(t.rows)} × ${integer(t.columns)}` },
  { name: '|x|', text: t => figure(t.norm, 4) },
  { name: '|∂F|', text: t => figure(t.gradient_norm, 3) },
  { name: '|∂F| / |x|',
    text: ({ norm, gradient_norm: gradient }) =>
      figure(norm > 0 && isNumber(gradient) ? gradient / norm : NaN, 3) },
], t => t.name, false);

function drawLayers() {
  const tensors = known.status.tensors || [];
  $('layers-section').hidden = !tensors.length;
  layerTable.show(tensors);
}

// ---- events and safeguards ----

const EVENTS_MAX = 500;
const EVENT_MARKS = {
  lost: ['✕', 'bad'], host: ['✕', 'warn'], recovery: ['↺', 'warn'], safeguard: ['▲', 'warn'],
  checkpoint: ['◇', 'warn'], preconditioner: ['◆', 'muted'],
};

function eventItem(event) {
  const [sign, kind] = EVENT_MARKS[event.kind] || ['·', 'muted'];
  const when = isNumber(event.wall_ms) ? clock(event.wall_ms) : '–';
  return make('li', {},
              make('span', { className: 'muted', title: moment(event.wall_ms) }, when),
              make('span', { className: kind }, `${sign} ${event.kind}`),
              make('span', {}, String(event.text)));
}

function addEvents(events) {
  const list = $('events');
  for (const event of events) list.prepend(eventItem(event));
  while (list.children.length > EVENTS_MAX) list.lastChild.remove();
  known.eventsSeen += events.length;
}

function refreshes(preconditioner) {
  if (preconditioner && preconditioner.kind === 'diagonal') return ['diagonal preconditioner'];
  if (!preconditioner || !preconditioner.refreshes) return [];
  const times = preconditioner.refreshes, columns = preconditioner.block_columns;
  return [`${integer(times)} refresh${times === 1 ? '' : 'es'} of the preconditioner, ` +
          (columns ? `a block of ${integer(columns)} columns, ` : '') +
          `${preconditioner.in_force ? 'in force' : 'not in force'}, ` +
          `${preconditioner.passes.toFixed(1)} passes`];
}

function drawEvents() {
  const safeguards = Object.entries(known.status.safeguards || {}).filter(([, count]) => count);
  const chips = [...refreshes(known.status.preconditioner),
                 ...safeguards.map(([text, count]) => `${text} × ${integer(count)}`)];
  if ($('safeguards').dataset.key !== chips.join()) {
    $('safeguards').dataset.key = chips.join();
    $('safeguards').replaceChildren(...chips.map(text => make('span', {}, text)));
  }
  $('safeguards').hidden = !chips.length;
  $('events').hidden = !known.eventsSeen;
  $('no-events').hidden = known.eventsSeen > 0 || chips.length > 0;
  setText($('events-text'), !known.eventsSeen ? ''
    : known.eventsSeen > EVENTS_MAX ? `the newest ${EVENTS_MAX} of ${integer(known.eventsSeen)}`
    : counted(known.eventsSeen, 'event'));
}

// ---- settings ----

function settingText(value) {
  if (value === null || (Array.isArray(value) && !value.length)) return '–';
  if (Array.isArray(value)) return value.map(settingText).join(', ');
  return typeof value === 'number' ? figure(value, 12)
    : typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/* First those that are not the default; the others are folded. */
function drawSettings() {
  const { settings = {}, not_default: chosen = [] } = known.status;
  const key = JSON.stringify([settings, chosen]);
  if ($('settings').dataset.key === key) return;
  $('settings').dataset.key = key;
  const entry = ([name, value]) =>
    make('div', {}, make('dt', {}, name), make('dd', {}, settingText(value)));
  const all = Object.entries(settings || {}), isChosen = ([name]) => chosen.includes(name);
  $('settings').replaceChildren(...all.filter(isChosen).map(entry));
  $('defaults').replaceChildren(...all.filter(one => !isChosen(one)).map(entry));
}
