#include "coordinator/run/starving.h"

#include <signal.h>
#include <sys/wait.h>

#include "base/memory.h"
#include "base/memory_limit.h"

struct starving starving_begin(const struct memory_need *need) {
    return (struct starving){*need, memory_kills()};
}

char *starving_ending(struct starving *starving, const struct launched *launched,
                      enum ending *kind) {
    int status = launched->status;
    uint64_t before = starving->kills;
    bool refused = WIFEXITED(status) && WEXITSTATUS(status) == MEMORY_STATUS;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        starving->kills = memory_kills();
    *kind = refused ? ENDED_REFUSED : starving->kills > before ? ENDED_KILLED : ENDED;
    return *kind == ENDED ? memory_format("it %s", launch_ending(launched))
                          : memory_need_unmet(&starving->need, launched->role == ROLE_SHARD);
}
