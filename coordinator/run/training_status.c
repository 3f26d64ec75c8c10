/* What a training answers while it runs, over the control socket and by the status server. Both ask
 * in turns of the loop, so they see the state between two steps. */
#include "coordinator/run/training.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "coordinator/status/api.h"
#include "coordinator/status/report.h"

/* Before, between and after trainings there is no coordinator. Counters are of now, as the rest is,
 * and not of the last tick. What is `awaited` must outlive the answer. */
static struct live live_of(struct training *run, const char *awaited) {
    double seconds = training_seconds(run), left = NAN, speed = NAN;
    if (run->coordinator && run->loop.stage == STAGE_TRAINING) {
        struct coordinator_view view = coordinator_view(run->coordinator);
        if (run->cluster)
            counters_note(&run->counters, &view);
        left = eta_seconds_left(&run->eta, &view, seconds, run->job->max_seconds);
        speed = eta_rate(&run->eta, &view, seconds);
    }
    return (struct live){
        .stage = run->loop.stage,
        .coordinator = run->coordinator,
        .hosts = run->recorder.hosts,
        .job = run->job,
        .run = run->recorder.run,
        .started_ms = run->started_ms,
        .seconds = seconds,
        .seconds_left = left,
        .speed = speed,
        .counters = &run->counters,
        .durable_ms = run->recorder.durable_ms,
        .waiting = awaited,
        .http = run->http ? http_url(run->http) : NULL,
        .sweep = run->sweep,
        .sweep_context = run->sweep_context,
        .member = run->member.number,
        .result = run->result,
    };
}

static char *awaited_of(const struct training *run) {
    return run->cluster ? cluster_waits_for(run->cluster) : NULL;
}

/* ---- the control socket ---- */

static json_t *on_status(void *context) {
    struct training *run = context;
    char *awaited = awaited_of(run);
    struct live live = live_of(run, awaited);
    json_t *status = report_live_status(&live);
    free(awaited);
    return status;
}

static json_t *on_runs(void *context) {
    struct training *run = context;
    struct live live = live_of(run, NULL);
    json_t *runs = NULL;
    if (report_live_runs(&live, run->store, &runs)) {
        runs = json_pack("{s:o}", "error", text_to_json(error_text()));
        error_clear(); /* a question that could not be answered does not end the run */
    }
    return runs;
}

static void on_cancel(void *context) {
    struct training *run = context;
    loop_stop(&run->loop, SIGTERM, "cancelled over the control socket");
}

/* ---- the status server ---- */

/* A page asks for the status every second, and later where its browser waits for a processor. One
 * that was closed just before the end costs so much. */
#define WATCHED_NS (4 * NS_PER_S)
#define LAST_MS 4000

static void on_request(void *context, const struct request *request, struct http_answer *answer) {
    struct training *run = context;
    if (strcmp(request->path, "/api/v1/status") == 0) {
        run->watched_ns = clock_monotonic_ns();
        run->told = run->loop.stage == STAGE_ENDED;
    }
    char *awaited = awaited_of(run);
    struct api api = {
        .live = live_of(run, awaited), .store = run->store, .counts = http_counts(run->http)};
    api_answer(&api, request, answer);
    free(awaited);
}

int status_begin(struct training *run) {
    struct control_callbacks control = {
        .status = on_status, .runs = on_runs, .cancel = on_cancel, .context = run};
    struct http_callbacks http = {.answer = on_request, .context = run};
    int code = run->job->http ? http_new(run->job->http, &run->http) : 0;
    if (!code)
        code = control_new(run->loop.base, run->job->state, &control, &run->control);
    if (!code && run->http)
        code = http_serve(run->http, run->loop.base, &http);
    return code;
}

static void leave_at_once(void *context) {
    ((struct training *)context)->told = true;
}

static bool was_told(const void *context) {
    return ((const struct training *)context)->told;
}

void status_last(struct training *run) {
    run->loop.stage = STAGE_ENDED;
    if (!run->http || clock_monotonic_ns() - run->watched_ns > WATCHED_NS || !run->watched_ns)
        return;
    run->loop.stop = leave_at_once;
    loop_until(run->loop.base, LAST_MS, was_told, run);
    loop_poll(&run->loop); /* what is left of the answer is sent */
    run->loop.stop = NULL;
}

void status_end(struct training *run) {
    control_free(run->control);
    http_free(run->http);
    run->control = NULL;
    run->http = NULL;
}
