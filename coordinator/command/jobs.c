#include <unistd.h>

#include "base/error.h"
#include "base/escape.h"
#include "base/log.h"
#include "base/terminal.h"
#include "base/text.h"
#include "coordinator/command/ask.h"
#include "coordinator/command/command.h"
#include "coordinator/command/place.h"
#include "coordinator/status/report.h"

static int add_folder(const struct options *options, const char *state, json_t *all) {
    json_t *runs;
    int code = ask_runs(state, &runs);
    if (code)
        return code;
    if (!options->json) {
        escape_put(state, stdout);
        putchar('\n');
        report_print_runs(runs, terminal_colors(STDOUT_FILENO));
    }
    json_object_set_new(runs, "folder", text_to_json(state));
    json_array_append_new(all, runs);
    return 0;
}

int command_jobs(const struct options *options) {
    char **states;
    int code = places_of(options, &states);
    if (code)
        return code;
    json_t *all = json_array();
    for (char **state = states; *state; state++) {
        int failed = add_folder(options, *state, all);
        if (failed)
            log_error("%s", error_text());
        error_clear(); /* a folder that cannot be read does not hide the others */
        code = code ? code : failed;
    }
    if (options->json) {
        json_t *answer = json_pack("{s:O}", "folders", all);
        report_print_json(answer);
        json_decref(answer);
    }
    json_decref(all);
    places_free(states);
    return code;
}
