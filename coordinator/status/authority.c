#include "coordinator/status/authority.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#define DIGITS "0123456789"
#define ADDRESS_CHARACTERS DIGITS "abcdefABCDEF:."
#define NAME_CHARACTERS DIGITS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-._"
#define PORT_DIGITS_MAX 5

/* How many bytes at the beginning of the text are in `kind`. */
static size_t span_of(const char *text, size_t length, const char *kind) {
    size_t count = 0;
    while (count < length && text[count] && strchr(kind, text[count]))
        count++;
    return count;
}

/* Whether the text is empty, or ":" and a port, which may be empty. */
static bool is_port(const char *text, size_t length) {
    return !length || (text[0] == ':' && length <= 1 + PORT_DIGITS_MAX &&
                       span_of(text + 1, length - 1, DIGITS) == length - 1);
}

static void take_lower(const char *text, size_t length, char host[AUTHORITY_MAX]) {
    for (size_t i = 0; i < length; i++)
        host[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] + ('a' - 'A') : text[i]);
    host[length] = '\0';
}

bool authority_read(const char *text, size_t length, char host[AUTHORITY_MAX]) {
    bool bracketed = length && text[0] == '[';
    const char *start = bracketed ? text + 1 : text;
    size_t left = length - (size_t)(start - text);
    size_t named = span_of(start, left, bracketed ? ADDRESS_CHARACTERS : NAME_CHARACTERS);
    const char *end = start + named;
    left -= named;
    if (!named || named >= AUTHORITY_MAX)
        return false;
    take_lower(start, named, host);
    if (bracketed) {
        struct in6_addr unused;
        return left && *end == ']' && is_port(end + 1, left - 1) &&
               inet_pton(AF_INET6, host, &unused) == 1;
    }
    if (host[named - 1] == '.')
        host[named - 1] = '\0';
    return host[0] && is_port(end, left);
}

/* Reads a numeric address; IPv4 is mapped to IPv6. */
static bool read_address(const char *text, struct in6_addr *address) {
    struct in_addr four;
    if (inet_pton(AF_INET, text, &four) != 1)
        return inet_pton(AF_INET6, text, address) == 1;
    *address = (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff}};
    memcpy(address->s6_addr + 12, &four, sizeof four);
    return true;
}

static bool is_loopback(const struct in6_addr *address) {
    return IN6_IS_ADDR_LOOPBACK(address) ||
           (IN6_IS_ADDR_V4MAPPED(address) && address->s6_addr[12] == IN_LOOPBACKNET);
}

static bool is_any(const struct in6_addr *address) {
    static const struct in6_addr any_four = {.s6_addr = {[10] = 0xff, [11] = 0xff}};
    return IN6_IS_ADDR_UNSPECIFIED(address) || IN6_ARE_ADDR_EQUAL(address, &any_four);
}

void authority_own_init(struct authority_own *own, const char *said, const char *bound,
                        const char *machine) {
    char number[INET6_ADDRSTRLEN] = "";
    *own = (struct authority_own){.said = ""};
    snprintf(number, sizeof number, "%.*s", (int)strcspn(bound, "%"), bound); /* fe80::1%eth0 */
    if (!read_address(number, &own->bound))
        own->bound = in6addr_loopback;
    if (!authority_read(said, strlen(said), own->said))
        own->said[0] = '\0';
    if (is_loopback(&own->bound) || !authority_read(machine, strlen(machine), own->machine))
        own->machine[0] = '\0';
}

bool authority_is_own(const struct authority_own *own, const char *host) {
    struct in6_addr address;
    if (read_address(host, &address))
        return is_loopback(&address) || is_any(&own->bound) ||
               IN6_ARE_ADDR_EQUAL(&address, &own->bound);
    return strcmp(host, "localhost") == 0 || (*own->said && strcmp(host, own->said) == 0) ||
           (*own->machine && strcmp(host, own->machine) == 0);
}
