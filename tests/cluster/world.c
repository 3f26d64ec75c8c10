#include "tests/cluster/world.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "tests/cluster/network.h"

enum event_kind { EVENT_ALARM, EVENT_CALL, EVENT_POST, EVENT_SERVE };

struct event {
    double at_ns;
    uint64_t order;
    enum event_kind kind;
    struct process *process; /* or NULL */
    uint32_t life;
    uint64_t what;
    union {
        void *delivery;
        void (*call)(struct world *world, uint64_t what);
    };
};

/* An event that a process has not come to yet. */
struct waiting {
    struct waiting *next;
    struct event event;
};

void world_init(struct world *world, uint64_t seed, uint32_t processes) {
    *world = (struct world){.process_count = processes};
    random_init(&world->random, seed);
    world->processes = memory_new(processes, sizeof *world->processes);
    for (uint32_t i = 0; i < processes; i++)
        world->processes[i] =
            (struct process){.world = world, .number = i, .effects_left = UINT64_MAX};
    world->network = network_new(world);
}

void world_release(struct world *world) {
    world->ended = NULL;
    world->trace = false;
    for (uint32_t i = 0; i < world->process_count; i++)
        if (world->processes[i].alive)
            sim_process_end(&world->processes[i], false);
    for (uint32_t i = 0; i < world->event_count; i++)
        if (world->events[i].kind == EVENT_POST)
            network_lose(world->events[i].delivery);
    for (uint32_t i = 0; i < world->process_count; i++)
        free(world->processes[i].connections);
    network_free(world->network);
    free(world->events);
    free(world->processes);
}

void world_fail(struct world *world, const char *format, ...) {
    if (world->failure[0])
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(world->failure, sizeof world->failure, format, arguments);
    va_end(arguments);
    world->over = true;
    world_say(world, "WRONG: %s", world->failure);
}

void world_say(const struct world *world, const char *format, ...) {
    if (!world->trace)
        return;
    va_list arguments;
    va_start(arguments, format);
    printf("%12.6f  ", (double)world->now_ns / 1e9);
    vprintf(format, arguments);
    putchar('\n');
    va_end(arguments);
}

/* ---- events: a binary heap by time, then order ---- */

static bool earlier(const struct event *a, const struct event *b) {
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void put(struct world *world, struct event event) {
    assert(event.at_ns < 0x1p53); /* whole ns are exact */
    MEMORY_ROOM(world->events, world->event_count, world->event_capacity);
    uint32_t place = world->event_count++;
    while (place && earlier(&event, &world->events[(place - 1) / 2])) {
        world->events[place] = world->events[(place - 1) / 2];
        place = (place - 1) / 2;
    }
    world->events[place] = event;
}

static void add(struct world *world, struct event event) {
    event.at_ns = fmax(event.at_ns, world->exact_ns);
    event.order = world->events_made++;
    put(world, event);
}

static struct event take(struct world *world) {
    struct event first = world->events[0], last = world->events[--world->event_count];
    uint32_t place = 0;
    for (;;) {
        uint32_t child = 2 * place + 1;
        if (child >= world->event_count)
            break;
        if (child + 1 < world->event_count &&
            earlier(&world->events[child + 1], &world->events[child]))
            child++;
        if (!earlier(&world->events[child], &last))
            break;
        world->events[place] = world->events[child];
        place = child;
    }
    world->events[place] = last;
    return first;
}

void world_alarm(struct process *process, int64_t at_ns, uint64_t which) {
    world_alarm_exact(process, (double)at_ns, which);
}

void world_alarm_exact(struct process *process, double at_ns, uint64_t which) {
    add(process->world, (struct event){.at_ns = at_ns,
                                       .kind = EVENT_ALARM,
                                       .process = process,
                                       .life = process->life,
                                       .what = which});
}

void world_call(struct world *world, int64_t at_ns,
                void (*call)(struct world *world, uint64_t what), uint64_t what) {
    add(world,
        (struct event){.at_ns = (double)at_ns, .kind = EVENT_CALL, .call = call, .what = what});
}

void world_post(struct process *process, double at_ns, void *delivery) {
    add(process->world, (struct event){.at_ns = at_ns,
                                       .kind = EVENT_POST,
                                       .process = process,
                                       .life = process->life,
                                       .delivery = delivery});
}

static bool lives(const struct event *event) {
    return event->process->alive && event->process->life == event->life;
}

/* Keeps its place among events of that time: a connection does not change the order of what it
 * carries. */
static void put_off(struct world *world, struct event *event, double until_ns) {
    event->at_ns = until_ns;
    put(world, *event);
}

static void handle(const struct event *event) {
    if (event->kind == EVENT_POST)
        network_deliver(event->delivery);
    else
        event->process->behaviour->alarm(event->process, event->what);
}

/* ---- processes that take time ---- */

double world_free_ns(const struct process *process) {
    return fmax(process->busy_until_ns, process->world->exact_ns);
}

bool world_more_waits(const struct process *process) {
    return process->line && process->line->next;
}

void world_spend(struct process *process, double ns) {
    process->busy_until_ns = world_free_ns(process) + ns;
    process->worked_ns += ns;
}

static double cost_of(const struct event *event) {
    return event->kind == EVENT_POST
               ? event->process->behaviour->cost(event->process, network_type(event->delivery))
               : 0;
}

/* The first that waits is begun, and handled when its time has passed. */
static void begin_next(struct process *process) {
    if (!process->line)
        return;
    world_spend(process, cost_of(&process->line->event));
    add(process->world, (struct event){.at_ns = process->busy_until_ns,
                                       .kind = EVENT_SERVE,
                                       .process = process,
                                       .life = process->life});
}

static void join_line(struct process *process, const struct event *event) {
    struct waiting *last = memory_new(1, sizeof *last);
    bool idle = !process->line;
    last->event = *event;
    *(idle ? &process->line : process->line_end) = last;
    process->line_end = &last->next;
    if (idle)
        begin_next(process);
}

static void serve(struct process *process) {
    struct waiting *first = process->line;
    handle(&first->event);
    process->line = first->next;
    free(first);
    begin_next(process);
}

/* ---- what happens ---- */

static void meet(struct world *world, struct event *event) {
    double until_ns = event->kind == EVENT_POST ? network_due(event->delivery) : 0;
    if (until_ns > 0)
        put_off(world, event, until_ns);
    else if (event->kind == EVENT_SERVE)
        serve(event->process);
    else if (event->process->behaviour->cost && cost_of(event) >= 0)
        join_line(event->process, event);
    else
        handle(event);
}

static void happen(struct world *world, struct event *event) {
    struct process *process = event->process;
    if (process && lives(event) && process->paused_until_ns > world->now_ns) {
        put_off(world, event, (double)process->paused_until_ns);
        return;
    }
    if (event->kind == EVENT_CALL)
        event->call(world, event->what);
    else if (lives(event))
        meet(world, event);
    else if (event->kind == EVENT_POST)
        network_lose(event->delivery);
    if (process && process->dying)
        sim_process_end(process, false);
    /* The first error wins, so one that is left would be the reason of whatever fails next. */
    if (*error_text())
        world_fail(world, "an error was left: %s", error_text());
    error_clear();
}

void world_run(struct world *world, int64_t limit_ns) {
    while (world->event_count && !world->over && world->events[0].at_ns <= (double)limit_ns) {
        struct event event = take(world);
        world->exact_ns = event.at_ns;
        world->now_ns = (int64_t)event.at_ns;
        happen(world, &event);
    }
}

/* ---- processes ---- */

void sim_process_begin(struct process *process) {
    process->life++;
    process->alive = true;
    process->paused_until_ns = 0;
    process->effects_left = UINT64_MAX;
    process->dying = process->greeted = false;
    world_say(process->world, "%s begins its life %u", process->name, process->life);
    process->behaviour->begin(process);
}

void sim_process_end(struct process *process, bool orderly) {
    if (!process->alive)
        return;
    assert(!process->line);
    world_say(process->world, "%s %s", process->name, orderly ? "exits" : "is dead");
    process->alive = process->dying = false;
    network_ended(process, orderly);
    process->behaviour->end(process);
    process->state = NULL;
    error_clear(); /* what it had not said yet ends with it */
    if (process->world->ended)
        process->world->ended(process);
}

void process_pause(struct process *process, int64_t until_ns) {
    if (!process->alive || until_ns <= process->paused_until_ns)
        return;
    world_say(process->world, "%s is stopped for %.3f s", process->name,
              (double)(until_ns - process->world->now_ns) / 1e9);
    process->paused_until_ns = until_ns;
}

bool process_acts(struct process *process) {
    if (process->effects_left == UINT64_MAX)
        return true;
    process->dying = process->effects_left == 0;
    process->effects_left -= !process->dying;
    return !process->dying;
}

/* ---- chance ---- */

bool world_chance(struct world *world, uint64_t times) {
    return random_below(&world->random, times) == 0;
}

uint64_t world_between(struct world *world, uint64_t least, uint64_t most) {
    return least + random_below(&world->random, most - least + 1);
}

int64_t world_delay(struct world *world, int64_t usual_ns) {
    double factor = -log(1 - random_unit(&world->random));
    if (world_chance(world, 40))
        factor *= 20;
    return (int64_t)((double)usual_ns * (0.2 + factor));
}
