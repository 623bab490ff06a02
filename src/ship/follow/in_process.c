// SPDX-License-Identifier: MIT
#include "ship/follow/in_process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/number.h"
#include "capture/read/reader.h"
#include "greenprof/prof.h"
#include "ship/follow/captures_watched.h"
#include "ship/send/destination.h"
#include "ship/send/http.h"

enum {
    URL_SIZE = 2048,
    LAST_LOOKS = 3,
    FILE_TIME_NS = 10000000, // by as much a file's times may be behind the clock
};

#define SECOND_NS UINT64_C(1000000000)
#define BEGUN_NS  (10 * SECOND_NS)

typedef struct plan {   // by the URL
    char url[URL_SIZE]; // without the options of a consumer
    gp_fleet_url_t parsed;
    uint64_t grain_ns, interval_ns, rate;
    bool no_traces, with_info;
} plan_t;

// A text that is asked for in the URL is the consumer's; the rest is the destination's.
static const char *const own_options[] = {"grain", "interval", "info", "traces", "rate", "spool", "spool_size", NULL};

static bool in_process_is_own(const char *option)
{
    size_t len = strcspn(option, "=&");
    for (size_t i = 0; own_options[i] != NULL; i++)
        if (strlen(own_options[i]) == len && strncmp(own_options[i], option, len) == 0)
            return true;
    return false;
}

static int in_process_strip(const char *url, char out[URL_SIZE])
{
    size_t len = strcspn(url, "?");
    char mark = '?';
    if (strlen(url) >= URL_SIZE)
        return -EINVAL;
    memcpy(out, url, len);
    for (const char *at = url[len] == '?' ? url + len + 1 : ""; *at != '\0';) {
        size_t part = strcspn(at, "&");
        if (!in_process_is_own(at)) {
            out[len++] = mark;
            memcpy(out + len, at, part);
            len += part;
            mark = '&';
        }
        at += part + (at[part] == '&');
    }
    out[len] = '\0';
    return 0;
}

// "10s", "500ms".
static bool in_process_read_time(const gp_fleet_url_t *url, const char *name, uint64_t *ns)
{
    const char *text = gp_fleet_url_option(url, name);
    const char *unit;
    if (text == NULL)
        return true;
    double value = gp_number_read(text, &unit);
    *ns = (uint64_t)(value * (strcmp(unit, "ms") == 0 ? 1e6 : strcmp(unit, "m") == 0 ? 60e9 : 1e9) + 0.5);
    return unit != text && value > 0 && value <= 86400 &&
           (strcmp(unit, "s") == 0 || strcmp(unit, "ms") == 0 || strcmp(unit, "m") == 0);
}

static bool in_process_is_option(const gp_fleet_url_t *url, const char *name, const char *value)
{
    const char *text = gp_fleet_url_option(url, name);
    return text != NULL && strcmp(text, value) == 0;
}

// Returns 0, -EINVAL, -ENOMEM and what is wrong; to be freed in any case.
static int in_process_read_url(plan_t *plan, const char *url, char error[GP_FLEET_ERROR_SIZE])
{
    *plan = (plan_t){.grain_ns = 10 * SECOND_NS};
    int result = gp_fleet_url_parse(&plan->parsed, url, error);
    if (result == 0)
        result = in_process_strip(url, plan->url);
    if (result < 0)
        return result;
    bool is_right = in_process_read_time(&plan->parsed, "grain", &plan->grain_ns) && plan->grain_ns % SECOND_NS == 0;
    plan->interval_ns = plan->grain_ns;
    is_right =
        is_right && in_process_read_time(&plan->parsed, "interval", &plan->interval_ns) && plan->interval_ns >= 1000000;
    const char *rate = gp_fleet_url_option(&plan->parsed, "rate");
    plan->rate = rate != NULL ? strtoull(rate, NULL, 10) : 0;
    plan->with_info = in_process_is_option(&plan->parsed, "info", "1");
    plan->no_traces = in_process_is_option(&plan->parsed, "traces", "0");
    if (!is_right)
        snprintf(error, GP_FLEET_ERROR_SIZE, "grain= and interval= are times, as 10s");
    return is_right ? 0 : -EINVAL;
}

PROF_API prof_ship_check_t prof_ship_check;

int prof_ship_check(const char *url, uint64_t *id, char error[GP_HERE_ERROR_SIZE])
{
    plan_t plan;
    gp_fleet_url_t parsed = {0};
    void *destination = NULL;
    _Static_assert((int)GP_HERE_ERROR_SIZE >= (int)GP_FLEET_ERROR_SIZE, "it fits");
    int result = in_process_read_url(&plan, url, error);
    if (result == 0)
        result = gp_fleet_url_parse(&parsed, plan.url, error);
    const gp_destination_kind_t *kind = result == 0 ? gp_destination_find(parsed.scheme) : NULL;
    if (result == 0 && kind == NULL)
        result = -ENOTSUP;
    if (result == 0)
        result = kind->open(&destination, &parsed, error);
    if (result == 0) {
        kind->close(destination);
        *id = gp_ship_destination_id(&parsed);
    }
    gp_fleet_url_free(&parsed);
    gp_fleet_url_free(&plan.parsed);
    return result;
}

// Part the descriptors of this thread from the program's: a child by fork has none of this thread's connections, and
// descriptors that the program closes are closed. Where the kernel cannot (before 5.9), they are shared.
static void in_process_part_descriptors(void)
{
    if (syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_UNSHARE) != 0)
        return;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3 && null >= 0; fd++)
        dup2(null, fd);
    if (null > 2)
        close(null);
}

// The program's standard error is not for this: the counters say what is wrong.
static void in_process_say(const char *subject, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void in_process_say(const char *subject, const char *format, ...)
{
    (void)subject, (void)format;
}

static int in_process_journal_folder(char path[PATH_MAX], const char *folder, uint64_t id)
{
    int len = snprintf(path, PATH_MAX, "%s/to-%016" PRIx64, folder, id);
    return len > 0 && len < PATH_MAX ? 0 : -ENAMETOOLONG;
}

// --- removing what has arrived

typedef struct life {
    uint32_t pid;
    bool has_ended;
} life_t;

static int in_process_see_header(void *context, const gp_file_header_t *header)
{
    ((life_t *)context)->pid = header->pid;
    return 0;
}

static int in_process_see_end(void *context, const gp_end_record_t *end)
{
    (void)end;
    ((life_t *)context)->has_ended = true;
    return 0;
}

enum fate {
    GROWS,  // a process may write to it; or has just begun it, and has its header still to write
    UNSEEN, // over, but written to since the last look
    LEFT,
};

static enum fate in_process_fate_of(int fd, uint64_t last_look_ns)
{
    static const gp_reader_handlers_t handlers = {.header = in_process_see_header, .end = in_process_see_end};
    char error[GP_READER_ERROR_SIZE];
    gp_reader_summary_t summary;
    gp_reader_part_t part = {.from = 0};
    life_t life = {0};
    struct stat status;
    if (fstat(fd, &status) != 0)
        return LEFT;
    uint64_t written_ns = (uint64_t)status.st_mtim.tv_sec * SECOND_NS + (uint64_t)status.st_mtim.tv_nsec;
    if (gp_reader_read_part(fd, &part, &handlers, &life, &summary, error) < 0)
        return written_ns + BEGUN_NS < last_look_ns ? LEFT : GROWS;
    if (!life.has_ended && (kill((pid_t)life.pid, 0) == 0 || errno != ESRCH))
        return GROWS;
    // This process' own ends before it is looked at last.
    return written_ns < last_look_ns || life.pid == (uint32_t)getpid() ? LEFT : UNSEEN;
}

// The fate of a folder: the captures' that keeps it longest. Captures that are left are removed, if they are to be.
static enum fate in_process_each_capture(int folder, bool removes, uint64_t last_look_ns)
{
    enum fate worst = LEFT;
    int copy = dup(folder);
    DIR *entries = copy >= 0 ? fdopendir(copy) : NULL;
    if (entries == NULL)
        return GROWS;
    rewinddir(entries);
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        if (!gp_captures_watched_is_capture(entry->d_name))
            continue;
        int fd = openat(folder, entry->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        enum fate fate = fd >= 0 ? in_process_fate_of(fd, last_look_ns) : LEFT;
        if (fd >= 0)
            close(fd);
        if (fate == LEFT && removes)
            unlinkat(folder, entry->d_name, 0);
        worst = fate < worst ? fate : worst;
    }
    closedir(entries);
    return worst;
}

static void in_process_remove_journal(const char *path)
{
    static const char *const names[] = {"ship.journal", "ship.journal.new", "ship.lock"};
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    for (size_t i = 0; folder >= 0 && i < sizeof(names) / sizeof(names[0]); i++)
        unlinkat(folder, names[i], 0);
    if (folder >= 0)
        close(folder);
    rmdir(path);
}

static bool in_process_has_journals(const char *folder)
{
    bool found = false;
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;)
        found |= strncmp(entry->d_name, "to-", 3) == 0;
    if (entries != NULL)
        closedir(entries);
    return found;
}

// All that was seen has arrived at this destination. The last one to have all of it removes the captures. Returns
// whether it is worth looking once more.
static bool in_process_clean_up(const char *folder, const char *journal, uint64_t last_look_ns)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    enum fate fate = in_process_each_capture(fd, false, last_look_ns);
    if (fate == LEFT) {
        in_process_remove_journal(journal);
        if (!in_process_has_journals(folder)) {
            in_process_each_capture(fd, true, last_look_ns);
            rmdir(folder);
        }
    }
    close(fd);
    return fate == UNSEEN;
}

// --- shipping

static int in_process_ship(const gp_in_process_t *here, const plan_t *plan, uint64_t id, const char *folder,
                           const char *capture)
{
    char journal[PATH_MAX];
    const char *url = plan->url, *path = capture != NULL ? capture : folder;
    bool is_own_folder = folder == here->folder;
    uint64_t last_look_ns = 0;
    if (in_process_journal_folder(journal, folder, id) < 0)
        return -ENAMETOOLONG;
    gp_ship_options_t options = {
        .paths = &path,
        .path_count = 1,
        .urls = &url,
        .url_count = 1,
        .state = journal,
        .grain_ns = plan->grain_ns,
        .interval_ns = plan->interval_ns,
        .rows_per_s = plan->rate,
        .no_traces = plan->no_traces,
        .with_info = plan->with_info,
        .once = !is_own_folder,
        .never_asks = true,
        .drops_removed = true,
        .say = in_process_say,
        .state_now = here->state,
        .last_look_ns = &last_look_ns,
    };
    int status = gp_ship(&options);
    if (status == GP_SHIP_BUSY)
        return -EBUSY;
    if (atomic_load_explicit(&here->state->order, memory_order_acquire) == GP_SHIP_STOP)
        return -EAGAIN; // not all has arrived
    for (int i = 0; status == 0 && in_process_clean_up(folder, journal, last_look_ns) && i < LAST_LOOKS; i++) {
        const struct timespec tick = {.tv_nsec = FILE_TIME_NS};
        nanosleep(&tick, NULL);
        options.once = true;
        status = gp_ship(&options);
    }
    return status == 0 ? 0 : -EAGAIN;
}

static int in_process_is_folder_name(const struct dirent *entry)
{
    return strncmp(entry->d_name, "ship-", 5) == 0;
}

// Take over the folders that earlier processes left for this destination.
static void in_process_adopt(const gp_in_process_t *here, const plan_t *plan, uint64_t id)
{
    struct dirent **entries;
    int count = scandir(here->spool, &entries, in_process_is_folder_name, alphasort), result = 0;
    for (int i = 0; i < count; i++) {
        char folder[PATH_MAX], journal[PATH_MAX];
        struct stat status;
        int len = snprintf(folder, sizeof(folder), "%s/%s", here->spool, entries[i]->d_name);
        bool is_ours = len > 0 && (size_t)len < sizeof(folder) && strcmp(folder, here->folder) != 0 &&
                       in_process_journal_folder(journal, folder, id) == 0 && lstat(journal, &status) == 0 &&
                       S_ISDIR(status.st_mode) && status.st_uid == geteuid();
        if (is_ours && (result == 0 || result == -EBUSY))
            result = in_process_ship(here, plan, id, folder, NULL);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

PROF_API prof_ship_run_t prof_ship_run;

int prof_ship_run(const gp_in_process_t *here)
{
    plan_t plan;
    char error[GP_FLEET_ERROR_SIZE];
    gp_fleet_url_t parsed = {0};
    in_process_part_descriptors();
    int result = here->size == sizeof(*here) ? in_process_read_url(&plan, here->url, error) : -EINVAL;
    if (result == 0)
        result = gp_fleet_url_parse(&parsed, plan.url, error);
    if (result == 0) {
        uint64_t id = gp_ship_destination_id(&parsed);
        in_process_adopt(here, &plan, id);
        result = in_process_ship(here, &plan, id, here->folder, here->capture);
    }
    gp_fleet_url_free(&parsed);
    gp_fleet_url_free(&plan.parsed);
    return result;
}
