#define _GNU_SOURCE
#include "coordinator/status/listening.h"

#include <netdb.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "wire/peer.h"

#define PLACES_LEAST 4
/* Connections use at most this share, one in eight, of the process's descriptors. */
#define DESCRIPTORS_SHARE 8

int listening_open(const char *address, int *descriptor, char **bound) {
    int code = address_listen(address, ADDRESS_PLAIN, descriptor, bound);
    if (code == ERROR_PERMISSION) {
        error_clear();
        code = address_listen(address, ADDRESS_PUBLIC, descriptor, bound);
        if (!code)
            log_warning("status server: everyone who can reach %s can read the status; there is no "
                        "password",
                        *bound);
    }
    if (!code)
        return 0;
    char *text = memory_copy_string(error_text());
    error_clear();
    error_set(code, "key `http`: %s; set another ADDRESS:PORT, or port 0 to get a free port", text);
    free(text);
    return code;
}

void listening_own(const char *address, int descriptor, struct authority_own *own) {
    struct sockaddr_storage bound = {0};
    socklen_t length = sizeof bound;
    char number[NI_MAXHOST] = "", machine[AUTHORITY_MAX] = "";
    if (getsockname(descriptor, (struct sockaddr *)&bound, &length) == 0)
        (void)getnameinfo((struct sockaddr *)&bound, length, number, sizeof number, NULL, 0,
                          NI_NUMERICHOST);
    if (gethostname(machine, sizeof machine - 1))
        machine[0] = '\0';
    authority_own_init(own, address, number, machine);
}

uint32_t listening_places(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        return PLACES_LEAST;
    rlim_t share = limit.rlim_cur / DESCRIPTORS_SHARE;
    return share < PLACES_LEAST           ? PLACES_LEAST
           : share > LISTENING_PLACES_MAX ? LISTENING_PLACES_MAX
                                          : (uint32_t)share;
}
