#include <inttypes.h>
#include <unistd.h>

#include "coordinator/command/command.h"
#include "coordinator/command/need_print.h"
#include "base/error.h"
#include "base/escape.h"
#include "base/text.h"
#include "coordinator/run/dataset.h"
#include "coordinator/run/lock.h"
#include "coordinator/run/shape.h"
#include "coordinator/status/report.h"

static void print_set(const struct set *set, double seconds, const struct memory_need *need) {
    const struct set_info *info = set_info(set);
    fputs("set          ", stdout);
    escape_put(set_path(set), stdout);
    putchar('\n');
    printf("fingerprint  %s\n", info->fingerprint);
    printf("examples     %" PRIu64 "\n", info->rows);
    printf("features     %u\n", info->features);
    printf("values       %" PRIu64 " (%s, %s)\n", info->values, info->dense ? "dense" : "sparse",
           value_type_name(info->type));
    printf("chunks       %u\n", info->chunks);
    if (info->classes)
        printf("classes      %u\n", info->classes);
    if (info->weighted)
        printf("weights      %.12g in all\n", info->weight_total);
    if (info->rows_held_out)
        printf("held out     %" PRIu64 " examples\n", info->rows_held_out);
    printf("rejected     %" PRIu64 " lines\n", info->rejected);
    need_print(need, "memory       ");
    printf("seconds      %.3f\n", seconds);
}

static void print_set_json(const struct set *set, double seconds, const struct memory_need *need) {
    const struct set_info *info = set_info(set);
    json_t *answer = json_pack(
        "{s:o, s:s, s:I, s:I, s:I, s:b, s:s, s:I, s:I, s:I, s:f}", "set",
        text_to_json(set_path(set)), "fingerprint", info->fingerprint, "examples",
        (json_int_t)info->rows, "features", (json_int_t)info->features, "values",
        (json_int_t)info->values, "dense", (int)info->dense, "value_type",
        value_type_name(info->type), "chunks", (json_int_t)info->chunks, "classes",
        (json_int_t)info->classes, "rejected", (json_int_t)info->rejected, "seconds", seconds);
    if (info->weighted)
        json_object_set_new(answer, "weight_sum", json_real(info->weight_total));
    if (info->rows_held_out)
        json_object_set_new(answer, "rows_held_out", json_integer((json_int_t)info->rows_held_out));
    need_add(need, answer);
    report_print_json(answer);
    json_decref(answer);
}

int command_pack(const struct options *options) {
    struct job *job;
    struct dataset data = {0};
    struct memory_need need;
    int lock = -1;
    int code = job_read(options->operands[0], options->settings, options->settings_count,
                        options->state, &job);
    if (code)
        return code;
    code = dataset_make_state(job);
    if (!code)
        code = state_lock(job->state, &lock);
    if (!code)
        code = dataset_open(job, NULL, &data);
    if (!code && need_of_data(job, set_info(data.set), &need))
        error_clear(); /* a run says so */
    if (!code && options->json)
        print_set_json(data.set, data.seconds, &need);
    else if (!code)
        print_set(data.set, data.seconds, &need);
    dataset_release(&data);
    state_unlock(lock);
    job_free(job);
    return code;
}

int command_inspect(const struct options *options) {
    return inspect_print(options->operands[0], options->json);
}
