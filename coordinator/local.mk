noinst_LIBRARIES += libcoordinator.a
libcoordinator_a_SOURCES = \
	coordinator/allowance.c coordinator/allowance.h \
	coordinator/answers.c coordinator/answers.h \
	coordinator/api.c coordinator/api.h \
	coordinator/ask.c coordinator/ask.h \
	coordinator/begin.c \
	coordinator/check.c \
	coordinator/chunks.c coordinator/chunks.h \
	coordinator/cluster.c coordinator/cluster.h \
	coordinator/command.h \
	coordinator/complete.c \
	coordinator/conclude.c \
	coordinator/control.c coordinator/control.h \
	coordinator/control_client.c coordinator/control_client.h \
	coordinator/coordinator.c coordinator/coordinator.h \
	coordinator/curvature.c coordinator/curvature.h \
	coordinator/dataset.c coordinator/dataset.h \
	coordinator/durability.c \
	coordinator/evaluating.c \
	coordinator/export.c \
	coordinator/gate.c coordinator/gate.h \
	coordinator/history.c coordinator/history.h \
	coordinator/handing.c \
	coordinator/holdout.c coordinator/holdout.h \
	coordinator/http.c coordinator/http.h \
	coordinator/job.c coordinator/job.h \
	coordinator/job_text.c coordinator/job_text.h \
	coordinator/jobs.c \
	coordinator/judge.c coordinator/judge.h \
	coordinator/key.c coordinator/key.h \
	coordinator/key_table.c \
	coordinator/launch.c coordinator/launch.h \
	coordinator/lbfgs.c coordinator/lbfgs.h \
	coordinator/linesearch.c coordinator/linesearch.h \
	coordinator/live.c coordinator/live.h \
	coordinator/lock.c coordinator/lock.h \
	coordinator/metrics.c coordinator/metrics.h \
	coordinator/notice.c coordinator/notice.h \
	coordinator/optimizer.c coordinator/optimizer.h \
	coordinator/options.c coordinator/options.h \
	coordinator/output.c coordinator/parts.h \
	coordinator/pace.c coordinator/pace.h \
	coordinator/pack.c \
	coordinator/page.c coordinator/page.h \
	coordinator/place.c coordinator/place.h \
	coordinator/plan.c coordinator/plan.h \
	coordinator/predict.c \
	coordinator/progress.c coordinator/progress.h \
	coordinator/publish.c coordinator/publish.h \
	coordinator/reading.c \
	coordinator/recovery.c \
	coordinator/recorder.c coordinator/recorder.h \
	coordinator/refusals.c coordinator/refusals.h \
	coordinator/report.c coordinator/report.h \
	coordinator/report_print.c \
	coordinator/request.c coordinator/request.h \
	coordinator/response.c coordinator/response.h \
	coordinator/result.c coordinator/result.h \
	coordinator/retrain.c \
	coordinator/rollback.c \
	coordinator/rounds.c coordinator/rounds.h \
	coordinator/run.c \
	coordinator/sets.c coordinator/sets.h \
	coordinator/settings.c \
	coordinator/setup.c \
	coordinator/showing.c coordinator/showing.h \
	coordinator/sizing.c coordinator/sizing.h \
	coordinator/start.c coordinator/start.h \
	coordinator/state.c coordinator/state.h \
	coordinator/status.c \
	coordinator/steering.c \
	coordinator/sweep.c coordinator/sweep.h \
	coordinator/tally.c coordinator/tally.h \
	coordinator/training.c coordinator/training.h \
	coordinator/verdicts.c coordinator/verdicts.h \
	coordinator/versions.c coordinator/versions.h
libcoordinator_a_CFLAGS = $(AM_CFLAGS) $(CONFUSE_CFLAGS) $(JANSSON_CFLAGS) $(EVENT_CFLAGS)
COORDINATOR_LIBS = libcoordinator.a $(CONFUSE_LIBS) $(JANSSON_LIBS)

# The page is built into the program: its bytes as numbers, a line each sixteen.
coordinator/page.inc: $(srcdir)/coordinator/page.html
	$(AM_V_GEN)$(MKDIR_P) coordinator && \
	LC_ALL=C od -An -v -tu1 $(srcdir)/coordinator/page.html | \
	sed 's/[0-9][0-9]*/&,/g' >$@.new && mv $@.new $@
coordinator/libcoordinator_a-page.$(OBJEXT): coordinator/page.inc
EXTRA_DIST += coordinator/page.html
CLEANFILES += coordinator/page.inc

bin_PROGRAMS += dml-coordinator
dml_coordinator_SOURCES = coordinator/main.c
dml_coordinator_LDADD = $(COORDINATOR_LIBS) $(STORE_LIBS) $(WIRE_LIBS) $(MODEL_LIBS) $(DATA_LIBS) \
	$(OBJECTIVE_LIBS) $(NUMERIC_LIBS) $(BASE_LIBS)
