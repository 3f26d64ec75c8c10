/* The commands. Each does its work, prints its answer, and returns 0 or a negative error code. */
#ifndef DML_COORDINATOR_COMMAND_COMMAND_H
#define DML_COORDINATOR_COMMAND_COMMAND_H

#include "coordinator/job/options.h"

int command_init(const struct options *options);
int command_run(const struct options *options);
int command_retrain(const struct options *options);
int command_publish(const struct options *options);
int command_rollback(const struct options *options);
int command_check(const struct options *options);
int command_status(const struct options *options);
int command_jobs(const struct options *options);
int command_metrics(const struct options *options);
int command_prune(const struct options *options);
int command_pack(const struct options *options);
int command_inspect(const struct options *options);
int command_cancel(const struct options *options);
int command_predict(const struct options *options);
int command_evaluate(const struct options *options);
int command_summary(const struct options *options);
int command_export(const struct options *options);
int command_serve(const struct options *options);
int command_report(const struct options *options);
int command_explain_row(const struct options *options);
int command_complete(const struct options *options);

/* The lines of a command's help above its options; "" if there are none. */
const char *command_about(const char *command);

#endif
