/* What every part of the page uses: elements, texts of numbers, colours, canvases. */

const $ = id => document.getElementById(id);
const dark = matchMedia('(prefers-color-scheme: dark)');
const isNumber = value => typeof value === 'number' && Number.isFinite(value);

function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties))
    if (name in element) element[name] = value; else element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/* What is too wide scrolls, by the keys as well; `label` is for who cannot see it. */
const scrolled = (label, ...children) =>
  make('div', { 'className': 'scroll', 'tabIndex': 0, 'role': 'region', 'aria-label': label },
       ...children);

const headRow = heads =>
  make('thead', {}, make('tr', {}, ...heads.map(head => make('th', {}, head))));

/* What is said below a table or a chart of a panel. */
const noteBelow = text => make('p', { className: 'muted small below' }, text);

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/* The text for who cannot see a drawing. */
function setLabel(element, text) {
  if (element.getAttribute('aria-label') !== text) element.setAttribute('aria-label', text);
}

/* A colour of the style sheet, by its name there. */
const colours = new Map();
function colour(name) {
  if (!colours.has(name))
    colours.set(name, getComputedStyle(document.documentElement).getPropertyValue('--' + name));
  return colours.get(name).trim();
}

const integer = value => isNumber(value) ? value.toLocaleString('en-US') : '–';
const counted = (value, noun) => integer(value) + ' ' + noun + (value === 1 ? '' : 's');

/* A number with at most `digits` significant digits, without zeros at its end. */
function figure(value, digits = 6) {
  if (!isNumber(value)) return '–';
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e7))
    return value.toExponential(digits - 1).replace(/\.?0+e/, 'e').replace('e+', 'e');
  return String(+value.toPrecision(digits));
}

const rateText = value => !(value > 0) ? '–'
  : value < 1000 ? figure(value, 3) : integer(+value.toPrecision(3));

function duration(seconds) {
  if (!isNumber(seconds)) return '–';
  if (seconds < 10) return seconds.toFixed(1) + ' s';
  const s = Math.round(seconds), two = n => String(n).padStart(2, '0');
  if (s < 60) return s + ' s';
  if (s < 3600) return Math.floor(s / 60) + ':' + two(s % 60) + ' min';
  if (s < 172800) return Math.floor(s / 3600) + ':' + two(Math.floor(s / 60) % 60) + ' h';
  return (s / 86400).toFixed(1) + ' days';
}

const clock = ms => new Date(ms).toLocaleTimeString('en-GB');
const two = n => String(n).padStart(2, '0');
function moment(ms) {
  if (!isNumber(ms)) return '–';
  const d = new Date(ms);
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ` +
    `${two(d.getHours())}:${two(d.getMinutes())}`;
}

/* The drawing context of a canvas, in CSS pixels and cleared. */
function fit(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  const across = Math.round(width * ratio), down = Math.round(height * ratio);
  if (canvas.width !== across || canvas.height !== down)
    Object.assign(canvas, { width: across, height: down });
  const g = canvas.getContext('2d');
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, width, height);
  return { g, width, height };
}

/* Calls `chosen` with the value of a radio button that is pressed. */
function onChoice(name, chosen) {
  for (const radio of document.querySelectorAll(`input[name=${name}]`))
    radio.addEventListener('change', () => chosen(radio.value));
}
