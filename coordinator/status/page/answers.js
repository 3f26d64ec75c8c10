/* Answers of whoever serves the page: a coordinator, `serve`, or the page itself: a report. */

const ANSWER_MS = 5000;
const link = { failures: 0, answeredAt: null, timer: 0, busy: false, again: false };

class NoAnswer extends Error {}

/* The answers by path, if this page is a file that needs no server. */
const record = JSON.parse($('record') ? $('record').textContent : 'null');

async function get(path) {
  if (record) {
    if (path in record) return record[path];
    throw new NoAnswer(path);
  }
  try {
    const answer = await fetch(path, { cache: 'no-store', signal: AbortSignal.timeout(ANSWER_MS) });
    if (answer.ok) return await answer.json();
  } catch (error) { /* refused, cut off, too late or incomplete: there is no answer */ }
  throw new NoAnswer(path);
}

/* An empty object where there is no answer: the model was removed, or is none that has this. */
async function getIfAny(path) {
  try {
    return await get(path);
  } catch (error) {
    if (error instanceof NoAnswer) return {};
    throw error;
  }
}
