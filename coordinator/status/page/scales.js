/* Scales and their ticks. */

/* About `count` round numbers between the bounds. */
function roundTicks(least, most, count) {
  const raw = (most - least) / count, power = 10 ** Math.floor(Math.log10(raw));
  const unit = [1, 2, 5, 10].map(m => m * power).find(step => step >= raw * .8) || power * 10;
  const ticks = [];
  const first = Math.ceil(least / unit - 1e-9);
  for (let i = first; i * unit <= most + unit * 1e-9 && ticks.length < 50; i++)
    ticks.push(i * unit + 0);  // never -0
  return { ticks, unit };
}

function tickText(value, unit) {
  const decimals = Math.max(0, -Math.floor(Math.log10(unit) + 1e-9));
  if (value !== 0 && (decimals > 9 || Math.abs(value) >= 1e6)) return value.toExponential(2);
  return value.toFixed(decimals);
}

/* A linear scale for values between two bounds. `place` answers where a value lies: 0 is the
 * bottom, 1 the top. */
function linearScale(least, most, fromZero) {
  if (fromZero) least = 0;
  const room = (most - least) * .06 || Math.abs(most) * .01 || 1;
  const bottom = fromZero ? 0 : least - room, top = most + room;
  const { ticks, unit } = roundTicks(bottom, top, 4);
  return {
    place: value => (value - bottom) / (top - bottom),
    ticks: ticks.map(value => [value, tickText(value, unit)]),
  };
}

/* 1, 2 and 5 of each decade between the bounds. */
function oneTwoFive(least, most) {
  const ticks = [];
  for (let power = Math.floor(Math.log10(least)); power <= Math.log10(most); power++)
    for (const digit of [1, 2, 5]) {
      const value = Number(`${digit}e${power}`);
      if (value >= least && value <= most) ticks.push([value, figure(value, 1)]);
    }
  return ticks;
}

/* A logarithmic scale. If it spans more than two decades it ends at whole decades, so that it
 * rarely changes. */
function logScale(least, most) {
  least = Math.max(least, most * 1e-18);
  let bottom = Math.log10(least), top = Math.log10(most);
  const place = value => (Math.log10(value) - bottom) / (top - bottom);
  if (top - bottom < 2) {
    const room = Math.max((top - bottom) * .06, 1e-9), wide = top - bottom > .8;
    bottom -= room, top += room;
    if (wide) return { place, ticks: oneTwoFive(10 ** bottom, 10 ** top) };
    const { ticks, unit } = roundTicks(10 ** bottom, 10 ** top, 4);
    return { place, ticks: ticks.filter(t => t > 0).map(value => [value, tickText(value, unit)]) };
  }
  bottom = Math.floor(bottom + 1e-9), top = Math.ceil(top - 1e-9);
  const every = Math.ceil((top - bottom) / 6), ticks = [];
  for (let power = bottom; power <= top; power++)
    if (power % every === 0) ticks.push([10 ** power, '1e' + power]);
  return { place, ticks };
}
