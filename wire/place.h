/* An address ("unix:PATH", "HOST:PORT" or "tls:HOST:PORT") in the form that system calls take. For
 * the files that listen and connect. */
#ifndef DML_WIRE_PLACE_H
#define DML_WIRE_PLACE_H

#include <netdb.h>
#include <stdbool.h>
#include <sys/socket.h>

#define PLACE_HOST_BYTES 256
#define PLACE_PORT_BYTES 32

struct place {
    struct sockaddr_storage address;
    socklen_t length;
};

/* The path of a Unix socket; NULL for another address. */
const char *place_unix_path(const char *address);

/* Whether the address begins with "tls:". */
bool place_names_tls(const char *address);

/* ERROR_USAGE for a path that does not fit. */
int place_of_unix(const char *address, struct place *place);

/* Takes HOST:PORT or tls:HOST:PORT apart, [HOST]:PORT for a host with colons. ERROR_USAGE. */
int place_split(const char *address, char host[PLACE_HOST_BYTES], char port[PLACE_PORT_BYTES]);

/* Whether only this machine can reach it. */
bool place_is_here(const struct place *place);

struct place place_of_info(const struct addrinfo *info);

/* A non-blocking stream socket of the place's family, or −1 with errno. */
int place_socket(const struct place *place);

#endif
