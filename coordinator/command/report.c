/* `report`: the status page of a state folder as one file that needs no server. The page finds in
 * it the answers that a server would have given. */
#define _GNU_SOURCE
#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "coordinator/command/ask.h"
#include "coordinator/command/command.h"
#include "coordinator/command/print.h"
#include "coordinator/command/recorded.h"
#include "coordinator/status/api.h"
#include "coordinator/status/page.h"

#define RUNS_MAX 20 /* the newest that are no folds, whose steps are in the file */

static const char policy[] =
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
    "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'\">\n";

/* Writes `"path?query": answer`, as JSON within a script element: "<" is in its strings alone, and
 * written as an escape it cannot end the element. Returns the answer as JSON. */
static json_t *put_answer(const struct api *api, const char *path, const char *query, FILE *out) {
    struct request request = {.path = path, .query = query};
    struct http_answer answer = {0};
    api_answer(api, &request, &answer);
    assert(answer.status > 0 && answer.body);
    fprintf(out, "\"%s%s%s\": ", path + 1, *query ? "?" : "", query);
    const char *text = answer.body;
    for (size_t i = 0; i < answer.length; i++)
        if (text[i] == '<')
            fputs("\\u003c", out);
        else
            putc(text[i], out);
    json_t *json = json_loadb(answer.body, answer.length, 0, NULL);
    free(answer.owned);
    return json;
}

/* Writes a list part by part, as the page asks for it. `more` goes after the number in the query:
 * "&run=3". */
static void put_list(const struct api *api, const char *path, const char *more, FILE *out) {
    json_int_t since = 0, next = -1;
    while (next != since) {
        char query[64];
        since = next < 0 ? 0 : next;
        snprintf(query, sizeof query, "since=%lld%s", (long long)since, more);
        fputs(",\n", out);
        json_t *answer = put_answer(api, path, query, out);
        bool goes_on = json_is_true(json_object_get(answer, "more"));
        next = goes_on ? json_integer_value(json_object_get(answer, "next")) : since;
        json_decref(answer);
    }
}

static void put_answers(const struct api *api, FILE *out) {
    json_decref(put_answer(api, "/api/v1/status", "", out));
    fputs(",\n", out);
    json_t *answer = put_answer(api, "/api/v1/runs", "", out);
    const json_t *runs = json_object_get(answer, "runs");
    size_t count = json_array_size(runs);
    if (api->heaviest) {
        fputs(",\n", out);
        json_decref(put_answer(api, "/api/v1/weights", "", out));
    }
    if (api->summary) {
        fputs(",\n", out);
        json_decref(put_answer(api, "/api/v1/summary", "", out));
    }
    if (api->importance) {
        fputs(",\n", out);
        json_decref(put_answer(api, "/api/v1/importance", "", out));
    }
    put_list(api, "/api/v1/steps", "", out);
    put_list(api, "/api/v1/epochs", "", out);
    put_list(api, "/api/v1/events", "", out);
    size_t written = 0;
    for (size_t i = count; i && written < RUNS_MAX; i--) {
        const json_t *run = json_array_get(runs, i - 1);
        char more[32];
        if (member_count(json_object_get(run, "sweep"), "fold"))
            continue;
        written++;
        snprintf(more, sizeof more, "&run=%lld", member_count(run, "run"));
        put_list(api, "/api/v1/steps", more, out);
    }
    json_decref(answer);
}

/* The page, with the answers where it has the mark. */
static int put_page(void *context, FILE *out) {
    static const char mark[] = "<!--record-->";
    struct api api = recorded_api(context, NULL);
    const char *page = (const char *)page_html;
    const char *at = memmem(page, page_html_length, mark, sizeof mark - 1);
    if (!at)
        return error_set(ERROR_INTERNAL, "the page has no place for a record");
    fwrite(page, 1, (size_t)(at - page), out);
    fputs(policy, out);
    fputs("<script type=\"application/json\" id=\"record\">{\n", out);
    put_answers(&api, out);
    fputs("}</script>", out);
    at += sizeof mark - 1;
    fwrite(at, 1, (size_t)(page + page_html_length - at), out);
    return 0;
}

int command_report(const struct options *options) {
    char *state;
    int code = place_of(options, &state);
    if (code)
        return code;
    struct recorded record = {.state = state};
    code = recorded_refresh(&record);
    if (!code) {
        recorded_read_model(&record);
        code = output_file_write(options->output, put_page, &record);
    }
    recorded_release(&record);
    free(state);
    return code;
}
