#define _GNU_SOURCE

#include "coordinator/status/page.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "coordinator/status/invocations.h"
#include "coordinator/status/report.h"
#include "coordinator/status/result.h"

#define FIGURES_MOST 3  /* of a set of rows, in the list of folders */
#define POINTS_MOST 200 /* of a curve there */

/* The build makes page.inc from the parts in coordinator/status/page/: the bytes as numbers. */
const unsigned char page_html[] = {
#include <coordinator/status/page.inc>
};
const size_t page_html_length = sizeof page_html;

/* The page of an index, in which entries take the place of a line. */
static const char index_html[] = {
#include <coordinator/status/index.inc>
    '\0'};
static const char place_of_entries[] = "<!--entries-->\n";

/* Writes a text from outside as text, never as markup. */
static void put_escaped(const char *text, FILE *out) {
    json_t *clean = text_to_json(text);
    assert(json_is_string(clean));
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

/* "5 minutes", "3 days" */
static void put_age(double seconds, FILE *out) {
    static const struct {
        double seconds;
        const char *unit;
    } units[] = {{86400, "day"}, {3600, "hour"}, {60, "minute"}};
    size_t i = 0;
    while (i < 2 && seconds < 2 * units[i].seconds)
        i++;
    long long count = (long long)(seconds / units[i].seconds);
    if (count < 1)
        fputs("less than a minute", out);
    else
        fprintf(out, "%lld %s%s", count, units[i].unit, count == 1 ? "" : "s");
}

static void put_date(long long wall_ms, FILE *out) {
    char text[CLOCK_MINUTE];
    clock_minute(wall_ms, text);
    fputs(text, out);
}

/* ---- what an entry shows ---- */

static void put_figures(const json_t *run, const char *over, FILE *out) {
    const json_t *figures = json_object_get(run, over);
    const char *name;
    unsigned at = 0;
    if (!json_is_object(figures))
        return;
    fputs("<dl>", out);
    for (unsigned shown = 0; shown < FIGURES_MOST && (name = figures_in_line(figures, &at));
         shown++) {
        fputs("<div><dt>", out);
        for (const char *at_name = name; *at_name; at_name++) /* in the JSON _ is between words */
            putc(*at_name == '_' ? ' ' : *at_name, out);
        fprintf(out, ", %s</dt><dd>%.5g</dd></div>", over, member_number(figures, name));
    }
    fputs("</dl>", out);
}

static void put_live(const struct index_entry *entry, FILE *out) {
    const json_t *live = report_live_model(entry->runs);
    double ended_ms = member_number(live, "ended_ms");
    if (!live) {
        fputs("<p class=\"muted\">no model is live</p>", out);
        return;
    }
    fprintf(out, "<p><b class=\"good\">★ run %lld is live</b>", member_count(live, "run"));
    if (json_is_string(json_object_get(live, "tag"))) {
        fputs(", ", out);
        put_escaped(member_text(live, "tag"), out);
    }
    if (!isnan(ended_ms)) {
        fputs(", trained ", out);
        put_age(((double)clock_wall_ms() - ended_ms) / 1e3, out);
        fputs(" ago", out);
    }
    fputs("</p>", out);
    put_figures(live, "holdout", out);
    put_figures(live, "test", out);
    /* The figure by which a sweep has chosen this run. */
    const json_t *chosen = json_object_get(entry->status, "chosen");
    if (!json_is_number(json_object_get(chosen, "mean")) ||
        member_count(chosen, "run") != member_count(live, "run"))
        return;
    fputs("<dl><div><dt>", out);
    put_escaped(member_text(chosen, "choose_by"), out);
    fprintf(out, ", the best of a sweep</dt><dd>%.5g</dd></div></dl>",
            member_number(chosen, "mean"));
}

static void put_refusals(const json_t *decisions, FILE *out) {
    long long count = member_count(decisions, "refusals");
    if (!count)
        return;
    fprintf(out, "<p><span class=\"bad\">✕ the gate has refused %lld time%s since ", count,
            count == 1 ? "" : "s");
    put_date(member_count(decisions, "refusals_since_ms"), out);
    fputs("</span>: ", out);
    put_escaped(member_text(decisions, "refusal"), out);
    fputs("</p>", out);
}

static void put_last(const json_t *status, FILE *out) {
    fprintf(out, "<p class=\"muted\">last run %lld, begun ", member_count(status, "run"));
    put_date(member_count(status, "started_ms"), out);
    fputs(": ", out);
    put_escaped(member_text(status, "state"), out);
    if (json_is_string(json_object_get(status, "reason"))) {
        fputs(", ", out);
        put_escaped(member_text(status, "reason"), out);
    }
    if (json_is_number(json_object_get(status, "loss")))
        fprintf(out, ", loss %.6g", member_number(status, "loss"));
    fputs("</p>", out);
}

/* The last command, if the entry does not say otherwise what it came to. */
static void put_invocation(const json_t *last, FILE *out) {
    if (!invocation_is_news(last))
        return;
    const bool wrong = invocation_has_failed(last) || member_count(last, "status") > 0;
    char *words = invocation_words(last);
    fprintf(out, "<p><span class=\"%s\">%slast command</span>, ", wrong ? "bad" : "muted",
            wrong ? "✕ " : "");
    put_date(member_count(last, "began_ms"), out);
    fputs(", ", out);
    put_escaped(words, out);
    fputs("</p>", out);
    free(words);
}

/* The losses as a line, of at most so many points as can be told apart. */
static void put_curve(const struct index_entry *entry, FILE *out) {
    double least = INFINITY, most = -INFINITY;
    size_t every = entry->steps / POINTS_MOST + 1;
    for (size_t i = 0; i < entry->steps; i++) {
        least = fmin(least, entry->losses[i]);
        most = fmax(most, entry->losses[i]);
    }
    if (entry->steps < 2 || !isfinite(least) || !isfinite(most) || !(most > least))
        return;
    fprintf(out,
            "<svg viewBox=\"0 0 100 52\" preserveAspectRatio=\"none\" role=\"img\" "
            "aria-label=\"loss from %.5g to %.5g in %zu %s\"><polyline points=\"",
            most, least, entry->epochs ? entry->steps : entry->steps - 1,
            entry->epochs ? "epochs" : "steps");
    for (size_t i = 0; i < entry->steps; i += every)
        if (isfinite(entry->losses[i]))
            fprintf(out, "%.2f,%.2f ", 100.0 * (double)i / (double)(entry->steps - 1),
                    2 + 48 * (most - entry->losses[i]) / (most - least));
    fputs("\"/></svg>", out);
}

static void put_entry(const struct index_entry *entry, uint32_t number, FILE *out) {
    fprintf(out, "<article><h2><a href=\"%u/\">", number);
    put_escaped(entry->status ? member_text(entry->status, "job") : entry->folder, out);
    fputs("</a></h2><p class=\"muted\">", out);
    put_escaped(entry->folder, out);
    fputs("</p>", out);
    if (entry->trouble) {
        fputs("<p class=\"bad\">", out);
        put_escaped(entry->trouble, out);
        fputs("</p>", out);
    }
    if (entry->runs)
        put_live(entry, out);
    put_refusals(json_object_get(entry->runs, "decisions"), out);
    if (entry->status)
        put_last(entry->status, out);
    if (entry->status) /* without a run, the trouble says it */
        put_invocation(invocations_last(json_object_get(entry->runs, "invocations")), out);
    put_curve(entry, out);
    fputs("</article>\n", out);
}

void index_answer(const struct index_entry *entries, uint32_t count, struct http_answer *answer) {
    char *text = NULL;
    FILE *out = open_memstream(&text, &answer->length);
    if (!out)
        abort(); /* as without memory */
    const char *place = strstr(index_html, place_of_entries);
    assert(place);
    fwrite(index_html, 1, (size_t)(place - index_html), out);
    for (uint32_t i = 0; i < count; i++)
        put_entry(&entries[i], i + 1, out);
    fputs(place + strlen(place_of_entries), out);
    fclose(out);
    answer->status = 200;
    answer->type = "text/html; charset=utf-8";
    answer->fields = PAGE_POLICY;
    answer->body = answer->owned = text;
}
