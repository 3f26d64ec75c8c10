#include "coordinator/job/host_list.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/memory.h"

#define NAME_BYTES_MAX 253 /* of a host, by the rules of the domain name system */

/* ---- hosts ---- */

/* "NAME", "NAME:THREADS", "[ADDRESS]" or "[ADDRESS]:THREADS", the last two for IPv6. */
struct named {
    const char *name;
    size_t length;
    uint32_t threads; /* 0: not given */
};

static bool parse_host(const char *text, struct named *named) {
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    bool bracketed = *text == '[';
    *named = (struct named){.name = text + bracketed};
    named->length = strspn(named->name, bracketed ? "0123456789abcdefABCDEF.:" : letters);
    const char *end = named->name + named->length;
    if (!named->length || named->length > NAME_BYTES_MAX || *named->name == '-' ||
        (bracketed && *end++ != ']'))
        return false;
    if (!*end)
        return true;
    size_t digits = strspn(end + 1, "0123456789");
    named->threads = digits && digits < 5 && !end[1 + digits] ? (uint32_t)atoi(end + 1) : 0;
    return *end == ':' && named->threads >= 1 && named->threads <= THREADS_MAX;
}

bool host_list_fits(const char *text) {
    struct named named;
    return parse_host(text, &named);
}

bool host_list_is_given(const struct job *job) {
    return job->hosts[0] && strcmp(job->hosts[0], "local") != 0;
}

bool host_list_is_slurm(const struct job *job) {
    return job->hosts[0] && !strcmp(job->hosts[0], "slurm");
}

static char *name_of(const char *text, uint32_t *threads) {
    struct named named;
    bool fits = parse_host(text, &named);
    assert(fits); /* it was checked when the job file was read */
    *threads = named.threads;
    return memory_format("%.*s", (int)named.length, named.name);
}

void host_list_add(const struct job *job, struct hosts *hosts) {
    for (char **host = job->hosts; *host; host++) {
        uint32_t threads;
        char *name = name_of(*host, &threads);
        hosts_add(hosts, name, NULL, threads);
        free(name);
    }
}

static int check_twice(const struct job *job) {
    struct hosts hosts = {0};
    int code = 0;
    for (char **host = job->hosts; *host && !code; host++) {
        uint32_t threads;
        char *name = name_of(*host, &threads);
        if (hosts_find(&hosts, name) != HOSTS_NONE)
            code = error_set(ERROR_CONFIG,
                             "%s: key `hosts`: \"%s\" is named twice; name each host once, with "
                             "its threads after a colon: \"%s:8\"",
                             job->file, name, name);
        else if (hosts.count == HOSTS_MAX)
            code = error_set(ERROR_CONFIG, "%s: key `hosts`: more than %d hosts", job->file,
                             HOSTS_MAX);
        else
            hosts_add(&hosts, name, NULL, threads);
        free(name);
    }
    hosts_release(&hosts);
    return code;
}

int host_list_check(const struct job *job) {
    for (char **host = job->hosts; *host; host++)
        if ((!strcmp(*host, "local") || !strcmp(*host, "slurm")) && job->hosts[1])
            return error_set(
                ERROR_CONFIG,
                "%s: key `hosts`: `%s` must be the only entry, or leave it out of the list",
                job->file, *host);
    int code = check_twice(job);
    if (code)
        return code;
    if (!host_list_is_given(job) && job->launch)
        return error_set(ERROR_CONFIG,
                         "%s: key `launch`: is for workers on other hosts; write hosts = { \"a\", "
                         "\"b\" } too, or remove it",
                         job->file);
    const char *other = job->shard_addresses[0]     ? "shard_addresses"
                        : job->replica_addresses[0] ? "replica_addresses"
                                                    : NULL;
    if (host_list_is_given(job) && other)
        return error_set(ERROR_CONFIG,
                         "%s: key `hosts`: workers are either started on hosts or found at `%s`; "
                         "remove one of the two keys",
                         job->file, other);
    return 0;
}

/* ---- launch ---- */

struct splitting {
    const char *at, *host;
    char threads[16];
    struct bytes word;
    bool names_host;
};

/* Adds the next character, or what it stands for, to the word. */
static bool take_character(struct splitting *s, char quote) {
    const char *text = s->at++;
    size_t length = 1;
    if (*text == '\\' && quote != '\'') {
        text = s->at++;
        if (!*text)
            return false;
    } else if (*text == '%') {
        char letter = *s->at++;
        s->names_host |= letter == 'h';
        text = letter == 'h' ? s->host : letter == 'c' ? s->threads : letter == '%' ? "%" : NULL;
        if (!text)
            return false;
        length = strlen(text);
    }
    bytes_append(&s->word, text, length);
    return true;
}

static bool take_word(struct splitting *s) {
    char quote = '\0';
    for (; *s->at && (quote || !isspace((unsigned char)*s->at));) {
        if (*s->at == quote) {
            quote = '\0';
            s->at++;
        } else if (!quote && (*s->at == '"' || *s->at == '\'')) {
            quote = *s->at++;
        } else if (!take_character(s, quote)) {
            return false;
        }
    }
    bytes_append(&s->word, "", 1);
    return !quote;
}

char **launch_words(const char *text, const char *host, uint32_t threads) {
    struct splitting s = {.at = text, .host = host};
    size_t count = 0;
    bool good = true;
    char **words = memory_new(1, sizeof *words);
    snprintf(s.threads, sizeof s.threads, "%u", threads ? threads : 1);
    bytes_init(&s.word);
    while (good && *(s.at += strspn(s.at, " \t\n\v\f\r"))) {
        bytes_clear(&s.word);
        good = take_word(&s);
        words = memory_resize(words, count + 2, sizeof *words);
        words[count++] = memory_format("%s", good ? (const char *)s.word.data : "");
        words[count] = NULL;
    }
    bytes_release(&s.word);
    if (good && count && s.names_host)
        return words;
    launch_words_free(words);
    return NULL;
}

void launch_words_free(char **words) {
    for (char **word = words; word && *word; word++)
        free(*word);
    free(words);
}

bool launch_fits(const char *text) {
    char **words = launch_words(text, "host", 1);
    bool fits = words && words[0][0];
    launch_words_free(words);
    return fits;
}

const char *host_list_launch(const struct job *job) {
    return job->launch ? job->launch : host_list_is_slurm(job) ? LAUNCH_SLURM : LAUNCH_SSH;
}
