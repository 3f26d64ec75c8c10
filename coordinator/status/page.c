#define _GNU_SOURCE

#include "coordinator/status/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/text.h"

/* The build makes page.inc from page.html: the bytes as numbers. */
const unsigned char page_html[] = {
#include <coordinator/status/page.inc>
};
const size_t page_html_length = sizeof page_html;

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
    "<meta name=\"color-scheme\" content=\"light dark\"><title>dml: state folders</title><style>"
    "body { font: 14px/1.5 system-ui, sans-serif; max-width: 1000px; margin: 0 auto; "
    "padding: 20px; overflow-wrap: anywhere; }"
    "table { border-collapse: collapse; width: 100%; }"
    "td, th { text-align: left; padding: 6px 16px 6px 0; border-bottom: 1px solid #8884; }"
    "h1 { font-size: 22px; }</style></head><body><h1>State folders</h1><table><thead><tr>"
    "<th>folder</th><th>last run</th><th>state</th><th>begun</th></tr></thead><tbody>\n";
static const char tail[] = "</tbody></table></body></html>\n";

/* Writes a text from outside as text, never as markup. */
static void put_text(const char *text, FILE *out) {
    json_t *clean = text_to_json(text);
    for (const char *at = json_string_value(clean); *at; at++)
        switch (*at) {
        case '<':
            fputs("&lt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        default:
            putc(*at, out);
        }
    json_decref(clean);
}

static void put_entry(const struct index_entry *entry, uint32_t number, FILE *out) {
    fprintf(out, "<tr><td><a href=\"%u/\">", number);
    put_text(entry->folder, out);
    fputs("</a></td><td>", out);
    if (entry->status) {
        fprintf(out, "%lld, ", member_count(entry->status, "run"));
        put_text(member_text(entry->status, "job"), out);
    }
    fputs("</td><td>", out);
    if (entry->status)
        put_text(member_text(entry->status, "state"), out);
    if (entry->status && json_is_string(json_object_get(entry->status, "reason"))) {
        fputs(": ", out);
        put_text(member_text(entry->status, "reason"), out);
    }
    if (entry->trouble)
        put_text(entry->trouble, out);
    fputs("</td><td>", out);
    if (entry->status) {
        time_t seconds = (time_t)(member_count(entry->status, "started_ms") / 1000);
        struct tm local;
        char text[32];
        localtime_r(&seconds, &local);
        strftime(text, sizeof text, "%Y-%m-%d %H:%M", &local);
        fputs(text, out);
    }
    fputs("</td></tr>\n", out);
}

void index_answer(const struct index_entry *entries, uint32_t count, struct http_answer *answer) {
    char *text = NULL;
    FILE *out = open_memstream(&text, &answer->length);
    if (!out)
        abort(); /* as without memory */
    fputs(head, out);
    for (uint32_t i = 0; i < count; i++)
        put_entry(&entries[i], i + 1, out);
    fputs(tail, out);
    fclose(out);
    answer->status = 200;
    answer->type = "text/html; charset=utf-8";
    answer->fields = PAGE_POLICY;
    answer->body = answer->owned = text;
}
