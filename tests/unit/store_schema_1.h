/* The tables of version 1, as they were. */
#ifndef DML_TESTS_STORE_SCHEMA_1_H
#define DML_TESTS_STORE_SCHEMA_1_H

#define OLD_SCHEMA                                                                                 \
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
    "  gradient_max REAL);"                                                                        \
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
    "  sha256 TEXT NOT NULL);"

#endif
