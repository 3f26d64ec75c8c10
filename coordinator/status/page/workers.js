/* Processes and hosts. */

// ---- processes ----

const GOOD_STATES = ['running', 'ended'];
const mark = state => GOOD_STATES.includes(state) ? '●' : state === 'lost' ? '✕' : '◐';
const tone = state => GOOD_STATES.includes(state) ? 'good' : state === 'lost' ? 'bad' : 'warn';
const severity = state => ['bad', 'warn', 'good'].indexOf(tone(state));
const byPlace = (a, b) => severity(a.state) - severity(b.state) ||
  (a.role < b.role ? -1 : a.role > b.role ? 1 : a.index - b.index);

function choose(process) {
  if (process.role !== 'replica') return;
  known.replicaChosen = known.replicaChosen === process.index ? null : process.index;
  draw();
}

function nameCell(td, process) {
  if (!td.firstChild) {
    const button = make('button', { type: 'button', title: 'show its chunks' },
                        make('i', { className: 'swatch' }), `${process.role} ${process.index}`);
    if (process.role === 'replica') button.onclick = () => choose(process);
    else button.disabled = true, button.removeAttribute('title');
    td.append(button);
  }
  const replica = process.role === 'replica';
  const background = replica ? replicaColour(process.index) : 'transparent';
  const swatch = td.firstChild.firstChild;
  if (swatch.dataset.colour !== background)
    swatch.style.background = swatch.dataset.colour = background;
  td.parentNode.className = replica && process.index === known.replicaChosen ? 'chosen' : '';
}

function stateCell(td, process) {
  setText(td, `${mark(process.state)} ${process.state}`);
  td.className = 'left ' + tone(process.state);
}

let fastest = 0;
function rateCell(td, process) {
  if (!td.firstChild) td.append(make('span'));
  const rate = process.rate;
  setText(td.firstChild, rateText(rate));
  const part = Math.round(fastest > 0 && rate > 0 ? 100 * rate / fastest : 0) + '%';
  if (td.firstChild.style.getPropertyValue('--part') !== part)
    td.firstChild.style.setProperty('--part', part);
}

const processTable = new Table($('processes'), [
  { name: 'process', left: true, cell: nameCell,
    sort: p => p.role + String(p.index).padStart(9, '0') },
  { name: 'state', left: true, cell: stateCell, sort: p => severity(p.state) + p.state },
  { name: 'chunks/s', className: 'rate', cell: rateCell, sort: p => p.rate || 0 },
  { name: 'restarts', text: p => integer(p.restarts), sort: p => p.restarts || 0 },
  { name: 'portions', text: p => integer(p.portions), sort: p => p.portions || 0 },
  { name: 'chunks', text: p => integer(p.chunks), sort: p => p.chunks || 0 },
  { name: 'threads', text: p => integer(p.threads), sort: p => p.threads || 0 },
  { name: 'device', text: p => p.device || '–', sort: p => String(p.device) },
  { name: 'host', text: p => String(p.host), sort: p => String(p.host) },
  { name: 'pid', text: p => isNumber(p.pid) ? String(p.pid) : '–', sort: p => p.pid || 0 },
], process => `${process.role} ${process.index}`, true);

/* With many replicas: a square for each. A stronger colour is a faster replica. */
function drawStrip(processes) {
  const strip = $('strip'), many = processes.filter(process => process.role === 'replica');
  strip.hidden = $('strip-note').hidden = many.length < 13;
  if (strip.hidden) {
    strip.replaceChildren();
    return;
  }
  while (strip.children.length > many.length) strip.lastChild.remove();
  many.sort((a, b) => a.index - b.index).forEach((process, i) => {
    const square = strip.children[i] ||
      strip.appendChild(make('button', { type: 'button', tabIndex: -1 }));
    const kind = tone(process.state), part = fastest > 0 ? (process.rate || 0) / fastest : 0;
    const text = `replica ${process.index}: ${process.state}, ` +
      `${rateText(process.rate)} chunks a second`;
    if (square.title !== text) square.title = text;
    if (square.className !== kind) square.className = kind;
    setText(square, kind === 'bad' ? '✕' : '');
    square.style.background = kind === 'bad' ? ''
      : `color-mix(in srgb, ${colour('accent')} ${Math.round(100 * part)}%, ${colour('empty')})`;
    square.setAttribute('aria-pressed', String(known.replicaChosen === process.index));
    square.onclick = () => choose(process);
  });
}

function drawProcesses() {
  const processes = [...known.status.processes || []].sort(byPlace);
  fastest = Math.max(0, ...processes.map(process => process.rate || 0));
  const of = role => processes.filter(process => process.role === role).length;
  const wrong = processes.filter(process => tone(process.state) !== 'good').length;
  const rate = processes.reduce((sum, process) => sum + (process.rate || 0), 0);
  setText($('processes-text'), [
    counted(of('replica'), 'replica'), counted(of('shard'), 'shard'),
    rate > 0 ? `${rateText(rate)} chunks a second` : '', wrong ? `${wrong} not running` : '',
  ].filter(Boolean).join(', '));
  drawStrip(processes);
  processTable.show(processes);
}

// ---- hosts ----

const HOST_STATES = {
  'up': ['●', 'good'], 'starting': ['◐', 'warn'], 'failing': ['◐', 'warn'],
  'set aside': ['✕', 'bad'],
};
const hostMark = host => HOST_STATES[host.state] || ['◐', 'warn'];
const hostSeverity = host => ['bad', 'warn', 'good'].indexOf(hostMark(host)[1]);

function hostStateCell(td, host) {
  setText(td, `${hostMark(host)[0]} ${host.state}`);
  td.className = 'left ' + hostMark(host)[1];
}

const hostTable = new Table($('hosts'), [
  { name: 'host', left: true, text: h => String(h.name), sort: h => String(h.name) },
  { name: 'state', left: true, cell: hostStateCell, sort: h => hostSeverity(h) + h.state },
  { name: 'workers', text: h => integer(h.workers), sort: h => h.workers || 0 },
  { name: 'failures', text: h => integer(h.failures), sort: h => h.failures || 0 },
  { name: 'threads', text: h => isNumber(h.threads) ? integer(h.threads) : 'all',
    sort: h => h.threads || 0 },
  { name: 'last failure', left: true, text: h => h.why || '–', sort: h => h.why || '' },
], host => host.name, true);

function drawHosts() {
  const hosts = [...known.status.hosts || []].sort((a, b) => hostSeverity(a) - hostSeverity(b));
  const wrong = hosts.filter(host => hostMark(host)[1] !== 'good').length;
  $('hosts-section').hidden = !hosts.length;
  setText($('hosts-text'), [counted(hosts.length, 'host'), wrong ? `${wrong} not up` : '']
    .filter(Boolean).join(', '));
  hostTable.show(hosts);
}
