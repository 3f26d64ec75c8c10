#include "data/remote/address.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/memory.h"

bool address_is(const char *path) {
    return !strncmp(path, "s3://", 5) || !strncmp(path, "https://", 8) ||
           !strncmp(path, "http://", 7);
}

/* ---- secrets ---- */

/* Addresses of which something was taken off. */
static struct secret {
    char *shown, *whole;
    bool ambiguous; /* another address is shown so, too */
    struct secret *next;
} * secrets;
static pthread_mutex_t secrets_mutex = PTHREAD_MUTEX_INITIALIZER;

static void remember(const char *shown, const char *whole) {
    pthread_mutex_lock(&secrets_mutex);
    struct secret *secret = secrets;
    while (secret && strcmp(secret->shown, shown) != 0)
        secret = secret->next;
    if (!secret) {
        secret = memory_new(1, sizeof *secret);
        *secret = (struct secret){.shown = memory_copy_string(shown),
                                  .whole = memory_copy_string(whole),
                                  .next = secrets};
        secrets = secret;
    }
    secret->ambiguous |= strcmp(secret->whole, whole) != 0;
    pthread_mutex_unlock(&secrets_mutex);
}

void address_forget(const char *shown) {
    pthread_mutex_lock(&secrets_mutex);
    struct secret **at = &secrets;
    while (*at && strcmp((*at)->shown, shown) != 0)
        at = &(*at)->next;
    struct secret *secret = *at;
    if (secret) {
        *at = secret->next;
        free(secret->shown);
        free(secret->whole);
        free(secret);
    }
    pthread_mutex_unlock(&secrets_mutex);
}

/* The address that is shown so; free it. What is taken for a secret may be what tells objects
 * apart, as ?key=1 and ?key=2: then one would be read for the other. */
static int recall(const char *shown, char **whole) {
    pthread_mutex_lock(&secrets_mutex);
    const struct secret *secret = secrets;
    while (secret && strcmp(secret->shown, shown) != 0)
        secret = secret->next;
    bool ambiguous = secret && secret->ambiguous;
    *whole = memory_copy_string(secret ? secret->whole : shown);
    pthread_mutex_unlock(&secrets_mutex);
    if (!ambiguous)
        return 0;
    free(*whole);
    *whole = NULL;
    return error_set(ERROR_DATA,
                     "%s: two addresses that are given are this one but for a password, a "
                     "signature, a key or the like, which are kept nowhere: give each object a "
                     "path of its own, or copy the objects first",
                     shown);
}

/* Whether a parameter of a query signs it, or lets its owner in. */
static bool is_secret(const char *name, size_t length) {
    static const char *const parts[] = {"x-amz-", "x-goog-",    "token", "secret", "passw",
                                        "auth",   "credential", "key",   "sign",   "session"},
                             *const names[] = {"sig",     "se",     "sp", "sv",  "sr",  "st",
                                               "expires", "policy", "pw", "pwd", "code"};
    char text[64] = "";
    for (size_t i = 0; i < length && i + 1 < sizeof text; i++)
        text[i] = (char)tolower((unsigned char)name[i]);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(text, parts[i]))
            return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(text, names[i]))
            return true;
    return strchr(text, '%') != NULL; /* whatever it is */
}

/* Adds the parameters of a query that are no secrets; `to` ends there. */
static char *show_query(const char *query, char *to) {
    char mark = '?';
    while (*query && *query != '#') {
        size_t length = strcspn(query, "&#"), name = strcspn(query, "=&#");
        if (length && !is_secret(query, name)) {
            *to++ = mark;
            memcpy(to, query, length);
            to += length;
            mark = '&';
        }
        query += length + (query[length] == '&');
    }
    return to;
}

char *address_shown(const char *address) {
    if (!address_is(address))
        return memory_copy_string(address);
    bool s3 = !strncmp(address, "s3://", 5); /* a key has any characters */
    const char *host = strstr(address, "://") + 3, *end = host + strcspn(host, s3 ? "/" : "/?#");
    for (const char *p = host; p < end; p++)
        if (*p == '@')
            host = p + 1;
    char *shown = memory_new(strlen(address) + 2, 1), *to = shown;
    size_t scheme = (size_t)(strstr(address, "://") + 3 - address);
    memcpy(to, address, scheme);
    to += scheme;
    const char *query = s3 ? strchr(host, '\0') : host + strcspn(host, "?#");
    memcpy(to, host, (size_t)(query - host));
    to += query - host;
    if (*query == '?')
        to = show_query(query + 1, to);
    *to = '\0';
    if (strcmp(shown, address) != 0)
        remember(shown, address);
    return shown;
}

/* ---- settings of AWS ---- */

static const char *environment(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* The value of a key in a section of a file such as ~/.aws/credentials; NULL if there is none.
 * Free it. *section becomes whether that is there. */
static char *read_setting(const char *path, const char *wanted, const char *key, bool *section) {
    FILE *file = fopen(path, "re");
    char line[4096], *found = NULL;
    bool here = false;
    while (file && !found && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\r\n")] = '\0';
        if (*line == '[') {
            char *name = line + 1 + strspn(line + 1, " ");
            if (!strncmp(name, "profile ", 8))
                name += 8 + strspn(name + 8, " ");
            size_t length = strcspn(name, " ]");
            here = strlen(wanted) == length && !strncmp(name, wanted, length);
            *section |= here;
            continue;
        }
        size_t length = strcspn(line, " =");
        char *value = strchr(line, '=');
        if (!here || !value || strlen(key) != length || strncmp(line, key, length) != 0)
            continue;
        value += 1 + strspn(value + 1, " ");
        while (*value && value[strlen(value) - 1] == ' ')
            value[strlen(value) - 1] = '\0';
        found = *value ? memory_copy_string(value) : NULL;
    }
    if (file)
        fclose(file);
    memset(line, 0, sizeof line);
    return found;
}

struct profile {
    const char *name;
    char *credentials, *config; /* paths; owned */
    bool there;
};

static char *of_profile(struct profile *profile, const char *key) {
    char *value = read_setting(profile->credentials, profile->name, key, &profile->there);
    return value ? value : read_setting(profile->config, profile->name, key, &profile->there);
}

/* From the first of these variables that is set, else from the profile. */
static char *setting(struct profile *profile, const char *variable, const char *other,
                     const char *key) {
    const char *value = environment(variable);
    value = value ? value : environment(other);
    return value ? memory_copy_string(value) : of_profile(profile, key);
}

/* Without credentials, requests are not signed: for buckets that are open to all. */
static int find_credentials(struct profile *profile, struct address_request *request) {
    bool set = environment("AWS_ACCESS_KEY_ID") && environment("AWS_SECRET_ACCESS_KEY");
    const char *token = environment("AWS_SESSION_TOKEN");
    char *id = set ? memory_copy_string(environment("AWS_ACCESS_KEY_ID"))
                   : of_profile(profile, "aws_access_key_id");
    char *secret = set ? memory_copy_string(environment("AWS_SECRET_ACCESS_KEY"))
                       : of_profile(profile, "aws_secret_access_key");
    if (id && secret) {
        request->user = memory_format("%s:%s", id, secret);
        request->token = !set    ? of_profile(profile, "aws_session_token")
                         : token ? memory_copy_string(token)
                                 : NULL;
    }
    free(id);
    free(secret);
    if (set || profile->there || !environment("AWS_PROFILE"))
        return 0;
    return error_set(ERROR_UNAVAILABLE, "AWS_PROFILE names \"%s\", which neither %s nor %s has",
                     profile->name, profile->credentials, profile->config);
}

/* ---- requests of S3 ---- */

/* Percent-encodes a text after `to`; a slash only in a query. */
static char *encode(char *to, const char *text, bool slash) {
    static const char digits[] = "0123456789ABCDEF";
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     strchr("-_.~", c) || (c == '/' && !slash);
        if (plain) {
            *to++ = (char)c;
        } else {
            *to++ = '%';
            *to++ = digits[c >> 4];
            *to++ = digits[c & 15];
        }
    }
    *to = '\0';
    return to;
}

static char *encoded(const char *text, bool slash) {
    char *copy = memory_new(3 * strlen(text) + 1, 1);
    encode(copy, text, slash);
    return copy;
}

/* Takes the bucket off what is shown; the key, or a pattern of keys, is after it. Free it. A name
 * of other characters could lead the request, and what it is signed with, to another host. */
static int find_bucket(const char *shown, char **bucket, const char **key) {
    char *whole;
    int code = recall(shown, &whole);
    if (code)
        return code;
    size_t length = strspn(whole + 5, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                      "0123456789.-_");
    *key = strchr(shown + 5, '/');
    if (length && whole[5 + length] == '/' && (*key)[1]) {
        ++*key;
        *bucket = memory_format("%.*s", (int)length, whole + 5);
    } else {
        code = error_set(ERROR_DATA, "%s is no object: write s3://BUCKET/KEY%s", shown,
                         strcmp(whole, shown) != 0 ? ", and see to credentials as s3 has them: in "
                                                     "the environment or in ~/.aws"
                                                   : "");
    }
    free(whole);
    return code;
}

/* Where a bucket is: at AWS in a host of its own, unless a dot in its name forbids that. */
static char *bucket_url(struct profile *profile, const char *bucket, const char *region) {
    char *endpoint = setting(profile, "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "endpoint_url"),
         *url;
    if (endpoint) {
        size_t length = strlen(endpoint);
        while (length && endpoint[length - 1] == '/')
            endpoint[--length] = '\0';
        url = memory_format("%s/%s", endpoint, bucket);
    } else if (strchr(bucket, '.')) {
        url = memory_format("https://s3.%s.amazonaws.com/%s", region, bucket);
    } else {
        url = memory_format("https://%s.s3.%s.amazonaws.com", bucket, region);
    }
    free(endpoint);
    return url;
}

/* `rest` is what stands after the bucket. */
static int s3_request(const char *bucket, const char *rest, struct address_request *request) {
    const char *home = environment("HOME"), *name = environment("AWS_PROFILE"),
               *credentials = environment("AWS_SHARED_CREDENTIALS_FILE"),
               *config = environment("AWS_CONFIG_FILE");
    struct profile profile = (struct profile){
        .name = name ? name : "default",
        .credentials = credentials ? memory_copy_string(credentials)
                                   : memory_format("%s/.aws/credentials", home ? home : ""),
        .config =
            config ? memory_copy_string(config) : memory_format("%s/.aws/config", home ? home : ""),
    };
    *request = (struct address_request){.s3 = true};
    request->region = setting(&profile, "AWS_REGION", "AWS_DEFAULT_REGION", "region");
    if (!request->region)
        request->region = memory_copy_string("us-east-1");
    int code = find_credentials(&profile, request);
    if (!code) {
        char *url = bucket_url(&profile, bucket, request->region);
        request->url = memory_format("%s/%s", url, rest);
        free(url);
    }
    free(profile.credentials);
    free(profile.config);
    return code;
}

int address_request(const char *shown, struct address_request *request) {
    *request = (struct address_request){0};
    if (strncmp(shown, "s3://", 5) != 0)
        return recall(shown, &request->url);
    char *bucket;
    const char *key;
    int code = find_bucket(shown, &bucket, &key);
    if (code)
        return code;
    char *rest = encoded(key, false);
    code = s3_request(bucket, rest, request);
    free(bucket);
    free(rest);
    return code;
}

int address_list_request(const char *pattern, const char *prefix, const char *token,
                         struct address_request *request) {
    char *bucket;
    const char *key;
    *request = (struct address_request){0};
    int code = find_bucket(pattern, &bucket, &key);
    if (code)
        return code;
    char *from = encoded(prefix, true), *next = encoded(token ? token : "", true);
    /* The names are in the order that signatures ask for. */
    char *rest = memory_format("?%s%s%sencoding-type=url&list-type=2&prefix=%s",
                               token ? "continuation-token=" : "", next, token ? "&" : "", from);
    code = s3_request(bucket, rest, request);
    free(bucket);
    free(from);
    free(next);
    free(rest);
    return code;
}

void address_request_release(struct address_request *request) {
    free(request->url);
    free(request->region);
    free(request->user);
    free(request->token);
    *request = (struct address_request){0};
}
