/* libcurl, loaded when the first address is met and not at every start: it brings some 20 libraries
 * more, and of most commands no data lies behind an address. For data/remote/request.c and
 * data/remote/remote.c.
 */
#ifndef DML_DATA_REMOTE_LIBCURL_H
#define DML_DATA_REMOTE_LIBCURL_H

#include <curl/curl.h>

/* What is called of it: as libcurl names it, but for the prefix. */
#define LIBCURL_CALLS(CALL)                                                                        \
    CALL(global_init)                                                                              \
    CALL(version_info)                                                                             \
    CALL(easy_init)                                                                                \
    CALL(easy_cleanup)                                                                             \
    CALL(easy_reset)                                                                               \
    CALL(easy_setopt)                                                                              \
    CALL(easy_getinfo)                                                                             \
    CALL(easy_perform)                                                                             \
    CALL(easy_pause)                                                                               \
    CALL(easy_strerror)                                                                            \
    CALL(slist_append)                                                                             \
    CALL(slist_free_all)                                                                           \
    CALL(multi_init)                                                                               \
    CALL(multi_cleanup)                                                                            \
    CALL(multi_add_handle)                                                                         \
    CALL(multi_remove_handle)                                                                      \
    CALL(multi_perform)                                                                            \
    CALL(multi_info_read)                                                                          \
    CALL(multi_poll)

struct libcurl {
#define LIBCURL_POINTER(name) __typeof__(&curl_##name) name;
    LIBCURL_CALLS(LIBCURL_POINTER)
#undef LIBCURL_POINTER
};

/* All pointers once libcurl_load() has answered 0. */
extern struct libcurl libcurl;

/* Loads the library; any number of times, in any thread. ERROR_UNAVAILABLE, which names `path` and
 * what to install, if it is not there or too old. */
int libcurl_load(const char *path);

#endif
