/* What a session answers while it trains, over the control socket and by the status server. Both
 * ask in turns of the loop, so they see the state between two steps. */
#include "coordinator/run/training.h"

#include <assert.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "coordinator/run/row_explainer.h"
#include "coordinator/status/api.h"
#include "coordinator/status/report.h"

/* Before, between and after trainings there is no coordinator. Counters are of now, as the rest is,
 * and not of the last tick. What is `awaited` must outlive the answer. */
static struct live live_of(struct training *run, const char *awaited) {
    struct session *session = run->session;
    double seconds = training_seconds(run), left = NAN, speed = NAN;
    if (run->coordinator && session->loop.stage == STAGE_TRAINING) {
        struct coordinator_view view = coordinator_view(run->coordinator);
        if (run->cluster)
            counters_note(&run->counters, &view);
        left = eta_seconds_left(&run->eta, &view, seconds, session->job->max_seconds);
        speed = eta_rate(&run->eta, &view, seconds);
    }
    return (struct live){
        .stage = session->loop.stage,
        .coordinator = run->coordinator,
        .hosts = run->recorder.hosts,
        .job = session->job,
        .run = run->recorder.run,
        .started_ms = run->started_ms,
        .seconds = seconds,
        .seconds_left = left,
        .speed = speed,
        .counters = &run->counters,
        .durable_ms = run->recorder.durable_ms,
        .waiting = awaited,
        .http = session->http ? http_url(session->http) : NULL,
        .sweep = session->sweep,
        .sweep_context = session->sweep_context,
        .member = run->member.number,
        .result = run->result,
    };
}

static char *awaited_of(const struct training *run) {
    return run->cluster ? cluster_waits_for(run->cluster) : NULL;
}

/* ---- the control socket ---- */

static json_t *on_status(void *context) {
    const struct session *session = context;
    char *awaited = awaited_of(session->training);
    struct live live = live_of(session->training, awaited);
    json_t *status = report_live_status(&live);
    free(awaited);
    return status;
}

static json_t *on_runs(void *context) {
    const struct session *session = context;
    struct live live = live_of(session->training, NULL);
    json_t *runs = NULL;
    if (report_live_runs(&live, session->store, &runs)) {
        runs = json_pack("{s:o}", "error", text_to_json(error_text()));
        error_clear(); /* a question that could not be answered does not end the run */
    }
    return runs;
}

static void on_cancel(void *context) {
    struct session *session = context;
    loop_stop(&session->loop, SIGTERM, "cancelled over the control socket");
}

/* ---- the status server ---- */

/* A page asks for the status every second, and later where its browser waits for a processor. One
 * that was closed just before the end costs so much. */
#define WATCHED_NS (4 * NS_PER_S)
#define LAST_MS 4000

static void on_request(void *context, const struct request *request, struct http_answer *answer) {
    struct session *session = context;
    if (strcmp(request->path, "/api/v1/status") == 0) {
        session->watched_ns = clock_monotonic_ns();
        session->told = session->loop.stage == STAGE_ENDED;
    }
    char *awaited = awaited_of(session->training);
    struct api api = {.live = live_of(session->training, awaited),
                      .store = session->store,
                      .counts = http_counts(session->http)};
    api_answer(&api, request, answer);
    free(awaited);
}

static bool on_post(void *context, const struct request *request, uint64_t ticket,
                    struct http_answer *answer) {
    const struct session *session = context;
    return row_explainer_post(session->row_explainer, session->job->state, request, ticket, answer);
}

int status_begin(struct session *session) {
    struct control_callbacks control = {
        .status = on_status, .runs = on_runs, .cancel = on_cancel, .context = session};
    struct http_callbacks http = {.answer = on_request, .post = on_post, .context = session};
    assert(session->loop.base && !session->control && !session->http);
    int code = session->job->http ? http_new(session->job->http, &session->http) : 0;
    if (!code)
        code = control_new(session->loop.base, session->job->state, &control, &session->control);
    if (!code && session->http)
        code = http_serve(session->http, session->loop.base, &http);
    if (!code && session->http)
        session->row_explainer = row_explainer_new(session->loop.base, session->http);
    return code;
}

static void leave_at_once(void *context) {
    ((struct session *)context)->told = true;
}

static bool was_told(const void *context) {
    return ((const struct session *)context)->told;
}

void status_last(struct session *session) {
    assert(!session->loop.stop);
    session->loop.stage = STAGE_ENDED;
    session->told = false; /* it may have been told the end of an earlier training */
    if (!session->http || clock_monotonic_ns() - session->watched_ns > WATCHED_NS ||
        !session->watched_ns)
        return;
    session->loop.stop = leave_at_once;
    loop_until(session->loop.base, LAST_MS, was_told, session);
    loop_poll(&session->loop); /* what is left of the answer is sent */
    session->loop.stop = NULL;
}

void status_end(struct session *session) {
    control_free(session->control);
    row_explainer_free(session->row_explainer);
    http_free(session->http);
    session->control = NULL;
    session->http = NULL;
    session->row_explainer = NULL;
}
