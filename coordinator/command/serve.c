/* `serve`: the page of the status server over state folders in which no run needs to be alive. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/escape.h"
#include "base/memory.h"
#include "coordinator/command/command.h"
#include "coordinator/command/place.h"
#include "coordinator/command/recorded.h"
#include "coordinator/run/loop.h"
#include "coordinator/status/page.h"

#define ADDRESS "127.0.0.1:0"
#define A_DAY_MS 86400000

struct serving {
    struct loop loop;
    struct http *http;
    char **states;
    struct recorded *records; /* one a folder */
    uint32_t count;
    bool stopped;
};

static void refuse(struct http_answer *answer, int status, const char *text) {
    answer->status = status;
    answer->type = "text/plain; charset=utf-8";
    answer->body = answer->owned = memory_format("%s\n", text);
    answer->length = strlen(answer->body);
}

/* The folder that a path is about: /2/… is the second of several. What is left of the path begins
 * with a slash. NULL if there is no such folder. */
static struct recorded *folder_of(const struct serving *serving, const char **path) {
    if (serving->count == 1)
        return &serving->records[0];
    char *behind;
    unsigned long number = strtoul(*path + 1, &behind, 10);
    if (behind == *path + 1 || *behind != '/' || number < 1 || number > serving->count)
        return NULL;
    *path = behind;
    return &serving->records[number - 1];
}

static void answer_index(struct serving *serving, struct http_answer *answer) {
    struct index_entry *entries = memory_new(serving->count, sizeof *entries);
    for (uint32_t i = 0; i < serving->count; i++) {
        struct recorded *record = &serving->records[i];
        entries[i] = (struct index_entry){.folder = record->state};
        if (recorded_refresh(record))
            entries[i].trouble = memory_copy_string(error_text());
        error_clear();
        entries[i].status = record->status;
    }
    index_answer(entries, serving->count, answer);
    for (uint32_t i = 0; i < serving->count; i++)
        free(entries[i].trouble);
    free(entries);
}

static void answer_about(struct serving *serving, struct recorded *record,
                         const struct request *request, struct http_answer *answer) {
    int code = recorded_refresh(record);
    if (code && !record->status)
        refuse(answer, 503, error_text());
    else {
        struct api api = recorded_api(record, http_counts(serving->http));
        api_answer(&api, request, answer);
    }
    error_clear(); /* what was recorded before is shown, and looked for again with the next request
                    */
}

static void on_request(void *context, const struct request *request, struct http_answer *answer) {
    struct serving *serving = context;
    struct request within = *request;
    struct recorded *record = folder_of(serving, &within.path);
    if (record)
        answer_about(serving, record, &within, answer);
    else if (strcmp(request->path, "/") == 0)
        answer_index(serving, answer);
    else
        refuse(answer, 404, "there is no such page; / lists the state folders");
}

static void on_stop(void *context) {
    ((struct serving *)context)->stopped = true;
}

static bool has_stopped(const void *context) {
    return ((const struct serving *)context)->stopped;
}

static int serve(struct serving *serving, const char *address) {
    struct http_callbacks callbacks = {.answer = on_request, .context = serving};
    int code = loop_open(&serving->loop);
    serving->loop.stop = on_stop;
    serving->loop.context = serving;
    if (!code)
        code = http_new(address ? address : ADDRESS, &serving->http);
    if (!code)
        code = http_serve(serving->http, serving->loop.base, &callbacks);
    if (code)
        return code;
    printf("serving %u state folder%s at %s until Ctrl-C\n", serving->count,
           serving->count == 1 ? "" : "s", http_url(serving->http));
    if (fflush(stdout))
        return error_set_errno(ERROR_IO, "cannot write standard output");
    while (!serving->stopped)
        loop_until(serving->loop.base, A_DAY_MS, has_stopped, serving);
    return 0;
}

int command_serve(const struct options *options) {
    struct serving serving = {0};
    int code = places_of(options, &serving.states);
    if (code)
        return code;
    while (serving.states[serving.count])
        serving.count++;
    serving.records = memory_new(serving.count, sizeof *serving.records);
    for (uint32_t i = 0; i < serving.count; i++)
        serving.records[i] = (struct recorded){.state = serving.states[i]};
    code = serve(&serving, options->http);
    http_free(serving.http);
    loop_close(&serving.loop);
    for (uint32_t i = 0; i < serving.count; i++)
        recorded_release(&serving.records[i]);
    free(serving.records);
    places_free(serving.states);
    return code;
}
