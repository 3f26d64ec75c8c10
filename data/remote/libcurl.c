#include "data/remote/libcurl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

#define NAME "libcurl.so.4"
#define OLDEST 0x075500 /* 7.85.0: it has all options that are set; configure asks for the same */

struct libcurl libcurl;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char problem[256]; /* "" if it was loaded */

static const struct {
    const char *name;
    void *pointer; /* to a pointer to a function */
} calls[] = {
#define LIBCURL_CALL(name) {"curl_" #name, &libcurl.name},
    LIBCURL_CALLS(LIBCURL_CALL)
#undef LIBCURL_CALL
};

static void load(void) {
    void *library = dlopen(NAME, RTLD_NOW | RTLD_LOCAL), *call = library;
    for (size_t i = 0; call && i < sizeof calls / sizeof *calls; i++) {
        call = dlsym(library, calls[i].name);
        memcpy(calls[i].pointer, &call, sizeof call);
    }
    if (!call) {
        snprintf(problem, sizeof problem, "%s", dlerror());
        return;
    }
    const curl_version_info_data *version = libcurl.version_info(CURLVERSION_NOW);
    if (version->version_num < OLDEST)
        snprintf(problem, sizeof problem, "it is version %s, and 7.85 is needed", version->version);
    else if (libcurl.global_init(CURL_GLOBAL_DEFAULT))
        snprintf(problem, sizeof problem, "it does not start");
}

int libcurl_load(const char *path) {
    pthread_once(&once, load);
    if (!*problem)
        return 0;
    return error_set(ERROR_UNAVAILABLE,
                     "cannot open %s: addresses are read with %s (%s); install libcurl (the "
                     "package libcurl4 of Debian), or copy what is there first",
                     path, NAME, problem);
}
