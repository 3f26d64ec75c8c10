/* Addresses of objects: s3://BUCKET/KEY, https:// and http://. What is secret in them stays in this
 * file: all others, logs and messages know an address as it is shown. */
#ifndef DML_DATA_REMOTE_ADDRESS_H
#define DML_DATA_REMOTE_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a path is such an address. */
bool address_is(const char *path);

/* The address without what is secret in it: user and password, signatures and tokens of the query.
 * What is taken off is remembered for address_request(). Free it. */
char *address_shown(const char *address);

/* Forgets what was taken off: another address takes the place of this one, as on a command line. */
void address_forget(const char *shown);

/* What is asked of a server. */
struct address_request {
    char *url;                   /* owned */
    char *region, *user, *token; /* of S3: how the request is signed: "KEY:SECRET"; NULL: not;
                                    owned */
    bool s3;
};

/* The request for the object behind an address that is shown: ERROR_DATA if it is none, or more
 * than one that was given is shown so; ERROR_UNAVAILABLE if the profile of AWS is not there.
 * Release it in any case. */
int address_request(const char *shown, struct address_request *request);

/* Makes the request for the list of those keys of the pattern's bucket that begin with `prefix`;
 * `token` as in struct listing, or NULL. */
int address_list_request(const char *pattern, const char *prefix, const char *token,
                         struct address_request *request);
void address_request_release(struct address_request *request);

#endif
