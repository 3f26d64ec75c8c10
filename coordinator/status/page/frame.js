/* When to draw: main.js says what all is. */

const frame = { asked: false, draw() {} };

/* Draws everything once with the next frame, however often it is called before. */
function draw() {
  if (frame.asked) return;
  frame.asked = true;
  requestAnimationFrame(() => {
    frame.asked = false;
    frame.draw();
  });
}
