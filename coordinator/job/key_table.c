#include "coordinator/job/key.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "device/find.h"
#include "base/limits.h"
#include "base/text.h"
#include "coordinator/job/column_rules.h"
#include "coordinator/job/gate.h"
#include "coordinator/job/host_list.h"
#include "data/text/date.h"
#include "data/set/set.h"
#include "wire/address.h"

static bool is_file_name(const char *text) {
    return !strchr(text, '/') && strcmp(text, ".") && strcmp(text, "..");
}

static bool is_absolute(const char *text) {
    return text[0] == '/';
}

static bool is_host_and_port(const char *text) {
    const char *colon = strrchr(text, ':');
    if (!colon || colon == text || !colon[1] || strlen(colon + 1) > 5 || !strncmp(text, "tls:", 4))
        return false;
    return strspn(colon + 1, "0123456789") == strlen(colon + 1) && atoi(colon + 1) <= 65535;
}

static bool is_address(const char *text) {
    if (strncmp(text, "unix:", 5) == 0)
        return text[5] != '\0';
    bool marked = strncmp(text, "tls:", 4) == 0 || address_is_name(text);
    return is_host_and_port(marked ? text + 4 : text);
}

static bool is_holdout(const char *text) {
    double share;
    const size_t digits = strspn(text, "0123456789. ");
    const bool percentage = digits && strcmp(text + digits, "%") == 0;
    return key_number(text, &share) ? share > 0 && share < 1 : !percentage;
}

/* A figure that says which of two models is the better one. */
static bool is_directed(const char *text) {
    const struct score_figure *figure = score_figure_find(text);
    return figure && figure->better != SCORE_NEITHER;
}

static const char *figure_suggestion(const char *text) {
    return score_figure_find(text) ? "" : score_figure_suggestion(text);
}

static bool is_class_weight(const char *text) {
    size_t length;
    double weight;
    return !strcmp(text, CLASS_WEIGHT_BALANCED) || class_weight_parse(text, &length, &weight);
}

static bool is_cross(const char *text) {
    return !strcmp(text, CROSS_PAIRS) || strchr(text, '*');
}

static bool is_monotone(const char *text) {
    size_t length;
    enum monotone monotone;
    return monotone_parse(text, &length, &monotone);
}

static bool is_device(const char *text) {
    struct device_choice choice;
    return *text && device_choice_read(text, &choice);
}

static bool is_plugin_text(const char *text) {
    return strlen(text) < PLUGIN_TEXT_MAX;
}

static bool is_sha256(const char *text) {
    return strlen(text) == SHA256_TEXT - 1 && strspn(text, "0123456789abcdef") == SHA256_TEXT - 1;
}

static bool is_separator(const char *text) {
    return text[0] && !text[1] && !isalnum((unsigned char)text[0]) &&
           !strchr("+-.:#\"'\\", text[0]);
}

static bool is_delimiter(const char *text) {
    return !strcmp(text, "tab") ||
           (text[0] > ' ' && text[0] < 127 && !text[1] && !isalnum((unsigned char)text[0]) &&
            !strchr("+-.#\"'\\", *text));
}

static bool is_comment(const char *text) {
    return text[0] > ' ' && text[0] < 127 && !text[1] && !isalnum((unsigned char)text[0]) &&
           !strchr("\"'", text[0]);
}

static bool is_decimal(const char *text) {
    return !strcmp(text, ".") || !strcmp(text, ",");
}

static const char *const headers[] = {"auto", "yes", "no", NULL};
static const char *const missing_columns[] = {"auto", "error", "missing", NULL};
static const char *const losses[] = {
#define OBJECTIVE(NAME, name) #name,
#include "objective/objectives.def"
    NULL};
static const char *const objectives[] = {
#define OBJECTIVE(NAME, name) #name,
#include "objective/objectives.def"
    "network", "plugin", NULL};

/* What other programs call the losses, beside what may be misspelt. */
static const char *objective_suggestion(const char *text) {
    static const struct other_word others[] = {
        {"linear", "squared"},     {"regression", "squared"}, {"mse", "squared"},
        {"logit", "logistic"},     {"binary", "logistic"},    {"multinomial", "softmax"},
        {"multiclass", "softmax"}, {"ovr", "one_vs_rest"},    {"svm", "squared_hinge"},
        {"count", "poisson"},      {"mlp", "network"},        {"ordered", "ordinal"},
    };
    struct nearest nearest = {.text = text};
    for (const char *const *word = objectives; *word; word++)
        nearest_offer(&nearest, *word);
    nearest_offer_others(&nearest, others, sizeof others / sizeof *others);
    return nearest_suggestion(&nearest, "");
}

static const char *const activations[] = {"tanh", "relu", "gelu", NULL};
static const char *const precisions[] = {"double", "float", NULL};
static const char *const history_types[] = {"float", "double", NULL};
static const char *const preconditions[] = {"auto", "none", "block", "diagonal", "kronecker", NULL};
static const char *const summaries[] = {"none", "model", "robust", NULL};
static const char *const optimizers[] = {"lbfgs", "downpour", NULL};
static const char *const starts[] = {"zero", "downpour", NULL};
static const char *const devices[] = {"cpu", "cuda", "emulated", NULL};
static const char *const choose[] = {"best", "one_se", NULL};
static const char *const publishing[] = {"auto", "always", "never", NULL};
static const char *const vanished[] = {"drop", "keep", NULL};

_Static_assert(CSV_HEADER_AUTO == 0 && CSV_HEADER_YES == 1 && CSV_HEADER_NO == 2, "as `headers`");
_Static_assert(MISSING_COLUMNS_AUTO == 0 && MISSING_COLUMNS_ERROR == 1 &&
                   MISSING_COLUMNS_MISSING == 2,
               "as `missing_columns`");
_Static_assert(CALIBRATION_NONE == 0, "as `calibration_names`");
_Static_assert(VANISHED_DROP == 0 && VANISHED_KEEP == 1, "as `vanished`");
_Static_assert(PRECONDITION_AUTO == 0 && PRECONDITION_OFF == 1 && PRECONDITION_BLOCK == 2 &&
                   PRECONDITION_DIAGONAL == 3 && PRECONDITION_KRONECKER == 4,
               "as `preconditions`");
_Static_assert(JOB_SUMMARY_NONE == 0 && JOB_SUMMARY_MODEL == 1 && JOB_SUMMARY_ROBUST == 2,
               "as `summaries`");
_Static_assert(JOB_LBFGS == 0 && JOB_DOWNPOUR == 1, "as `optimizers`");
_Static_assert(JOB_START_ZERO == 0 && JOB_START_DOWNPOUR == 1, "as `starts`");
_Static_assert(JOB_CHOOSE_BEST == 0 && JOB_CHOOSE_ONE_SE == 1, "as `choose`");
_Static_assert(JOB_PUBLISH_AUTO == 0 && JOB_PUBLISH_ALWAYS == 1 && JOB_PUBLISH_NEVER == 2,
               "as `publishing`");
_Static_assert(TRAINS_PLUGIN == TRAINS_NETWORK + 1, "as `objectives`");
_Static_assert(sizeof objectives / sizeof *objectives == TRAINS_PLUGIN + 2, "as `objectives`");
_Static_assert(ACTIVATION_TANH == 0 && ACTIVATION_RELU == 1 && ACTIVATION_GELU == 2,
               "as `activations`");
_Static_assert(PRECISION_DOUBLE == 0 && PRECISION_FLOAT == 1, "as `precisions`");
_Static_assert(HISTORY_FLOAT == 0 && HISTORY_DOUBLE == 1, "as `history_types`");

#define UNITS_MAX 65536              /* of a layer */
#define COUNT_MAX 9007199254740992.0 /* 2^53: every whole number up to it is a double */
#define PATHS "a path or glob, or a list of them"
#define ADDRESSES "unix:PATH, HOST:PORT or tls:HOST:PORT, or a list of them"
#define REPLICAS "unix:PATH, HOST:PORT, tls:HOST:PORT or dns:NAME:PORT, or a list of them"
#define DEVICES "cpu, cuda, cuda:N (N: the number of the GPU, from 0), or emulated"
#define HOSTS                                                                                      \
    "local, slurm, or a list of names of hosts (letters, digits, . _ and -, not - at the start), " \
    "each optionally followed by :THREADS from 1 to 256"
#define LAUNCH                                                                                     \
    "a command with %h, which stands for the host (%c for its threads, %% for %); blanks "         \
    "separate words, except in quotes"

#define AT(field) .offset = offsetof(struct job, field)
#define RANGE(low, high) .least = (low), .most = (high)
#define WORD(text, value) .word = (text), .word_value = (value)
#define CHANGES .may_change = true
#define OF_NETWORKS .objectives = 1u << TRAINS_NETWORK
#define OF_PLUGINS .objectives = 1u << TRAINS_PLUGIN
#define OF_DOWNPOUR .downpour = true
#define VALUES(most) .values_max = (most)

/* clang-format off */
const struct key keys[] = {
    {"name", KEY_TEXT, AT(name), .fits = is_file_name, .allowed = "a name without /",
     .help = "the name of the job; by default that of the file without .conf"},
    {"state", KEY_TEXT, AT(state), .allowed = "the path of a folder", CHANGES,
     .help = "the state folder; by default NAME.state beside the job file"},
    {"data", KEY_LIST, AT(data), .allowed = PATHS,
     .help = "training data: CSV, JSON Lines, Parquet, LIBSVM, IDX, .npy or .npz, also .gz or "
             ".zst; relative to the job file; a folder means the files below it"},
    {"test", KEY_LIST, AT(test), .allowed = PATHS,
     .help = "data on which the model is evaluated at the end"},
    {"labels", KEY_LIST, AT(labels), .allowed = PATHS,
     .help = "for IDX, .npy and .npz: files with the labels, one for each file of data, in the "
             "same order"},
    {"test_labels", KEY_LIST, AT(test_labels), .allowed = PATHS,
     .help = "files with the labels of test"},
    {"holdout_labels", KEY_LIST, AT(holdout_labels), .allowed = PATHS,
     .help = "files with the labels of the files of holdout"},
    {"weights", KEY_LIST, AT(weights), .allowed = PATHS,
     .help = "files with a weight for each row, one for each file of data, in the same order"},
    {"test_weights", KEY_LIST, AT(test_weights), .allowed = PATHS,
     .help = "files with the weights of test"},
    {"holdout_weights", KEY_LIST, AT(holdout_weights), .allowed = PATHS,
     .help = "files with the weights of the files of holdout"},
    {"offset", KEY_TEXT, AT(source.property.column[ROW_OFFSET]),
     .allowed = "a column by name or by number from 1",
     .help = "the column whose number is added to the row's margin; it is not a feature"},
    {"exposure", KEY_TEXT, AT(source.property.column[ROW_EXPOSURE]),
     .allowed = "a column by name or by number from 1",
     .help = "the column whose number's logarithm is added to the row's margin; it is not a "
             "feature"},
    {"offsets", KEY_LIST, AT(offsets), .allowed = PATHS,
     .help = "files with an offset for each row, one for each file of data, in the same order"},
    {"test_offsets", KEY_LIST, AT(test_offsets), .allowed = PATHS,
     .help = "files with the offsets of test"},
    {"holdout_offsets", KEY_LIST, AT(holdout_offsets), .allowed = PATHS,
     .help = "files with the offsets of the files of holdout"},
    {"exposures", KEY_LIST, AT(exposures), .allowed = PATHS,
     .help = "files with an exposure for each row, one for each file of data, in the same order"},
    {"test_exposures", KEY_LIST, AT(test_exposures), .allowed = PATHS,
     .help = "files with the exposures of test"},
    {"holdout_exposures", KEY_LIST, AT(holdout_exposures), .allowed = PATHS,
     .help = "files with the exposures of the files of holdout"},
    {"class_weight", KEY_LIST, AT(class_weight), .fits = is_class_weight,
     .allowed = "balanced, or \"LABEL = WEIGHT\" or a list of them, with weights from 0 to 1e100",
     .help = "weights of classes, which multiply the weights of rows; other classes weigh 1"},
    {"format", KEY_CHOICE, AT(source.format), .choices = source_format_names, .initial = "auto",
     .help = "the format of the data; auto: detected from the content"},
    {"csv.header", KEY_CHOICE, AT(source.syntax.header), .choices = headers, .initial = "auto",
     .help = "whether the first line names the columns; auto: detected from the content"},
    {"csv.delimiter", KEY_TEXT, AT(source.syntax.delimiter), .fits = is_delimiter,
     .allowed = "tab, or one character: no letter, digit, blank, quote, and none of + - . #",
     .help = "the column separator; by default tab in a .tsv, otherwise the first of , ; tab and "
             "| in line 1"},
    {"csv.quote", KEY_CHOICE, AT(source.syntax.quote),
     .choices = source_quote_names, .initial = "auto",
     .help = "whether double quotes enclose fields; auto: they do, unless they enclose whole rows"},
    {"csv.comment", KEY_TEXT, AT(source.syntax.comment), .fits = is_comment,
     .allowed = "one character: no letter, digit, blank or quote",
     .help = "the character with which comment lines begin; by default there are none"},
    {"csv.decimal", KEY_TEXT, AT(source.syntax.decimal),
     .fits = is_decimal, .allowed = "\".\" or \",\"",
     .help = "the decimal point of numbers; by default \".\""},
    {"csv.folders", KEY_CHOICE, AT(source.folders.which), .choices = source_folders_names,
     .initial = "auto",
     .help = "which folders KEY=VALUE in paths are columns; auto: those whose values differ"},
    {"csv.label", KEY_TEXT, AT(source.label.column),
     .allowed = "a column by name or by number from 1",
     .help = "the column of the label; by default the last"},
    {"csv.skip", KEY_LIST, AT(source.table.skip), .allowed = "columns by name or by number from 1",
     .help = "columns to leave out"},
    {"csv.weight", KEY_TEXT, AT(source.property.column[ROW_WEIGHT]),
     .allowed = "a column by name or by number from 1",
     .help = "the column of the rows' weights; it is not a feature"},
    {"csv.numbers", KEY_LIST, AT(source.table.numbers),
     .allowed = "columns by name or by number from 1",
     .help = "columns that are numbers; by default detected from the content"},
    {"csv.amounts", KEY_LIST, AT(source.table.amounts),
     .allowed = "columns by name or by number from 1",
     .help = "columns of numbers written as amounts, such as $1,285.50, 12%, (45) or 45 €; may "
             "include the label"},
    {"csv.categories", KEY_LIST, AT(source.table.categories),
     .allowed = "columns by name or by number from 1",
     .help = "columns that are categories; by default detected from the content"},
    {"csv.text", KEY_LIST, AT(source.table.text), .allowed = "columns by name or by number from 1",
     .help = "columns of sentences; each word becomes a feature"},
    {"csv.text_values", KEY_CHOICE, AT(text_values), .choices = table_text_values,
     .initial = "tfidf",
     .help = "the value of a word: its tf-idf, its count in the text, or 1"},
    {"csv.ngrams", KEY_COUNT32, AT(source.words.ngrams), RANGE(1, NGRAMS_MAX), .initial = "1",
     .help = "the longest sequence of consecutive words that is a feature"},
    {"csv.lowercase", KEY_FLAG, AT(source.words.lowercase), .initial = "true",
     .help = "whether words are converted to lower case"},
    {"csv.word_least", KEY_COUNT32, AT(source.words.least),
     RANGE(1, WORD_LEAST_MAX), .initial = "2", .help = "the least number of letters of a word"},
    {"csv.word_characters", KEY_TEXT, AT(source.words.letters), .fits = word_characters_are_valid,
     .allowed = "characters such as \"'-\": at most 32, none of them a letter, a digit, _ or "
                "a blank",
     .help = "characters that belong to words besides letters, digits and _"},
    {"csv.dates", KEY_LIST, AT(source.table.dates),
     .allowed = "columns by name or by number from 1",
     .help = "columns of dates, which become year, month, weekday, hour and days since 1970"},
    {"csv.date_format", KEY_TEXT, AT(source.table.date_format), .fits = date_format_is_valid,
     .initial = DATE_FORMAT_ISO,
     .allowed = "iso, epoch, epoch_ms, or a format with %Y or %y, %m or %b, and usually %d, such "
                "as \"%d.%m.%Y %H:%M\"",
     .help = "how dates are written; iso: 2024-05-06, optionally with a time and a zone; epoch: "
             "seconds since 1970; epoch_ms: milliseconds"},
    {"csv.missing", KEY_LIST, AT(source.table.missing), .allowed = "words",
     .help = "words that stand for a missing field, besides an empty one; by default ?, NA and "
             "others"},
    {"csv.trim", KEY_FLAG, AT(source.table.trim), .initial = "true",
     .help = "whether blanks around the string of a category are ignored"},
    {"csv.hash", KEY_COUNT32, AT(source.table.hash_bits), RANGE(1, HASH_BITS_MAX), WORD("off", 0),
     .initial = "off",
     .help = "the number of bits to which levels of categories and words are hashed; no names "
             "are kept"},
    {"csv.category_least", KEY_COUNT32, AT(category_least), RANGE(1, 1e9), .initial = "1",
     .help = "levels of a category that fewer training rows have share one feature; such words "
             "are left out"},
    {"csv.bins", KEY_COUNT32, AT(bins), RANGE(2, 256), WORD("off", 0), .initial = "off",
     .help = "the number of bins, by quantiles, of each column of numbers; they are features "
             "beside the number"},
    {"cross", KEY_LIST, AT(cross), .fits = is_cross,
     .allowed = CROSS_PAIRS ", or columns of CSV with * between them, such as \"town*age\"",
     .help = "columns whose combinations of values are features; pairs: all pairs of categories "
             "and bins"},
    {"cross_least", KEY_COUNT32, AT(cross_least), RANGE(1, 1e9), .initial = "10",
     .help = "combinations that fewer training rows have are left out"},
    {"csv.positive", KEY_TEXT, AT(positive), .allowed = "a label as the data has it",
     .help = "which of two labels is the positive class; by default the larger one"},
    {"missing_columns", KEY_CHOICE, AT(source.table.missing_columns), .choices = missing_columns,
     .initial = "auto",
     .help = "how to treat a file that lacks a column; auto: missing if there are several files, "
             "otherwise error"},
    {"bad_lines", KEY_COUNT64, AT(source.bad_lines_max), RANGE(0, COUNT_MAX), .initial = "0",
     .help = "how many malformed lines of each file are skipped and reported; one more is an "
             "error"},
    {"objective", KEY_CHOICE, AT(trains), .choices = objectives, .initial = "logistic",
     .suggestion = objective_suggestion,
     .help = "the loss to minimise; network: network.loss with hidden layers; plugin: a loss of "
             "your own"},
#define LOSS_PARAMETER(KIND, kind, number, name, initial_, word_, low, high, text)                 \
    {#kind "." #name,   KEY_NUMBER,         AT(loss[OBJECTIVE_##KIND].value[number]),              \
     RANGE(low, high),  WORD(word_, 0),     .initial = initial_,                                   \
     .help = text,      .objectives = 1u << OBJECTIVE_##KIND},
#include "objective/objectives.def"
    {"ordinal.order", KEY_LIST, AT(order), .allowed = "labels, from low to high",
     .objectives = 1u << OBJECTIVE_ORDINAL | 1u << OBJECTIVE_PROPORTIONAL_ODDS,
     .help = "the order of the labels, if they are not numbers"},
    {"multilabel.separator", KEY_TEXT, AT(separator), .fits = is_separator, .initial = ",",
     .allowed = "one character that is no letter, digit or quote, and none of + - . : #",
     .objectives = 1u << OBJECTIVE_MULTILABEL, .help = "the separator between the labels of a row"},
    {"network.layers", KEY_COUNTS, AT(layers), RANGE(1, UNITS_MAX), VALUES(NETWORK_LAYERS_MAX),
     OF_NETWORKS, .initial = "100",
     .help = "the number of units of each hidden layer, from the features to the outputs"},
    {"network.activation", KEY_CHOICE, AT(network.activation), .choices = activations, OF_NETWORKS,
     .initial = "tanh", .help = "the activation function of the hidden layers"},
    {"network.loss", KEY_CHOICE, AT(network_loss), .choices = losses, OF_NETWORKS,
     .initial = "softmax", .help = "the loss of the outputs"},
    {"network.seed", KEY_COUNT64, AT(network.seed), RANGE(0, COUNT_MAX), OF_NETWORKS,
     .initial = "1", .help = "the seed of the random weights from which the training starts"},
    {"network.precision", KEY_CHOICE, AT(network.precision), .choices = precisions, OF_NETWORKS,
     .initial = "double", .help = "the precision in which layers are computed; float is faster"},
    {"plugin.library", KEY_TEXT, AT(plugin.library), .fits = is_plugin_text, CHANGES, OF_PLUGINS,
     .allowed = "the path of a shared library, at most 4095 bytes",
     .help = "the library, built with dml/objective.h; relative to the job file"},
    {"plugin.options", KEY_TEXT, AT(plugin.options), .fits = is_plugin_text, OF_PLUGINS,
     .allowed = "a string of at most 4095 bytes", .help = "a string that is passed to the library"},
    {"plugin.sha256", KEY_TEXT, AT(plugin.sha256), .fits = is_sha256, OF_PLUGINS,
     .allowed = "64 hexadecimal digits, in lower case",
     .help = "the SHA-256 that the library must have; by default its SHA-256 at the start"},
    {"plugin.seconds", KEY_NUMBER, AT(plugin.seconds), RANGE(0.01, 1e6), CHANGES, OF_PLUGINS,
     .initial = "60", .help = "how long the library may take to start or to compute a chunk"},
    {"plugin.seed", KEY_COUNT64, AT(plugin.seed), RANGE(0, COUNT_MAX), OF_PLUGINS, .initial = "1",
     .help = "the seed of parameters that start at random"},
    {"l2", KEY_NUMBERS, AT(l2), RANGE(0, PENALTY_MAX), WORD("auto", NAN), .initial = "auto",
     .initial_network = "1e-4",
     .help = "adds l2/2 times the squared norm of the weights to the mean loss; a list is a "
             "path; auto: 1/(sum of the rows' weights) in the labels' unit, or 0 with l1"},
    {"l1", KEY_NUMBERS, AT(l1), RANGE(0, PENALTY_MAX), .initial = "0",
     .help = "adds l1 times the sum of the weights' absolute values, which makes many weights "
             "zero"},
    {"penalty", KEY_LIST, AT(penalty), .fits = penalty_rule_fits, .allowed = PENALTY_RULE_ALLOWED,
     .help = "factors of l2 and l1 for the weights of a column; 0: no penalty"},
    {"bounds", KEY_LIST, AT(bounds), .fits = bounds_rule_fits, .allowed = BOUNDS_RULE_ALLOWED,
     .help = "the least and the largest values that weights of a column may have"},
    {"monotone", KEY_LIST, AT(monotone), .fits = is_monotone,
     .allowed = "\"COLUMN = rising\" or \"COLUMN = falling\", or a list of them; COLUMN is a name, "
                "or a number from 1",
     .help = "columns of numbers, in bins, with which predictions only rise or only fall"},
    {"intercept", KEY_FLAG, AT(intercept), .initial = "true",
     .help = "whether the model has an intercept; it is never regularised"},
    {"standardise", KEY_FLAG, AT(standardise), .initial = "false",
     .help = "trains on columns of mean 0 and deviation 1; the weights in the model are for the "
             "columns as they are"},
    {"history", KEY_COUNT32, AT(history), RANGE(1, HISTORY_MAX), WORD("auto", 0),
     .initial = "auto",
     .help = "the number of curvature pairs kept; auto: depends on the shape of the data"},
    {"history_type", KEY_CHOICE, AT(history_type), .choices = history_types, .initial = "float",
     .help = "how curvature pairs are stored"},
    {"directions", KEY_COUNT32, AT(directions), RANGE(0, DIRECTIONS_MAX),
     WORD("auto", DIRECTIONS_AUTO), .initial = "auto",
     .help = "the number of directions over which a step of a linear model minimises at once; 0: "
             "a line search; auto: depends on the shape of the data"},
    {"strip_columns", KEY_COUNT32, AT(strip_columns), RANGE(0, FEATURES_MAX),
     WORD("auto", STRIP_COLUMNS_AUTO), .initial = "auto",
     .help = "how many columns of a linear model or of a network's first layer a replica holds "
             "at a time, if the data has more; 0: all; auto: 2097152, if the data has more than "
             "twice as many"},
    {"precondition", KEY_CHOICE, AT(precondition), .choices = preconditions, .initial = "auto",
     .help = "the preconditioner of L-BFGS: the Hessian of a sample of the rows, or the scales "
             "of the columns"},
    {"precondition_block", KEY_COUNT32, AT(precondition_block),
     RANGE(1, PRECONDITION_BLOCK_MAX), .initial = "1024",
     .help = "the most parameters that the Hessian of a block may have"},
    {"summary", KEY_CHOICE, AT(summary), .choices = summaries, .initial = "none",
     .help = "standard errors of the estimates of a linear model; robust: also errors that do "
             "not assume that the model holds"},
    {"summary_columns", KEY_LIST, AT(summary_columns),
     .allowed = "names of columns as `summary` prints them, or patterns such as region=*",
     .help = "the columns whose estimates have errors, in a model of any size; by default all"},
    {"summary_cluster", KEY_TEXT, AT(source.property.column[ROW_CLUSTER]),
     .allowed = "a column by name or by number from 1",
     .help = "the column of clusters, whose rows need not be independent; it is not a feature"},
    {"optimizer", KEY_CHOICE, AT(optimizer), .choices = optimizers, .initial = "lbfgs",
     .help = "how the loss is minimised: by L-BFGS on all rows, or by Adagrad on minibatches "
             "alone"},
    {"start", KEY_CHOICE, AT(start), .choices = starts, .initial = "zero",
     .help = "what comes before L-BFGS; downpour: epochs of minibatches with Adagrad"},
    {"downpour.epochs", KEY_COUNT32, AT(downpour.epochs), RANGE(1, DOWNPOUR_EPOCHS_MAX),
     CHANGES, OF_DOWNPOUR, .initial = "3",
     .help = "how many times minibatches go through all rows"},
    {"downpour.batch", KEY_COUNT32, AT(downpour.batch),
     RANGE(DOWNPOUR_BATCH_MIN, DOWNPOUR_BATCH_MAX), .multiple = DOWNPOUR_BATCH_MIN,
     WORD("auto", 0), OF_DOWNPOUR, .initial = "auto",
     .help = "the rows of a minibatch; auto: depends on the number of rows"},
    {"downpour.schedule", KEY_COUNTS, AT(downpour.schedule), RANGE(1, 65536), VALUES(LIST_MAX),
     OF_DOWNPOUR, .initial = "1",
     .help = "a factor by which batch is multiplied; a list: by epoch, the last for all later "
             "epochs"},
    {"downpour.rate", KEY_SERIES, AT(downpour.rate), RANGE(1e-12, 1e6), VALUES(LIST_MAX),
     OF_DOWNPOUR, .initial = "0.05",
     .help = "the learning rate of Adagrad; a list: by epoch, the last for all later epochs"},
    {"downpour.seed", KEY_COUNT64, AT(downpour.seed), RANGE(0, COUNT_MAX), OF_DOWNPOUR,
     .initial = "1", .help = "the seed of the order of the rows"},
    {"gradient_tolerance", KEY_NUMBER, AT(gradient_tolerance), RANGE(0, NUMBER_MAX), CHANGES,
     .tells = true, .initial = "1e-5",
     .help = "stop when no component of the gradient is larger than this"},
    {"loss_tolerance", KEY_NUMBER, AT(loss_tolerance), RANGE(0, 1), CHANGES, .tells = true,
     .initial = "1e-9",
     .help = "stop when the relative decrease of the loss over 10 steps is smaller than this; 0: "
             "never"},
    {"gap_tolerance", KEY_NUMBER, AT(gap_tolerance), RANGE(0, 1), CHANGES, .tells = true,
     .initial = "1e-6",
     .help = "converged when the loss is estimated to be at most this share of itself above its "
             "minimum"},
    {"max_steps", KEY_COUNT64, AT(max_steps), RANGE(0, COUNT_MAX), CHANGES, .initial = "1000",
     .help = "stop after this many steps, including those before an interruption"},
    {"max_seconds", KEY_NUMBER, AT(max_seconds), RANGE(0, NUMBER_MAX),
     WORD("unlimited", INFINITY), CHANGES, .initial = "unlimited",
     .help = "stop after this time, including the time before an interruption"},
    {"replicas", KEY_COUNT32, AT(replicas), RANGE(1, REPLICAS_MAX), WORD("auto", 0), CHANGES,
     .initial = "auto", .help = "processes that compute gradients; auto: depends on the machine"},
    {"shards", KEY_COUNT32, AT(shards), RANGE(1, SHARDS_MAX), WORD("auto", 0),
     .initial = "auto", .help = "processes that hold the parameters; auto: depends on the machine"},
    {"threads", KEY_COUNT32, AT(threads), RANGE(1, THREADS_MAX), WORD("auto", 0), CHANGES,
     .initial = "auto", .help = "threads of a replica; auto: depends on the machine"},
    {"device", KEY_TEXT, AT(device), .fits = is_device, .allowed = DEVICES,
     .choices = devices, WORD("auto", 0), CHANGES, .initial = "auto",
     .help = "what shards and replicas compute on; auto: a GPU that was checked, if it is worth "
             "it"},
    {"portion_chunks", KEY_COUNT32, AT(portion_chunks), RANGE(0, FEATURES_MAX), WORD("auto", 0),
     CHANGES, .initial = "auto",
     .help = "chunks given to a replica at a time; auto or 0: adapted during the run"},
    {"checkpoint_seconds", KEY_NUMBER, AT(checkpoint_seconds), RANGE(0, 1e6), CHANGES,
     .initial = "10",
     .help = "seconds between checkpoints, the most work that a power cut costs; 0: every step"},
    {"reconnect_seconds", KEY_COUNT32, AT(reconnect_seconds), RANGE(0, 1e6), CHANGES,
     .initial = "30",
     .help = "how many seconds workers wait for the next coordinator when theirs is lost"},
    {"scratch", KEY_TEXT, AT(scratch), .fits = is_absolute, .allowed = "an absolute path", CHANGES,
     .help = "a folder on the local disk of each host, where replicas keep a copy of their chunks"},
    {"flush_ms", KEY_COUNT32, AT(flush_ms), RANGE(1, 1e6), CHANGES, .initial = "1000",
     .help = "how many milliseconds a replica adds up gradients before it sends them"},
    {"shard_addresses", KEY_LIST, AT(shard_addresses), .fits = is_address, .allowed = ADDRESSES,
     CHANGES, .help = "shards that were started by hand; the coordinator then starts none"},
    {"replica_addresses", KEY_LIST, AT(replica_addresses), .fits = is_address, .allowed = REPLICAS,
     CHANGES,
     .help = "replicas that were started by hand, or names that list them; the coordinator then "
             "starts none"},
    {"hosts", KEY_LIST, AT(hosts), .fits = host_list_fits, .allowed = HOSTS, CHANGES,
     .help = "hosts on which workers are started, each optionally with :THREADS; by default this "
             "one"},
    {"launch", KEY_TEXT, AT(launch), .fits = launch_fits, .allowed = LAUNCH, CHANGES,
     .help = "the command that starts a worker on a host; by default ssh, or srun for slurm"},
    {"backup_copies", KEY_FLAG, AT(backup_copies), CHANGES, .initial = "true",
     .help = "whether portions of a slow replica are also given to a faster one"},
    {"holdout", KEY_LIST, AT(holdout), .fits = is_holdout, .initial_network = "0.1",
     .allowed = "a share of the rows between 0 and 1, like 0.1, or " PATHS,
     .help = "rows on which the model is evaluated and not trained: a share of the data, or files"},
    {"folds", KEY_COUNT32, AT(folds), RANGE(2, FOLDS_MAX), WORD("off", 0), .initial = "off",
     .help = "the number of folds for cross-validating each value of l1 and l2"},
    {"seed", KEY_COUNT64, AT(seed), RANGE(0, COUNT_MAX), .initial = "1",
     .help = "the seed of the assignment of rows to folds"},
    {"choose", KEY_CHOICE, AT(choose), .choices = choose, CHANGES, .initial = "best",
     .help = "which of several values is chosen: the one with the best figure, or the largest "
             "within one standard error of it"},
    {"choose_by", KEY_TEXT, AT(choose_by), CHANGES, .initial = "loss", .fits = is_directed,
     .allowed = "a figure of the objective whose lower or whose higher values are better, such as "
                "loss, accuracy, auc or rmse",
     .suggestion = figure_suggestion, .offers_figures = true,
     .help = "the figure that decides: on the holdout, or its mean over the folds"},
    {"early_stopping", KEY_COUNT32, AT(early_stopping), RANGE(1, 1e6), WORD("off", 0),
     .initial = "off", .initial_network = "20",
     .help = "stop when the loss on the holdout has not improved for this many steps"},
    {"threshold", KEY_TEXT, AT(threshold), .fits = threshold_is_rule, .allowed = THRESHOLD_ALLOWED,
     CHANGES, .initial = "auto",
     .help = "the probability from which on a class is predicted, or a rule that finds it on the "
             "holdout"},
    {"cost.false_positive", KEY_NUMBER, AT(false_positive), RANGE(0, 1e100), CHANGES,
     .initial = "1", .help = "the cost of predicting the positive class wrongly"},
    {"cost.false_negative", KEY_NUMBER, AT(false_negative), RANGE(0, 1e100), CHANGES,
     .initial = "1", .help = "the cost of not predicting the positive class where it is right"},
    {"calibrate", KEY_CHOICE, AT(calibrate), .choices = calibration_names, CHANGES,
     .initial = "none", .help = "fits probabilities to the holdout"},
    {"prior_correction", KEY_FLAG, AT(prior_correction), CHANGES, .initial = "true",
     .help = "whether probabilities are corrected for the weights of classes"},
    {"warm_start", KEY_FLAG, AT(warm_start), CHANGES, .initial = "true",
     .help = "whether retrain starts from the live model"},
    {"vanished", KEY_CHOICE, AT(vanished), .choices = vanished, .initial = "drop",
     .help = "what to do with features of the live model that the data no longer has"},
    {"gate", KEY_LIST, AT(gate), .fits = gate_is_condition, .allowed = GATE_ALLOWED,
     .suggestion = gate_suggestion, CHANGES,
     .help = "conditions that a new model must fulfil on the holdout before retrain makes it live"},
    {"publish", KEY_CHOICE, AT(publish), .choices = publishing, CHANGES, .initial = "auto",
     .help = "when run makes its model live: auto (the first model, later ones that the gate "
             "accepts), always, or never"},
    {"keep_models", KEY_COUNT32, AT(keep_models), RANGE(1, 1e6), CHANGES, .initial = "5",
     .help = "versions of the model that retrain keeps, the live one included"},
    {"keep_sets", KEY_COUNT32, AT(keep_sets), RANGE(1, 1e6), CHANGES, .initial = "3",
     .help = "merged sets of data that run keeps, each for other settings of reading"},
    {"on_publish", KEY_TEXT, AT(on_publish), CHANGES, .allowed = "a command for /bin/sh",
     .help = "a command that is run when another model has become live"},
    {"http", KEY_TEXT, AT(http), .fits = is_host_and_port, .allowed = "ADDRESS:PORT",
     WORD("off", 0), CHANGES, .initial = "off",
     .help = "the address of the status server; port 0 picks a free port"},
};
/* clang-format on */

const size_t keys_count = sizeof keys / sizeof keys[0];
