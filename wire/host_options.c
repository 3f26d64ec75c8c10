/* The options that all workers share, and how their programs begin and end: see wire/host.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "device/find.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "config.h"
#include "wire/address.h"
#include "wire/host.h"
#include "wire/peer.h"

/* clang-format off */
static const struct option long_options[] = {
    {"listen", required_argument, NULL, 'l'},
    {"key", required_argument, NULL, 'k'},
    {"folder", required_argument, NULL, 'F'},
    {"device", required_argument, NULL, 'd'},
    {"devices", no_argument, NULL, 'D'},
    {"once", no_argument, NULL, 'o'},
    {"stay", no_argument, NULL, 's'},
    {"parent-pid", required_argument, NULL, 'p'},
    {"hello-seconds", required_argument, NULL, 'H'},
    {"list-failpoints", no_argument, NULL, 'f'},
    {"quiet", no_argument, NULL, 'q'},
    {"verbose", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {0},
};
/* clang-format on */

static void print_help(const char *summary) {
    printf("usage: %s --listen ADDRESS [options]\n%s\n\n"
           "  --listen ADDRESS   unix:PATH, HOST:PORT or any:PORT (port 0: a free one)\n"
           "  --key FILE         key of the job (-: standard input); required but for unix:PATH\n"
           "  --folder DIR       write below DIR only\n"
           "  --device DEVICE    auto, cpu, cuda, cuda:N or emulated; overrides the job\n"
           "  --devices          print the GPUs of this machine\n"
           "  --once             end when the coordinator is lost\n"
           "  --stay             wait for the next run when one has ended\n"
           "  --parent-pid PID   end when PID is no longer the parent, if no run is served\n"
           "  --hello-seconds N  end when no coordinator has come within N seconds\n"
           "  --quiet            log warnings and errors only\n"
           "  --verbose          log every message\n"
           "  --list-failpoints  print the failpoints, for tests: see DML_FAILPOINT\n"
           "  --version\n"
           "  --help\n",
           program_invocation_short_name, summary);
}

static int read_count(const char *option, const char *text, const char *kind, int *count) {
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < 1 || value > INT_MAX)
        return error_set(ERROR_USAGE, "%s %s: not a %s", option, text, kind);
    *count = (int)value;
    return 0;
}

static int read_device(const char *text, const char **device) {
    struct device_choice choice;
    if (!*text || !device_choice_read(text, &choice))
        return error_set(ERROR_USAGE, "--device %s: not a device; allowed: %s", text,
                         DEVICE_CHOICES);
    *device = text;
    if (choice.kind == CHOICE_AUTO) /* never an error, and looking for a GPU may take seconds */
        return 0;
    return device_find(&choice, 0, &(struct device_found){0});
}

static int read_option(int option, const char *summary, struct host_options *options) {
    switch (option) {
    case 'l':
        options->listen = optarg;
        return 0;
    case 'k':
        options->key = optarg;
        return 0;
    case 'F':
        options->folder = optarg;
        return 0;
    case 'd':
        return read_device(optarg, &options->device);
    case 'D':
        device_list(stdout);
        return 1;
    case 'o':
        options->once = true;
        return 0;
    case 's':
        options->stay = true;
        return 0;
    case 'p':
        return read_count("--parent-pid", optarg, "process id", &options->parent_pid);
    case 'H':
        return read_count("--hello-seconds", optarg, "number of seconds from 1 on",
                          &options->hello_seconds);
    case 'f':
        failpoint_list(stdout);
        return 1;
    case 'q':
        options->log_level = LOG_WARNING;
        return 0;
    case 'v':
        options->log_level = LOG_DEBUG;
        return 0;
    case 'h':
        print_help(summary);
        return 1;
    case 'V':
        printf("%s %s\n", program_invocation_short_name, PACKAGE_VERSION);
        return 1;
    default:
        return error_set(ERROR_USAGE, "see %s --help", program_invocation_short_name);
    }
}

int host_options_read(int argc, char **argv, const char *summary, struct host_options *options) {
    *options = (struct host_options){.log_level = LOG_INFO};
    int option;
    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        int code = read_option(option, summary, options);
        if (code)
            return code;
    }
    if (optind < argc)
        return error_set(ERROR_USAGE, "%s: not an option; see --help", argv[optind]);
    if (options->once && options->stay)
        return error_set(ERROR_USAGE, "`--once` and `--stay` exclude each other");
    if (!options->listen)
        return error_set(ERROR_USAGE, "--listen ADDRESS is missing; see --help");
    if (!options->key && !address_is_unix(options->listen))
        return error_set(ERROR_USAGE,
                         "--listen %s: without a key only unix:PATH is listened on: --key FILE, "
                         "with the key STATE/key of the job, makes links over TCP safe",
                         options->listen);
    return 0;
}

int host_own_folder(const struct host_options *options, char **folder) {
    *folder = NULL;
    if (!options->folder)
        return folder_of_user(folder);
    char *named = path_absolute(options->folder);
    int code = folder_make(named, 0700);
    if (!code)
        *folder = named;
    else
        free(named);
    return code;
}

bool host_sees_state(void *context, const char *state, const char *holder) {
    (void)context;
    if (!*state)
        return true;
    char *lock = path_join(state, "lock");
    bool sees = guard_is(lock, holder);
    free(lock);
    return sees;
}

int host_main(int argc, char **argv, const char *role, const char *summary,
              int (*serve)(const struct host_options *options)) {
    struct host_options options;
    memory_is_of_worker();
    int code = failpoint_setup(role, message_failpoints, MESSAGE_FAILPOINTS);
    if (!code)
        code = host_options_read(argc, argv, summary, &options);
    if (!code) {
        log_open(role, (enum log_level)options.log_level);
        code = serve(&options);
    }
    return process_end(code == 1 ? 0 : code); /* 1: it has answered */
}
