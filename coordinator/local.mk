# The state machine, then what is around it, in the order in which one may include another.
noinst_LIBRARIES += libcoordinator.a
libcoordinator_a_SOURCES = \
	coordinator/driver_read.c \
	coordinator/driver.c coordinator/driver.h \
	coordinator/dispatch/backup.c \
	coordinator/dispatch/commit.c \
	coordinator/dispatch/dispatch.h \
	coordinator/dispatch/evaluation.c \
	coordinator/dispatch/output.c coordinator/dispatch/output.h \
	coordinator/dispatch/plan.c coordinator/dispatch/plan.h \
	coordinator/dispatch/portions.c \
	coordinator/dispatch/round.c coordinator/dispatch/round.h \
	coordinator/machine/coordinator.h \
	coordinator/machine/copies.c coordinator/machine/copies.h \
	coordinator/machine/hosts.c coordinator/machine/hosts.h \
	coordinator/machine/machine.h \
	coordinator/machine/membership.c \
	coordinator/machine/recovery.c \
	coordinator/machine/setup.c \
	coordinator/machine/state.c \
	coordinator/machine/step.c \
	coordinator/machine/view.c \
	coordinator/job/job_check.c coordinator/job/key.h \
	coordinator/job/column_rules.c coordinator/job/column_rules.h \
	coordinator/job/family.c coordinator/job/family.h \
	coordinator/job/gate.c coordinator/job/gate.h \
	coordinator/job/host_list.c coordinator/job/host_list.h \
	coordinator/job/job_read.c coordinator/job/job.h \
	coordinator/job/job_file.c \
	coordinator/job/key.c \
	coordinator/job/key_table.c \
	coordinator/job/sizing.c coordinator/job/sizing.h \
	coordinator/job/sizing_directions.c \
	coordinator/job/options.c coordinator/job/options.h \
	coordinator/job/scaling.c coordinator/job/scaling.h \
	coordinator/job/tiling.c coordinator/job/tiling.h \
	coordinator/status/http_limits.c coordinator/status/http_limits.h \
	coordinator/status/api.c coordinator/status/api.h \
	coordinator/status/report.c coordinator/status/report.h \
	coordinator/status/live.c coordinator/status/live.h \
	coordinator/status/control.c coordinator/status/control.h \
	coordinator/status/figures.c coordinator/status/figures.h coordinator/status/figures.def \
	coordinator/status/sweep_plan.c coordinator/status/sweep_plan.h \
	coordinator/status/sweep_table.c coordinator/status/sweep_table.h \
	coordinator/status/history.c coordinator/status/history.h \
	coordinator/status/invocations.c coordinator/status/invocations.h \
	coordinator/status/run_folder.c coordinator/status/run_folder.h \
	coordinator/status/http.c coordinator/status/http.h \
	coordinator/command/explain_row.c \
	coordinator/run/row_explainer.c coordinator/run/row_explainer.h \
	coordinator/status/page.c coordinator/status/page.h \
	coordinator/status/metrics.c coordinator/status/metrics.h coordinator/status/metrics_write.h \
	coordinator/status/past_metrics.c coordinator/status/past_metrics.h \
	coordinator/status/eta.c coordinator/status/eta.h \
	coordinator/status/result.c coordinator/status/result.h \
	coordinator/status/http_message.c coordinator/status/http_message.h \
	coordinator/run/missing_workers.c coordinator/run/missing_workers.h \
	coordinator/run/active_bounds.c coordinator/run/active_bounds.h \
	coordinator/run/begin.c \
	coordinator/run/cluster_loop.c coordinator/run/cluster.h coordinator/run/cluster_links.c \
	coordinator/run/cluster_names.c \
	coordinator/run/cluster_parts.h \
	coordinator/run/conclude.c \
	coordinator/run/copier.c coordinator/run/copier.h \
	coordinator/run/respond.c \
	coordinator/run/summary.c coordinator/run/summary.h \
	coordinator/run/summary_columns.c coordinator/run/summary_parts.h \
	coordinator/run/start.c coordinator/run/start.h \
	coordinator/run/dataset.c coordinator/run/dataset.h coordinator/run/dataset_files.c \
	coordinator/run/convergence.c coordinator/run/convergence.h \
	coordinator/run/curvature.c coordinator/run/curvature.h \
	coordinator/run/kronecker_scaling.c coordinator/run/kronecker_scaling.h \
	coordinator/run/null_loss.c coordinator/run/null_loss.h \
	coordinator/run/preview.c coordinator/run/preview.h \
	coordinator/run/progress.c coordinator/run/progress.h \
	coordinator/run/holdout.c \
	coordinator/run/invocation.c coordinator/run/invocation.h \
	coordinator/run/launch_processes.c coordinator/run/launch.h \
	coordinator/run/launch_local.c coordinator/run/launch_remote.c \
	coordinator/run/launch_ways.h \
	coordinator/run/model_removal.c coordinator/run/model_removal.h \
	coordinator/run/name_watch.c coordinator/run/name_watch.h \
	coordinator/run/state_folder.c coordinator/run/state_folder.h \
	coordinator/run/loop.c coordinator/run/loop.h \
	coordinator/run/shape.c \
	coordinator/run/recorder.c coordinator/run/recorder.h \
	coordinator/run/level_split.c coordinator/run/level_split.h \
	coordinator/run/refine.c coordinator/run/refine.h \
	coordinator/run/host_lookup.c coordinator/run/host_lookup.h \
	coordinator/run/set_service.c coordinator/run/set_service.h \
	coordinator/run/sets.c coordinator/run/sets.h \
	coordinator/run/session.c coordinator/run/session.h \
	coordinator/run/training_columns.c coordinator/run/session_status.c coordinator/run/training.h \
	coordinator/run/training.c \
	coordinator/run/workers.c \
	coordinator/sweep/sweep.c coordinator/sweep/sweep.h \
	coordinator/publish/derive.c coordinator/publish/derive.h \
	coordinator/publish/gate.c coordinator/publish/gate.h \
	coordinator/publish/needs.c coordinator/publish/prune.h \
	coordinator/command/print.c coordinator/command/print.h \
	coordinator/publish/prune.c \
	coordinator/publish/publish.c coordinator/publish/publish.h \
	coordinator/command/help.c \
	coordinator/command/init.c \
	coordinator/command/proposal.c coordinator/command/proposal.h \
	coordinator/command/proposal_cells.c coordinator/command/proposal_cells.h \
	coordinator/command/about_model.c coordinator/command/about_model.h \
	coordinator/command/ask.c coordinator/command/ask.h \
	coordinator/command/check.c \
	coordinator/command/command.h \
	coordinator/command/export.c coordinator/command/summary.c \
	coordinator/command/summary_print.c coordinator/command/summary_print.h \
	coordinator/command/diff.c coordinator/command/diff.h coordinator/command/diff_print.c \
	coordinator/command/jobs.c \
	coordinator/command/last_run.c coordinator/command/last_run.h \
	coordinator/command/predict.c \
	coordinator/command/recorded.c coordinator/command/recorded.h \
	coordinator/command/report.c coordinator/command/serve.c \
	coordinator/command/report_print.c \
	coordinator/command/retrain.c \
	coordinator/command/go_live.c coordinator/command/go_live.h \
	coordinator/command/publish.c \
	coordinator/command/rollback.c \
	coordinator/command/run.c \
	coordinator/command/status.c
libcoordinator_a_CFLAGS = $(AM_CFLAGS) $(CONFUSE_CFLAGS) $(JANSSON_CFLAGS) $(EVENT_CFLAGS)
COORDINATOR_LIBS = libcoordinator.a $(OPTIMIZER_LIBS) $(CONFUSE_LIBS) $(JANSSON_LIBS)

# The page for browsers is one file for whoever asks: style and scripts take the places that page.html
# has for them. A script uses what is in those before it alone.
scripts_of_page = \
	coordinator/status/page/tools.js coordinator/status/page/answers.js \
	coordinator/status/page/frame.js coordinator/status/page/steps.js \
	coordinator/status/page/known.js coordinator/status/page/scales.js \
	coordinator/status/page/marks.js coordinator/status/page/charts.js \
	coordinator/status/page/epochs.js coordinator/status/page/pointing.js \
	coordinator/status/page/evaluation.js coordinator/status/page/table.js \
	coordinator/status/page/workers.js coordinator/status/page/events.js \
	coordinator/status/page/runs.js coordinator/status/page/head.js \
	coordinator/status/page/figures.js coordinator/status/page/shares.js \
	coordinator/status/page/weights.js coordinator/status/page/summary.js \
	coordinator/status/page/sweep.js coordinator/status/page/outcome.js \
	coordinator/status/page/explain.js \
	coordinator/status/page/connection.js coordinator/status/page/main.js
page_folder = coordinator/status/page
parts_of_page = $(page_folder)/page.html $(page_folder)/colours.css $(page_folder)/style.css $(scripts_of_page)
parts_of_index = $(page_folder)/index.html $(page_folder)/colours.css $(page_folder)/index.css
put_style = -e '/^<!--style-->$$/{' -e 'r $(srcdir)/$(page_folder)/colours.css'
end_style = -e d -e '}'
coordinator/status/page.html: $(parts_of_page) $(srcdir)/coordinator/local.mk
	$(AM_V_GEN)$(MKDIR_P) coordinator/status && \
	for script in $(scripts_of_page); do echo && cat $(srcdir)/$$script || exit; done >$@.js && \
	sed $(put_style) -e 'r $(srcdir)/$(page_folder)/style.css' $(end_style) \
	    -e '/^<!--script-->$$/{' -e 'r $@.js' -e d -e '}' \
	    $(srcdir)/$(page_folder)/page.html >$@.new && rm $@.js && mv $@.new $@
coordinator/status/index.html: $(parts_of_index) $(srcdir)/coordinator/local.mk
	$(AM_V_GEN)$(MKDIR_P) coordinator/status && \
	sed $(put_style) -e 'r $(srcdir)/$(page_folder)/index.css' $(end_style) \
	    $(srcdir)/$(page_folder)/index.html >$@.new && mv $@.new $@
# They are built into the program: their bytes as numbers, a line each sixteen.
bytes_as_numbers = LC_ALL=C od -An -v -tu1 $< | sed 's/[0-9][0-9]*/&,/g' >$@.new && mv $@.new $@
coordinator/status/page.inc: coordinator/status/page.html
	$(AM_V_GEN)$(bytes_as_numbers)
coordinator/status/index.inc: coordinator/status/index.html
	$(AM_V_GEN)$(bytes_as_numbers)
coordinator/status/libcoordinator_a-page.$(OBJEXT): coordinator/status/page.inc coordinator/status/index.inc
EXTRA_DIST += $(parts_of_page) $(page_folder)/index.html $(page_folder)/index.css
CLEANFILES += coordinator/status/page.html coordinator/status/page.inc \
	coordinator/status/index.html coordinator/status/index.inc

bin_PROGRAMS += dml-coordinator
dml_coordinator_SOURCES = coordinator/main.c base/allocate.c
dml_coordinator_LDADD = $(COORDINATOR_LIBS) $(STORE_LIBS) $(WIRE_LIBS) $(MODEL_LIBS) $(DATA_LIBS) \
	$(OBJECTIVE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS)
