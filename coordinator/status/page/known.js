/* All that the page knows. What is fetched goes here, and what is drawn comes from here. */

const known = {
  status: null, steps: new Steps(), next: 0,
  curvesFollow: false,            // the run goes on, and who answers does not know its steps yet
  events: [], eventsNext: 0, eventsSeen: 0,
  runs: [], sweeps: [], invocations: [], runsAt: 0,
  overlays: new Map(), stepHovered: null, replicaChosen: null,
  lossAs: 'itself', axis: 'step', epochAxis: 'step',
  epochs: new Steps(), nextEpoch: 0,   // of minibatches: the number of an epoch is that of a step
  epochHovered: null,
  weights: [], weightsOf: null,   // the hash of their model
  weightsShown: { output: 0, by: 'deviation' },
  summary: null,                  // the table of that model, as `summary --json` has it
  importance: null,               // what its columns bring, as `export --importance --json` has it
};
