#define _GNU_SOURCE
#include "coordinator/run/dataset.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/resources.h"
#include "base/error.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/memory.h"
#include "coordinator/job/scaling.h"
#include "coordinator/job/tiling.h"
#include "coordinator/run/state_folder.h"
#include "data/set/holdout.h"
#include "data/source/input.h"
#include "data/text/number.h"

static unsigned threads_here(void) {
    unsigned count = cpus_usable();
    return count < THREADS_MAX ? count : THREADS_MAX;
}

/* SQLite opens no path of more bytes, from the root on. */
#define DATABASE_PATH_MAX 512

int dataset_make_state(const struct job *job) {
    char *whole = path_absolute(job->state);
    const size_t length = strlen(whole), most = DATABASE_PATH_MAX - sizeof "/dml.db-journal";
    int code = 0;
    free(whole);
    if (length > most)
        code = error_set(ERROR_CREATE,
                         "the path of the state folder has %zu bytes from the root on, and may "
                         "have %zu: %s",
                         length, most, job->state);
    if (!code)
        code = folder_make(job->state, 0700);
    if (code) {
        char *why = memory_copy_string(error_text());
        error_clear();
        error_set(code, "%s; --state DIR names another", why);
        free(why);
    }
    if (!code && access(job->state, W_OK | X_OK))
        code = error_set_errno(ERROR_PERMISSION,
                               "cannot write the state folder %s; --state DIR names another",
                               job->state);
    return code;
}

static double seconds_since(int64_t start_ns) {
    return (double)(clock_monotonic_ns() - start_ns) / (double)NS_PER_S;
}

struct pack_list {
    struct pack **packs;
    uint32_t count;
};

static void list_release(struct pack_list *list) {
    while (list->count)
        pack_close(list->packs[--list->count]);
    free(list->packs);
}

static int pack_one(const struct source_options *options, const char *folder, const char *path,
                    struct pack **pack) {
    int64_t start = clock_monotonic_ns();
    bool made = false;
    int code = pack_of_source(folder, path, options, threads_here(), pack, &made);
    if (code)
        return code;
    const char *name = source_name(path);
    if (!*pack)
        log_info("%s has no rows: it is passed over", name);
    else if (made)
        log_info("%s: packed in %.2f s", name, seconds_since(start));
    else if (source_is_input(path))
        log_info("%s gives nothing: the rows that were read from it last are used again", name);
    else
        log_info("%s: unchanged, its pack is used again", name);
    return 0;
}

/* Adds pack `i` to the shape, whose table tells what the columns of the next files are. */
static int take_shape(struct source_shape *shape, struct pack *const *packs, uint32_t i) {
    struct source_report report;
    pack_report(packs[i], &report);
    int code = i ? dataset_check_kind(pack_source(packs[0]), shape->table != NULL,
                                      pack_source(packs[i]), source_is_table(report.format))
                 : 0;
    if (!code)
        source_shape_add(shape, &report, i == 0);
    source_report_release(&report);
    return code;
}

/* The order that the columns of a file must be brought into; NULL: they have it. An error is left
 * to whoever packs the file. */
static const struct table *order_for(const struct source_options *options,
                                     const struct table *order, const char *path) {
    struct table *table = NULL;
    if (!order || !table_is_named(order))
        return NULL;
    if (source_is_stream(path)) /* its names can be read once */
        return order;
    if (source_columns(path, options, false, &table, NULL))
        error_clear();
    bool needs = table && table_is_named(table) && !table_names_equal(table, order);
    table_free(table);
    if (needs)
        log_info("%s: columns differ from those of the model before; they are matched by name",
                 path);
    return needs ? order : NULL;
}

/* Reads files that one after the other add to the shape; or, without one, by the table of the
 * options. */
struct packing {
    const char *folder;
    const struct source_beside *beside;
    struct source_shape *shape; /* or NULL */
};

/* Adds the pack of file `number`, unless the file has no rows, as a part that a job of another
 * system found nothing for, or its mark _SUCCESS. */
static int pack_next(const struct packing *packing, const struct source_options *options,
                     const char *path, uint32_t number, struct pack_list *list) {
    struct source_options reading = *options;
    struct table *shorter = NULL;
    source_beside_name(packing->beside, number, &reading);
    reading.streams = source_is_stream(path);
    /* The writer of a pipe without rows may have failed. */
    reading.may_be_empty = options->may_be_empty && !reading.streams;
    const struct source_shape *shape = packing->shape;
    if (shape && !shape->table) { /* the first file, whose table those after it get */
        reading.table.order = order_for(&reading, options->table.order, path);
    } else {
        if (shape) {
            reading.table.known = shape->table;
            reading.label.column = NULL;
        }
        shorter = dataset_table_for(&reading, path);
        if (shorter)
            reading.table.known = shorter;
    }
    assert(list->count <= number);
    int code = pack_one(&reading, packing->folder, path, &list->packs[list->count]);
    table_free(shorter);
    if (code || !list->packs[list->count])
        return code;
    list->count++;
    if (packing->shape)
        code = take_shape(packing->shape, list->packs, list->count - 1);
    return code;
}

static int pack_all(const struct packing *packing, const struct source_options *options,
                    char *const *paths, struct pack_list *list) {
    uint32_t count = names_count(paths);
    struct source_options reading = *options;
    reading.may_be_empty = count > 1; /* one alone is refused by whoever reads it */
    list->packs = memory_new(count, sizeof(struct pack *));
    int code = 0;
    for (uint32_t i = 0; i < count && !code; i++)
        code = pack_next(packing, &reading, paths[i], i, list);
    return !code && count && !list->count ? dataset_refuse_empty(paths) : code;
}

/* `fold` is 0 for none. */
static struct holdout_pick fold_of(const struct job *job, uint32_t fold) {
    assert(fold <= job->folds);
    return (struct holdout_pick){.share = job_holdout_share(job),
                                 .folds = fold ? job->folds : 0,
                                 .fold = fold,
                                 .seed = job->seed};
}

static int merge(const struct job *job, const char *folder, const struct pack_list *data,
                 const struct pack_list *held_out, uint32_t fold, struct set **set) {
    int64_t start = clock_monotonic_ns();
    bool made = false;
    /* The most rows of a chunk of which a minibatch has a multiple; 0 for auto. */
    uint32_t block_rows = job->downpour.batch ? SET_BLOCK_ROWS : 0;
    while (block_rows && job->downpour.batch % block_rows)
        block_rows /= 2;
    struct set_options options = {.labels = objective_of(job->objective)->labels,
                                  .positive = job->positive,
                                  .order = (const char *const *)job->order,
                                  .separator = job->source.label.separator,
                                  .class_weight = (const char *const *)job->class_weight,
                                  .holdout = job_holdout_share(job),
                                  .fold = fold_of(job, fold),
                                  .holdout_packs = held_out->packs,
                                  .holdout_count = held_out->count,
                                  .keep_holdout =
                                      job->early_stopping > 0 || job_has_minibatches(job),
                                  .shuffled = job_has_minibatches(job),
                                  .shuffle_seed = job->downpour.seed,
                                  .block_rows = block_rows,
                                  .chunks_least = job_steps_least(job),
                                  .category_least = job->category_least,
                                  .text_values = job->text_values,
                                  .bins = job->bins,
                                  .monotone = (const char *const *)job->monotone,
                                  .cross = (const char *const *)job->cross,
                                  .cross_least = job->cross_least,
                                  .centred = job_may_centre(job),
                                  .threads = threads_here()};
    tiling_of(job, &options);
    int code = set_of_packs(folder, data->packs, data->count, &options, set, &made);
    if (!code && made)
        log_info("merged %u pack%s in %.2f s into %s", data->count, data->count == 1 ? "" : "s",
                 seconds_since(start), set_path(*set));
    return code;
}

/* The packs become the holdout's own. */
static struct holdout *take_holdout(struct pack_list *packs, const struct holdout_pick *pick) {
    if (!packs->count)
        return NULL;
    struct holdout *holdout = holdout_new(packs->packs, packs->count, pick);
    packs->count = 0;
    return holdout;
}

static void take_sources(const struct pack_list *list, enum dataset_use use,
                         struct dataset_sources *sources) {
    sources->items =
        memory_resize(sources->items, sources->count + list->count, sizeof *sources->items);
    for (uint32_t i = 0; i < list->count; i++) {
        struct dataset_source *source = &sources->items[sources->count++];
        struct source_report report;
        pack_report(list->packs[i], &report);
        *source = (struct dataset_source){.path = memory_copy_string(pack_source(list->packs[i])),
                                          .bytes = report.bytes,
                                          .rows = report.rows,
                                          .use = use};
        memcpy(source->content, report.hash, sizeof source->content);
        snprintf(source->fingerprint, sizeof source->fingerprint, "%s",
                 pack_fingerprint(list->packs[i]));
        source_report_release(&report);
    }
}

/* Copies may be meant: their owner is told. Those that are not trained on stand last. */
static void warn_of_copies(const struct dataset_sources *sources) {
    for (uint32_t i = 1; i < sources->count; i++)
        for (uint32_t j = 0; j < i && sources->items[j].use == USE_TRAINING; j++) {
            const struct dataset_source *one = &sources->items[j], *other = &sources->items[i];
            if (strcmp(one->content, other->content) || !strcmp(one->path, other->path))
                continue;
            if (other->use == USE_TRAINING)
                log_warning("%s has the same content as %s: their rows count twice", other->path,
                            one->path);
            else
                log_warning(
                    "%s has the same content as %s, which is trained on: figures on it say little "
                    "about other rows",
                    other->path, one->path);
            break;
        }
}

/* ---- labels that may be meant as numbers ---- */

/* So many classes may well be prices or shares of something. */
#define AMOUNTS_LEAST 10
#define AMOUNTS_SHARE 0.9

/* Where there are so many classes, with fewer rows each on average, hardly any can be learned. */
#define CLASSES_MANY 20
#define ROWS_A_CLASS 10

/* Training on numbers as classes takes long and learns nothing. They may be meant so. */
static void warn_of_classes(const struct job *job, const struct set_info *info) {
    const char *amount = NULL; /* the first class that is written as an amount */
    char column[COLUMN_TEXT] = "the column of labels";
    uint32_t numbers = 0;
    double value;
    if (info->labels != LABEL_CLASSES)
        return;
    for (uint32_t k = 0; k < info->classes; k++) {
        const char *text = info->class_names[k];
        bool plain = number_of_text(text, &value);
        bool formatted =
            !plain && (number_of_amount(text, '.', &value) || number_of_amount(text, ',', &value));
        numbers += plain || formatted;
        if (formatted && !amount)
            amount = text;
    }
    const bool are_numbers = numbers >= AMOUNTS_SHARE * info->classes;
    if (info->table)
        table_describe(info->table, table_find_kind(info->table, COLUMN_LABEL), column);
    if (amount && are_numbers && info->classes >= AMOUNTS_LEAST)
        log_warning("%s: %u of %u classes are numbers, such as \"%s\", and classes have no order: "
                    "to predict numbers, list %s in csv.amounts and set objective = squared",
                    job->file, numbers, info->classes, amount, column);
    else if (info->classes >= CLASSES_MANY && info->rows / ROWS_A_CLASS < info->classes)
        log_warning("%s: there are %u classes in %llu rows, and hardly anything can be learned of "
                    "a class from a few rows: %s",
                    job->file, info->classes, (unsigned long long)info->rows,
                    are_numbers ? "as they are numbers, set objective = squared"
                                : "join classes, or check that csv.label names the right column");
}

void dataset_add_source(struct dataset_sources *sources, const struct dataset_source *source) {
    sources->items = memory_resize(sources->items, sources->count + 1, sizeof *sources->items);
    sources->items[sources->count] = *source;
    sources->items[sources->count++].path = memory_copy_string(source->path);
}

void dataset_sources_release(struct dataset_sources *sources) {
    for (uint32_t i = 0; i < sources->count; i++)
        free(sources->items[i].path);
    free(sources->items);
    source_shape_release(&sources->shape);
    *sources = (struct dataset_sources){0};
}

void dataset_release(struct dataset *data) {
    dataset_sources_release(&data->sources);
    holdout_free(data->test);
    holdout_free(data->holdout);
    set_close(data->set);
    *data = (struct dataset){0};
}

/* ---- labels that a loss does not allow ---- */

struct label_search {
    const struct objective *objective;
    const char *source;
};

static int find_label(void *context, const struct source_rows *rows) {
    const struct label_search *search = context;
    for (uint32_t i = 0; i < rows->count; i++) {
        double label = rows->label[i];
        if (isnan(label) || (rows->weight && rows->weight[i] == 0) ||
            search->objective->label_fits(label))
            continue;
        return error_set(ERROR_DATA,
                         "%s: row %llu: the label is %g; objective = %s needs %s: leave the row "
                         "out, or take another objective",
                         search->source, (unsigned long long)(rows->first_line + i), label,
                         search->objective->name, search->objective->label_allowed);
    }
    return 0;
}

/* Looks at all rows, also at those held out, so that none is left for the end of the training. */
static int check_labels(const struct job *job, const struct pack_list *list) {
    const struct objective *objective = objective_of(job->objective);
    int code = 0;
    for (uint32_t i = 0; objective->label_fits && i < list->count && !code; i++) {
        double least, most;
        pack_labels(list->packs[i], &least, &most);
        struct label_search search = {objective, pack_source(list->packs[i])};
        if (least <= most && !(objective->label_fits(least) && objective->label_fits(most)))
            code = pack_read(list->packs[i], find_label, &search);
    }
    return code;
}

/* The packs of a job, by purpose. */
struct packs {
    struct pack_list data, held_out, test;
};

static int pack_data(const struct packing *packing, const struct source_options *options,
                     const struct job *job, char *const *paths, struct pack_list *list) {
    int code = pack_all(packing, options, paths, list);
    const struct source_shape *shape = packing->shape;
    if (!code && shape->format != FORMAT_AUTO && !source_is_table(shape->format))
        code = job_check_columns(job);
    if (!code && shape->format != FORMAT_AUTO && !source_is_table(shape->format))
        job_warn_of_csv(job, source_format_names[shape->format]);
    if (!code && shape->table && options->table.adds_columns)
        code = dataset_check_lists(job, shape->table);
    if (!code && shape->table)
        code = dataset_check_crosses(job, shape->table, NULL);
    if (!code && shape->table)
        dataset_warn_of_lacking(shape->table, list->packs, list->count);
    return code;
}

/* All files are read and checked before training, so that a bad file is found at once. */
static int pack_files(const struct job *job, const struct table *order, const char *folder,
                      const struct dataset_paths *paths, struct packs *packs,
                      struct source_shape *shape) {
    struct source_options data = job->source;
    dataset_choose_missing(&data, names_count(paths->data));
    data.table.order = order;
    struct packing packing = {folder, &paths->beside_data, shape};
    int code = pack_data(&packing, &data, job, paths->data, &packs->data);
    struct source_options alike = source_options_alike(&data, shape);
    alike.table.adds_columns = false;
    alike.table.order = NULL;
    alike.property.column[ROW_CLUSTER] = NULL; /* errors are those of training rows */
    packing = (struct packing){folder, &paths->beside_holdout, NULL};
    if (!code)
        code = pack_all(&packing, &alike, paths->holdout, &packs->held_out);
    packing.beside = &paths->beside_test;
    if (!code)
        code = pack_all(&packing, &alike, paths->test, &packs->test);
    const struct pack_list *lists[] = {&packs->data, &packs->held_out, &packs->test};
    for (int i = 0; i < 3 && !code; i++)
        code = check_labels(job, lists[i]);
    return code;
}

static int take_packs(const struct job *job, const char *folder, struct packs *packs,
                      struct dataset *data) {
    int code = merge(job, folder, &packs->data, &packs->held_out, 0, &data->set);
    if (code)
        return code;
    take_sources(&packs->data, USE_TRAINING, &data->sources);
    take_sources(&packs->held_out, USE_HOLDOUT, &data->sources);
    take_sources(&packs->test, USE_TEST, &data->sources);
    warn_of_copies(&data->sources);
    warn_of_classes(job, set_info(data->set));
    struct holdout_pick pick = {.share = job_holdout_share(job)};
    data->holdout =
        pick.share > 0 ? take_holdout(&packs->data, &pick) : take_holdout(&packs->held_out, NULL);
    data->test = take_holdout(&packs->test, NULL);
    return 0;
}

static void packs_release(struct packs *packs) {
    list_release(&packs->data);
    list_release(&packs->held_out);
    list_release(&packs->test);
}

static int open_packs(const char *folder, const struct dataset_sources *sources,
                      struct packs *packs, struct source_shape *shape) {
    struct pack_list *const of_use[] = {
        [USE_TRAINING] = &packs->data, [USE_HOLDOUT] = &packs->held_out, [USE_TEST] = &packs->test};
    int code = 0;
    for (uint32_t i = 0; !code && i < sources->count; i++) {
        const struct dataset_source *source = &sources->items[i];
        struct pack_list *list = of_use[source->use];
        struct pack *pack = NULL;
        char *path = memory_format("%s/%s.pack", folder, source->fingerprint);
        code = pack_open(path, &pack);
        free(path);
        if (code)
            break;
        list->packs = memory_resize(list->packs, list->count + 1, sizeof(struct pack *));
        list->packs[list->count++] = pack;
    }
    assert(code || packs->data.count + packs->held_out.count + packs->test.count == sources->count);
    for (uint32_t i = 0; !code && i < packs->data.count; i++)
        code = take_shape(shape, packs->data.packs, i);
    return code;
}

int dataset_recall(const struct job *job, const struct dataset_sources *sources,
                   struct dataset *data) {
    char *folder = memory_format("%s/packs", job->state);
    struct packs packs = {0};
    *data = (struct dataset){0};
    int code = open_packs(folder, sources, &packs, &data->sources.shape);
    if (!code)
        code = take_packs(job, folder, &packs, data);
    packs_release(&packs);
    free(folder);
    return code;
}

int dataset_open_fold(const struct job *job, const struct dataset_sources *sources, uint32_t fold,
                      struct dataset *data) {
    int64_t start = clock_monotonic_ns();
    char *folder = memory_format("%s/packs", job->state);
    struct holdout_pick pick = fold_of(job, fold);
    struct packs packs = {0};
    assert(fold > 0);
    *data = (struct dataset){0};
    int code = open_packs(folder, sources, &packs, &data->sources.shape);
    if (!code)
        code = merge(job, folder, &packs.data, &packs.held_out, fold, &data->set);
    if (!code)
        data->holdout = take_holdout(&packs.data, &pick);
    for (uint32_t i = 0; i < sources->count; i++)
        dataset_add_source(&data->sources, &sources->items[i]);
    data->seconds = seconds_since(start);
    packs_release(&packs);
    free(folder);
    return code;
}

int dataset_check_folds(const struct job *job, const struct dataset_sources *sources) {
    enum label_kind labels = objective_of(job->objective)->labels;
    if (!job->folds || labels == LABEL_TARGET)
        return 0;
    char *folder = memory_format("%s/packs", job->state);
    struct holdout_pick pick = fold_of(job, 1);
    struct source_shape shape = {0};
    struct packs packs = {0};
    int code = open_packs(folder, sources, &packs, &shape);
    if (!code)
        code = folds_check(packs.data.packs, packs.data.count, &pick, labels == LABEL_BINARY);
    source_shape_release(&shape);
    packs_release(&packs);
    free(folder);
    return code;
}

int dataset_open(const struct job *job, const struct table *order, struct dataset *data) {
    int64_t start = clock_monotonic_ns();
    *data = (struct dataset){0};
    struct dataset_paths paths = {0};
    struct packs packs = {0};
    char *folder = memory_format("%s/packs", job->state);
    int code = dataset_find(job, order, &paths);
    if (!code)
        code = dataset_make_state(job);
    if (!code)
        code = folder_make(folder, 0700);
    if (!code)
        code = stale_files_remove(job->state);
    if (!code)
        code = pack_files(job, order, folder, &paths, &packs, &data->sources.shape);
    if (!code)
        code = take_packs(job, folder, &packs, data);
    packs_release(&packs);
    data->seconds = seconds_since(start);
    dataset_paths_release(&paths);
    free(folder);
    return code;
}
