/* The running evaluation: a cell for each chunk, or for some of them. */

const WAITING = 0, RUNNING = 1, BACKUP = 2, COUNTED = 3;
const CELL_MAX = 26, CELL_MIN = 9, ROWS_MAX = 20;

/* Eight colours that also differ in lightness. More replicas get colours between those of a ramp.
 */
const FEW = {
  light: ['#1667a8', '#c76a00', '#12806a', '#a3408f', '#4fa3dc', '#7a2412', '#8a8400', '#3d3f87'],
  dark: ['#5aa9e6', '#f0a445', '#3fc1a1', '#e38fd0', '#a5d8ff', '#d9694f', '#d6cf4f', '#8f92e6'],
};
const RAMP = {
  light: [[49, 37, 112], [32, 102, 160], [24, 138, 128], [130, 160, 40], [200, 130, 20]],
  dark: [[116, 112, 226], [70, 150, 226], [60, 190, 170], [170, 200, 90], [246, 200, 100]],
};

const replicas = () => (known.status && known.status.processes || [])
  .filter(process => process.role === 'replica').length;

function replicaColour(index, count = replicas()) {
  const scheme = dark.matches ? 'dark' : 'light';
  if (!(index >= 0)) return colour('muted');
  if (count <= FEW[scheme].length) return FEW[scheme][index % FEW[scheme].length];
  const ramp = RAMP[scheme], at = Math.min(1, index / (count - 1)) * (ramp.length - 1);
  const from = Math.min(Math.floor(at), ramp.length - 2);
  const mix = ramp[from].map((low, i) => Math.round(low + (ramp[from + 1][i] - low) * (at - from)));
  return `rgb(${mix.join(',')})`;
}

/* How the chunks are laid out: the largest cells with which all fit. If none fits, a cell stands
 * for several chunks. */
function layOut(chunks, width) {
  for (let size = CELL_MAX; size >= CELL_MIN; size--) {
    const columns = Math.max(1, Math.floor(width / size));
    if (Math.ceil(chunks / columns) * size <= CELL_MIN * ROWS_MAX)
      return { size, columns, each: 1, cells: chunks };
  }
  const columns = Math.max(1, Math.floor(width / CELL_MIN));
  const each = Math.ceil(chunks / (columns * ROWS_MAX));
  return { size: CELL_MIN, columns, each, cells: Math.ceil(chunks / each) };
}

/* The cells, made from the map: how many chunks of each state, and which replica has most of them.
 */
function cellsOf(map, layout, chunks) {
  const cells = Array.from({ length: layout.cells },
                           () => ({ states: [0, 0, 0, 0], replica: -1, most: 0 }));
  let chunk = 0;
  for (const [count, state, replica] of map || [])
    for (let left = Math.min(count, chunks - chunk); left > 0;) {
      const cell = cells[Math.floor(chunk / layout.each)];
      const take = Math.min(left, layout.each - chunk % layout.each);
      cell.states[state] += take;
      if (state !== WAITING && take > cell.most) cell.most = take, cell.replica = replica;
      chunk += take, left -= take;
    }
  return cells;
}

const grid = { layout: null, cells: [], chunks: 0, replicas: 0, pointed: null };

function drawCell(g, cell, x, y, side, each) {
  g.fillStyle = colour('empty');
  g.fillRect(x, y, side, side);
  const [, running, backup, done] = cell.states;
  const chosen = known.replicaChosen;
  g.globalAlpha = chosen === null || chosen === cell.replica ? 1 : .18;
  g.fillStyle = g.strokeStyle = replicaColour(cell.replica, grid.replicas);
  if (each > 1) {  // counted chunks at the bottom, running ones thinner above them, backups pale
    const full = side * done / each, part = side * (running + backup) / each;
    g.fillRect(x, y + side - full, side, full);
    g.fillRect(x + side * .3, y + side - full - part, side * .4, part);
    g.globalAlpha /= 2;
    const copied = side * backup / each;
    g.fillRect(x, y + side - full - copied, side, copied);
  } else if (done) {
    g.fillRect(x, y, side, side);
  } else if (running || backup) {
    const inner = Math.max(3, Math.round(side * .42)), edge = (side - inner) / 2;
    g.fillRect(x + edge, y + edge, inner, inner);
    const thick = g.lineWidth = side > 14 ? 2 : 1;
    if (backup) g.strokeRect(x + thick / 2, y + thick / 2, side - thick, side - thick);
  }
  g.globalAlpha = 1;
}

function drawChunks() {
  const canvas = $('chunks'), evaluation = known.status && known.status.evaluation || {};
  const chunks = grid.chunks = isNumber(evaluation.chunks) ? evaluation.chunks : 0;
  const layout = grid.layout = layOut(Math.max(1, chunks), canvas.clientWidth || 300);
  const height = Math.ceil(layout.cells / layout.columns) * layout.size + 'px';
  if (canvas.style.height !== height) canvas.style.height = height;
  const { g } = fit(canvas);
  grid.replicas = replicas();
  grid.cells = chunks ? cellsOf(evaluation.map, layout, chunks) : [];
  const side = layout.size - (layout.size > 14 ? 2 : 1);
  grid.cells.forEach((cell, i) => {
    const x = i % layout.columns * layout.size, y = Math.floor(i / layout.columns) * layout.size;
    drawCell(g, cell, x, y, side, layout.each);
    if (i !== grid.pointed) return;
    g.strokeStyle = colour('text');
    g.lineWidth = 2;
    g.strokeRect(x + 1, y + 1, side - 2, side - 2);
  });
  describeChunks(evaluation, layout);
}

function describeChunks(evaluation, layout) {
  const sums = [0, 0, 0, 0];
  for (const cell of grid.cells) cell.states.forEach((count, state) => { sums[state] += count; });
  const done = isNumber(evaluation.counted) ? evaluation.counted : sums[COUNTED];
  const ago = evaluation.started_seconds_ago;
  const text = !grid.chunks ? 'none'
    : `number ${integer(evaluation.number)}: ${integer(done)} of ` +
      `${counted(grid.chunks, 'chunk')} counted (${Math.floor(100 * done / grid.chunks)} %)` +
      (isNumber(ago) ? `, begun ${duration(ago)} ago` : '');
  setText($('evaluation-text'), text);
  setLabel($('chunks'), text);
  const names = ['waiting', 'running', 'with a backup copy', 'counted'];
  ['waiting', 'running', 'backup', 'counted'].forEach((state, i) =>
    setText($('state-' + state), `${names[i]} ${evaluation.map ? integer(sums[i]) : ''}`));
  $('chunk-states').classList.toggle('gauge', layout.each > 1);
  setText($('pointed'), pointedText() || (layout.each > 1
    ? `each square is ${layout.each} chunks and fills as they are counted`
    : grid.chunks ? 'each square is a chunk' : ''));
}

/* The content of the cell under the pointer. */
function pointedText() {
  const cell = grid.cells[grid.pointed];
  if (!cell) return '';
  const first = grid.pointed * grid.layout.each;
  const last = Math.min(first + grid.layout.each, grid.chunks) - 1;
  const states = ['waiting', 'running', 'running with a backup copy', 'counted'];
  const has = states.map((state, i) => [cell.states[i], state]).filter(([count]) => count);
  const who = cell.replica >= 0 ? `, replica ${cell.replica}` : '';
  return first === last ? `chunk ${integer(first)}: ${has.map(h => h[1]).join()}${who}`
    : `chunks ${integer(first)} to ${integer(last)}: ` +
      has.map(([count, state]) => `${count} ${state}`).join(', ') + who;
}

function drawReplicaLegend() {
  const count = replicas(), box = $('chunk-replicas');
  const key = `${count} ${dark.matches} ${known.replicaChosen}`;
  if (box.dataset.key === key) return;
  box.dataset.key = key;
  const swatch = index => {
    const square = make('i', { className: 'swatch' });
    square.style.background = replicaColour(index);
    return make('span', {}, square, 'replica ' + index);
  };
  const ramp = make('i', { className: 'ramp' });
  ramp.style.background = `linear-gradient(90deg, ${
    [0, .25, .5, .75, 1].map(part => replicaColour(part * (count - 1))).join(', ')})`;
  const parts = count > 8 ? [make('span', {}, 'replica 0', ramp, String(count - 1))]
    : Array.from({ length: count }, (_, index) => swatch(index));
  if (known.replicaChosen !== null)
    parts.push(make('span', { className: 'muted' },
                    `the chunks of replica ${known.replicaChosen} are highlighted`));
  box.replaceChildren(...parts);
}

for (const state of ['waiting', 'running', 'backup', 'counted'])
  $('chunk-states').append(make('span', {}, make('i', { className: 'swatch ' + state }),
                                make('span', { id: 'state-' + state })));
$('chunk-states').append(make('span', { id: 'pointed', className: 'muted' }));

$('chunks').addEventListener('pointermove', event => {
  const box = $('chunks').getBoundingClientRect(), layout = grid.layout;
  if (!layout) return;
  const column = Math.floor((event.clientX - box.left) / layout.size);
  const row = Math.floor((event.clientY - box.top) / layout.size);
  grid.pointed = column < layout.columns ? row * layout.columns + column : null;
  drawChunks();
});
for (const name of ['pointerleave', 'blur'])
  $('chunks').addEventListener(name, () => { grid.pointed = null; drawChunks(); });
$('chunks').addEventListener('keydown', event => {
  const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -(grid.layout || {}).columns,
               ArrowDown: (grid.layout || {}).columns }[event.key];
  if (by === undefined || !grid.cells.length) return;
  event.preventDefault();
  const to = grid.pointed === null ? 0 : grid.pointed + by;
  grid.pointed = Math.max(0, Math.min(grid.cells.length - 1, to));
  drawChunks();
});
