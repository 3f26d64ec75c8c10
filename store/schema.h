/* The tables; doc/STORE.md says what each is for. A new database is made by SCHEMA and not by one
 * step a version: ALTER TABLE takes so long that it would be felt at the start of a run. */
#ifndef DML_STORE_SCHEMA_H
#define DML_STORE_SCHEMA_H

#define TABLE_ATTEMPTS                                                                             \
    "CREATE TABLE attempts ("                                                                      \
    "  run INTEGER NOT NULL REFERENCES runs,"                                                      \
    "  attempt INTEGER NOT NULL,"                                                                  \
    "  wall_ms INTEGER NOT NULL,"                                                                  \
    "  checksum INTEGER NOT NULL,"                                                                 \
    "  PRIMARY KEY (run, attempt)) WITHOUT ROWID;"

#define TABLE_JOURNAL                                                                              \
    "CREATE TABLE journal ("                                                                       \
    "  entry INTEGER PRIMARY KEY,"                                                                 \
    "  run INTEGER NOT NULL REFERENCES runs,"                                                      \
    "  data BLOB NOT NULL,"                                                                        \
    "  checksum INTEGER NOT NULL);"

#define TABLE_DURABLE_STEPS                                                                        \
    "CREATE TABLE durable_steps ("                                                                 \
    "  number INTEGER PRIMARY KEY,"                                                                \
    "  run INTEGER NOT NULL REFERENCES runs,"                                                      \
    "  step INTEGER NOT NULL,"                                                                     \
    "  attempt INTEGER NOT NULL,"                                                                  \
    "  wall_ms INTEGER NOT NULL,"                                                                  \
    "  digests BLOB NOT NULL,"                                                                     \
    "  state BLOB NOT NULL,"                                                                       \
    "  checksum INTEGER NOT NULL);"

#define TABLE_SOURCES                                                                              \
    "CREATE TABLE sources ("                                                                       \
    "  run INTEGER NOT NULL REFERENCES runs,"                                                      \
    "  position INTEGER NOT NULL,"                                                                 \
    "  path TEXT NOT NULL,"                                                                        \
    "  fingerprint TEXT NOT NULL,"                                                                 \
    "  bytes INTEGER NOT NULL,"                                                                    \
    "  rows INTEGER NOT NULL,"                                                                     \
    "  PRIMARY KEY (run, position)) WITHOUT ROWID;"

#define TABLE_PUBLICATIONS                                                                         \
    "CREATE TABLE publications ("                                                                  \
    "  publication INTEGER PRIMARY KEY,"                                                           \
    "  wall_ms INTEGER NOT NULL,"                                                                  \
    "  kind TEXT NOT NULL,"                                                                        \
    "  run INTEGER NOT NULL,"                                                                      \
    "  previous_run INTEGER NOT NULL,"                                                             \
    "  text TEXT NOT NULL,"                                                                        \
    "  settled_ms INTEGER NOT NULL DEFAULT 0);"

#define TABLE_SWEEPS                                                                               \
    "CREATE TABLE sweeps ("                                                                        \
    "  sweep INTEGER PRIMARY KEY,"                                                                 \
    "  identity TEXT NOT NULL,"                                                                    \
    "  settings TEXT NOT NULL,"                                                                    \
    "  data TEXT NOT NULL,"                                                                        \
    "  judged TEXT NOT NULL,"                                                                      \
    "  sources TEXT NOT NULL,"                                                                     \
    "  start_model TEXT NOT NULL,"                                                                 \
    "  started_ms INTEGER NOT NULL,"                                                               \
    "  ended_ms INTEGER NOT NULL DEFAULT 0,"                                                       \
    "  winner INTEGER NOT NULL DEFAULT 0,"                                                         \
    "  result TEXT,"                                                                               \
    "  checksum INTEGER NOT NULL,"                                                                 \
    "  decided INTEGER NOT NULL DEFAULT 0);"

#define TABLE_HOSTS                                                                                \
    "CREATE TABLE hosts ("                                                                         \
    "  run INTEGER NOT NULL REFERENCES runs,"                                                      \
    "  position INTEGER NOT NULL,"                                                                 \
    "  host TEXT NOT NULL,"                                                                        \
    "  threads INTEGER NOT NULL,"                                                                  \
    "  workers INTEGER NOT NULL,"                                                                  \
    "  state TEXT NOT NULL,"                                                                       \
    "  why TEXT NOT NULL,"                                                                         \
    "  failures INTEGER NOT NULL,"                                                                 \
    "  changed_ms INTEGER NOT NULL,"                                                               \
    "  PRIMARY KEY (run, host)) WITHOUT ROWID;"

#define TABLE_DOWNPOUR_EPOCHS                                                                      \
    "CREATE TABLE downpour_epochs ("                                                               \
    "  run INTEGER NOT NULL REFERENCES runs,"                                                      \
    "  epoch INTEGER NOT NULL,"                                                                    \
    "  minibatches INTEGER NOT NULL,"                                                              \
    "  rows INTEGER NOT NULL,"                                                                     \
    "  loss REAL,"                                                                                 \
    "  holdout_loss REAL,"                                                                         \
    "  holdout_accuracy REAL,"                                                                     \
    "  seconds REAL NOT NULL,"                                                                     \
    "  wall_ms INTEGER NOT NULL,"                                                                  \
    "  PRIMARY KEY (run, epoch)) WITHOUT ROWID;"

#define TABLE_INVOCATIONS                                                                          \
    "CREATE TABLE invocations ("                                                                   \
    "  invocation INTEGER PRIMARY KEY,"                                                            \
    "  command TEXT NOT NULL,"                                                                     \
    "  first_ms INTEGER NOT NULL,"                                                                 \
    "  began_ms INTEGER NOT NULL,"                                                                 \
    "  ended_ms INTEGER NOT NULL DEFAULT 0,"                                                       \
    "  times INTEGER NOT NULL DEFAULT 1,"                                                          \
    "  outcome TEXT NOT NULL DEFAULT '',"                                                          \
    "  status INTEGER NOT NULL DEFAULT -1,"                                                        \
    "  reason TEXT NOT NULL DEFAULT '',"                                                           \
    "  run INTEGER NOT NULL DEFAULT 0);"

/* Rows of `runs` are as long as their results, so whoever wants few of them asks an index. The
 * journal has none: it is written all the time, and is of the runs that are not over. */
#define INDEXES                                                                                    \
    "CREATE INDEX runs_by_identity ON runs (identity, sweep, start_model);"                        \
    "CREATE INDEX runs_by_data ON runs (identity, data);"                                          \
    "CREATE INDEX runs_by_reason ON runs (reason);"                                                \
    "CREATE INDEX runs_by_sweep ON runs (sweep, member) WHERE sweep > 0;"                          \
    "CREATE INDEX runs_by_tag ON runs (tag) WHERE tag > '';"                                       \
    "CREATE INDEX sweeps_by_identity ON sweeps (identity);"                                        \
    "CREATE INDEX durable_steps_by_run ON durable_steps (run);"                                    \
    "CREATE INDEX events_by_run ON events (run);"                                                  \
    "CREATE INDEX models_by_run ON models (run);"                                                  \
    "CREATE INDEX models_kept ON models (run) WHERE removed_ms = 0;"                               \
    "CREATE INDEX models_by_hash ON models (sha256);"

#define SCHEMA                                                                                     \
    "CREATE TABLE epochs ("                                                                        \
    "  epoch INTEGER PRIMARY KEY,"                                                                 \
    "  wall_ms INTEGER NOT NULL,"                                                                  \
    "  pid INTEGER NOT NULL);"                                                                     \
    "CREATE TABLE runs ("                                                                          \
    "  run INTEGER PRIMARY KEY,"                                                                   \
    "  uuid TEXT NOT NULL UNIQUE,"                                                                 \
    "  job TEXT NOT NULL,"                                                                         \
    "  identity TEXT NOT NULL,"                                                                    \
    "  settings TEXT NOT NULL,"                                                                    \
    "  data TEXT NOT NULL,"                                                                        \
    "  build TEXT NOT NULL,"                                                                       \
    "  started_ms INTEGER NOT NULL,"                                                               \
    "  ended_ms INTEGER,"                                                                          \
    "  reason TEXT,"                                                                               \
    "  result TEXT,"                                                                               \
    "  steps INTEGER,"                                                                             \
    "  evaluations INTEGER,"                                                                       \
    "  loss REAL,"                                                                                 \
    "  gradient_max REAL,"                                                                         \
    "  seconds REAL NOT NULL DEFAULT 0,"                                                           \
    "  restarts INTEGER NOT NULL DEFAULT 0,"                                                       \
    "  restarts_coordinator INTEGER NOT NULL DEFAULT 0,"                                           \
    "  restarts_shard INTEGER NOT NULL DEFAULT 0,"                                                 \
    "  restarts_replica INTEGER NOT NULL DEFAULT 0,"                                               \
    "  command TEXT NOT NULL DEFAULT 'run',"                                                       \
    "  start_model TEXT NOT NULL DEFAULT '',"                                                      \
    "  start_run INTEGER NOT NULL DEFAULT 0,"                                                      \
    "  sweep INTEGER NOT NULL DEFAULT 0,"                                                          \
    "  member INTEGER NOT NULL DEFAULT 0,"                                                         \
    "  tag TEXT NOT NULL DEFAULT '',"                                                              \
    "  note TEXT NOT NULL DEFAULT '',"                                                             \
    "  continues INTEGER NOT NULL DEFAULT 0,"                                                      \
    "  origin INTEGER NOT NULL DEFAULT 0);"                                                        \
    "CREATE TABLE steps ("                                                                         \
    "  run INTEGER NOT NULL REFERENCES runs,"                                                      \
    "  step INTEGER NOT NULL,"                                                                     \
    "  loss REAL,"                                                                                 \
    "  gradient_max REAL,"                                                                         \
    "  step_length REAL,"                                                                          \
    "  trials INTEGER NOT NULL,"                                                                   \
    "  history INTEGER NOT NULL,"                                                                  \
    "  note TEXT NOT NULL,"                                                                        \
    "  wall_ms INTEGER NOT NULL,"                                                                  \
    "  holdout_loss REAL,"                                                                         \
    "  holdout_accuracy REAL,"                                                                     \
    "  PRIMARY KEY (run, step)) WITHOUT ROWID;"                                                    \
    "CREATE TABLE evaluations ("                                                                   \
    "  run INTEGER NOT NULL REFERENCES runs,"                                                      \
    "  attempt INTEGER NOT NULL,"                                                                  \
    "  evaluation INTEGER NOT NULL,"                                                               \
    "  step INTEGER NOT NULL,"                                                                     \
    "  step_length REAL,"                                                                          \
    "  loss REAL,"                                                                                 \
    "  slope REAL,"                                                                                \
    "  examples INTEGER NOT NULL,"                                                                 \
    "  seconds REAL NOT NULL,"                                                                     \
    "  outcome TEXT NOT NULL,"                                                                     \
    "  PRIMARY KEY (run, attempt, evaluation)) WITHOUT ROWID;"                                     \
    "CREATE TABLE portions ("                                                                      \
    "  run INTEGER NOT NULL REFERENCES runs,"                                                      \
    "  attempt INTEGER NOT NULL,"                                                                  \
    "  evaluation INTEGER NOT NULL,"                                                               \
    "  first_chunk INTEGER NOT NULL,"                                                              \
    "  chunks INTEGER NOT NULL,"                                                                   \
    "  incarnation INTEGER NOT NULL,"                                                              \
    "  sequence INTEGER NOT NULL,"                                                                 \
    "  PRIMARY KEY (run, attempt, evaluation, first_chunk)) WITHOUT ROWID;"                        \
    "CREATE TABLE processes ("                                                                     \
    "  run INTEGER NOT NULL REFERENCES runs,"                                                      \
    "  role TEXT NOT NULL,"                                                                        \
    "  idx INTEGER NOT NULL,"                                                                      \
    "  incarnation INTEGER NOT NULL,"                                                              \
    "  pid INTEGER NOT NULL,"                                                                      \
    "  host TEXT NOT NULL,"                                                                        \
    "  state TEXT NOT NULL,"                                                                       \
    "  started_ms INTEGER NOT NULL,"                                                               \
    "  changed_ms INTEGER NOT NULL,"                                                               \
    "  address TEXT NOT NULL DEFAULT '',"                                                          \
    "  device TEXT NOT NULL DEFAULT '',"                                                           \
    "  PRIMARY KEY (run, role, idx, incarnation)) WITHOUT ROWID;"                                  \
    "CREATE TABLE events ("                                                                        \
    "  event INTEGER PRIMARY KEY,"                                                                 \
    "  run INTEGER NOT NULL REFERENCES runs,"                                                      \
    "  wall_ms INTEGER NOT NULL,"                                                                  \
    "  kind TEXT NOT NULL,"                                                                        \
    "  text TEXT NOT NULL);"                                                                       \
    "CREATE TABLE models ("                                                                        \
    "  model INTEGER PRIMARY KEY,"                                                                 \
    "  run INTEGER NOT NULL REFERENCES runs,"                                                      \
    "  wall_ms INTEGER NOT NULL,"                                                                  \
    "  folder TEXT NOT NULL,"                                                                      \
    "  sha256 TEXT NOT NULL,"                                                                      \
    "  removed_ms INTEGER NOT NULL DEFAULT 0,"                                                     \
    "  figures TEXT NOT NULL DEFAULT '');" TABLE_ATTEMPTS TABLE_JOURNAL TABLE_DURABLE_STEPS        \
        TABLE_SOURCES TABLE_PUBLICATIONS

/* A literal may have 4,095 characters, so the rest is of its own. */
#define SCHEMA_MORE TABLE_SWEEPS TABLE_HOSTS TABLE_DOWNPOUR_EPOCHS TABLE_INVOCATIONS INDEXES

/* UPGRADES has, from version 1 on, what brings a database of a version to the next. A step that was
 * released is never changed: who changes a table that a step makes by its macro gives the step a
 * copy of what it was. */
#define UPGRADES NULL

#endif
