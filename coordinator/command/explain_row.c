/* `explain-row`: what the status server runs for a row that somebody pastes into its page. It is a
 * process of its own, so that neither a hostile row nor a large model can hold up or end a run; the
 * limits below hold for it alone. It reads one row from standard input, which is a file, and prints
 * one JSON object. */
#define _GNU_SOURCE
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "coordinator/command/command.h"
#include "coordinator/status/http_message.h"
#include "model/explain.h"
#include "model/output_columns.h"
#include "model/score.h"
#include "objective/objective.h"

#define CPU_SECONDS 4           /* a network of many layers takes the longest */
#define MEMORY_BYTES (1u << 30) /* besides the model, which is mapped */
#define NICENESS 10             /* workers may need every processor */
#define COLUMNS_MOST 30         /* of the largest contributions to one margin */
#define OUTPUTS_MOST 12 /* of several classes: the predicted ones and those of large margins */

static void limit_this_process(void) {
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    (void)setrlimit(RLIMIT_CPU, &(struct rlimit){CPU_SECONDS, CPU_SECONDS});
    /* A sanitizer needs memory of its own. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    (void)setrlimit(RLIMIT_DATA, &(struct rlimit){MEMORY_BYTES, MEMORY_BYTES});
#endif
    (void)setpriority(PRIO_PROCESS, 0, NICENESS);
}

/* ---- the row ---- */

/* How many lines the text has that are not blank, and the first character of the first one. Line
 * ends between quotes are a part of a cell. */
static unsigned count_lines(const char *text, bool quotes, char *first) {
    unsigned lines = 0;
    bool blank = true, quoted = false;
    *first = '\0';
    for (; *text; text++) {
        quoted ^= quotes && *text == '"';
        if (*text == '\n' && !quoted)
            blank = true;
        else if (blank && !strchr(" \t\r\n", *text)) {
            blank = false;
            if (!lines++)
                *first = *text;
        }
    }
    return lines;
}

/* Reads the row from standard input, which score_files() reads once more. Sets how: an object is
 * JSON; one line of a table has no header line, whatever the training data had. */
static int prepare_reading(const struct model_layout *layout, struct source_options *reading) {
    static char text[REQUEST_BODY_MAX + 1];
    const size_t length = fread(text, 1, sizeof text - 1, stdin);
    char first;
    if (strlen(text) != length)
        return error_set(ERROR_DATA, "the row has a NUL byte");
    unsigned lines =
        count_lines(text, layout->table && reading->syntax.quote != CSV_QUOTE_NONE, &first);
    if (layout->table) {
        reading->format = first == '{' ? FORMAT_JSONL : FORMAT_CSV;
        if (first != '{' && lines <= 1)
            reading->syntax.header = CSV_HEADER_NO;
        else if (first != '{' && reading->syntax.header != CSV_HEADER_NO)
            lines--, reading->syntax.header = CSV_HEADER_YES;
    } else if (!source_is_table(reading->format)) {
        reading->format = FORMAT_LIBSVM; /* a row of an array is numbers by place, too */
    }
    reading->label.optional = true;
    reading->streams = true;
    if (lseek(STDIN_FILENO, 0, SEEK_SET))
        return error_set_errno(ERROR_USAGE, "standard input is no file");
    if (lines == 1)
        return 0;
    return error_set(ERROR_DATA, "%u rows; give one row%s", lines,
                     layout->table ? ", with or without a header line before it" : "");
}

/* A message of the reader names a file and a key, which whoever pastes a row does not know. */
static int restate(int code) {
    static const char file[] = "standard input:", key[] = "; bad_lines = ";
    char *text = memory_copy_string(error_text()), *end = strstr(text, key), *at = text;
    if (strncmp(text, file, strlen(file)) == 0) {
        at += strlen(file);
        if (end)
            *end = '\0';
    }
    error_clear();
    error_set(code, "%s%s", at == text ? "" : "line ", at);
    free(text);
    return code;
}

/* ---- the answer ---- */

/* Moves a member of `from` to `to`, if it is there. */
static void take(json_t *to, const char *name, const json_t *from, const char *member) {
    json_t *value = json_object_get(from, member);
    if (value)
        json_object_set(to, name, value);
}

/* Moves the member "WHAT:CLASS", or WHAT where there is one margin for all. */
static void take_of_class(json_t *to, const char *what, const json_t *from, const char *class) {
    char *member = memory_format("%s%s%s", what, class ? ":" : "", class ? class : "");
    take(to, what, from, member);
    free(member);
}

static bool is_predicted(const json_t *label, const json_t *class) {
    size_t i;
    json_t *each;
    json_array_foreach(label, i, each) if (json_equal(each, class)) return true;
    return json_equal(label, class);
}

/* Whether output `a` is to be shown before output `b`: predicted classes first, then by falling
 * margin. */
static bool precedes(const json_t *label, const json_t *a, const json_t *b) {
    const bool first = is_predicted(label, json_object_get(a, "class"));
    if (first != is_predicted(label, json_object_get(b, "class")))
        return first;
    return json_number_value(json_object_get(a, "margin")) >
           json_number_value(json_object_get(b, "margin"));
}

/* Makes of the object that `predict --explain` prints one that has the same members whatever the
 * model predicts. Takes it over. */
static json_t *arrange(const struct model_layout *layout, json_t *printed) {
    json_t *answer = json_pack("{s:s, s:b}", "objective", layout->objective, "network",
                               layout->network.layers > 0);
    json_t *outputs = json_array(), *list = json_object_get(printed, "explanations"), *each;
    const json_t *label = json_object_get(printed, "label");
    size_t i;
    take(answer, "label", printed, "label");
    take(answer, "value", printed, "value");
    if (!list) {
        each = json_pack("{s:n}", "class");
        take_of_class(each, "margin", printed, NULL);
        take_of_class(each, "probability", printed,
                      layout->classes > 1 ? layout->class_names[1] : NULL);
        if (layout->classes > 1)
            json_object_set_new(each, "of", json_string(layout->class_names[1]));
        take(each, "base", printed, "base");
        take(each, "contributions", printed, "contributions");
        take(each, "rest", printed, "rest");
        json_array_append_new(outputs, each);
    }
    json_array_foreach(list, i, each) {
        const char *class = json_string_value(json_object_get(each, "class"));
        take_of_class(each, "margin", printed, class);
        take_of_class(each, "probability", printed, class);
        size_t at = json_array_size(outputs);
        while (at && precedes(label, each, json_array_get(outputs, at - 1)))
            at--;
        json_array_insert(outputs, at, each);
        if (json_array_size(outputs) > OUTPUTS_MOST)
            json_array_remove(outputs, OUTPUTS_MOST);
    }
    json_object_set_new(
        answer, "more",
        json_integer(list ? (json_int_t)(json_array_size(list) - json_array_size(outputs)) : 0));
    json_object_set_new(answer, "outputs", outputs);
    json_decref(printed);
    return answer;
}

static int explain_row(const struct model *model, const struct source_options *reading,
                       struct score_output *output) {
    char standard_input[] = "-", *paths[] = {standard_input, NULL}, *text = NULL;
    size_t length;
    output->file = open_memstream(&text, &length);
    if (!output->file)
        memory_exhausted(1, 1);
    int code = score_files(model, paths, NULL, reading, 1, output, NULL);
    fclose(output->file);
    json_t *printed = code ? NULL : json_loads(text, 0, NULL);
    free(text);
    if (code)
        return restate(code);
    if (!json_is_object(printed))
        return error_set(ERROR_DATA, "there is no row");
    json_t *answer = arrange(&model->layout, printed);
    json_dumpf(answer, stdout, JSON_COMPACT);
    json_decref(answer);
    return 0;
}

int command_explain_row(const struct options *options) {
    struct model *model = NULL;
    struct source_options reading = {0};
    struct output_columns *columns = NULL;
    struct score_output output = {.json = true, .explained = COLUMNS_MOST};
    limit_this_process();
    int code = model_open(options->operands[0], &model);
    if (!code)
        code = explainer_new(model, &output.explainer);
    if (!code)
        code = score_options(model, &reading);
    if (!code)
        code = prepare_reading(&model->layout, &reading);
    if (!code) {
        const struct objective *objective = objective_find(model->layout.objective);
        code = output_columns_parse(&model->layout,
                                    objective->labels == LABEL_TARGET ? "value,margins"
                                    : objective->predict ? "label,probabilities,margins"
                                                         : "label,margins",
                                    &columns);
        output.columns = columns;
    }
    if (!code)
        code = explain_row(model, &reading, &output);
    output_columns_free(columns);
    explainer_free(output.explainer);
    score_options_release(&reading);
    model_close(model);
    return code;
}
