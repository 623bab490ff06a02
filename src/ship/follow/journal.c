// SPDX-License-Identifier: MIT
#include "ship/follow/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/index.h"
#include "base/memory.h"

enum {
    COMPACT_BYTES = 1 << 18,
    LINE_BYTES = 64,
    HEAD = 17,           // checksum and a space
    BYTES_MAX = 1 << 28, // of a file that is a journal
};

typedef struct position { // of a capture at a destination
    uint64_t destination, capture, to, seen_s;
} position_t;

typedef struct group {
    uint64_t destination;
    gp_journal_piece_t *pieces;
    size_t count;
} group_t;

struct gp_journal {
    char *folder;
    int folder_fd, lock_fd, fd;
    uint64_t bytes; // of whole lines
    uint64_t since_s;
    position_t *positions;
    size_t position_count, position_capacity;
    gp_index_t index;
    group_t *groups;
    size_t group_count, group_capacity;
};

static const char name[] = "ship.journal", new_name[] = "ship.journal.new", lock_name[] = "ship.lock";

typedef struct line {
    char *text;
    size_t len, room;
    int error;
} line_t;

static void journal_add(line_t *line, const char *word, uint64_t value, bool is_hex)
{
    if (line->room - line->len < LINE_BYTES) {
        size_t room = 2 * line->room + 4096;
        char *text = realloc(line->text, room);
        if (text == NULL) {
            line->error = -ENOMEM;
            return;
        }
        line->text = text;
        line->room = room;
    }
    if (word != NULL)
        line->len += (size_t)sprintf(line->text + line->len, " %s", word);
    else
        line->len += (size_t)sprintf(line->text + line->len, is_hex ? " %" PRIx64 : " %" PRIu64, value);
}

// Room for the checksum, and the word behind it: "0000000000000000 B".
static void journal_begin_line(line_t *line, const char *word)
{
    journal_add(line, "", 0, false); // a space: makes room
    if (line->error != 0)
        return;
    memset(line->text + line->len - 1, '0', HEAD - 1);
    line->len += HEAD - 2;
    journal_add(line, word, 0, false);
}

// Put the checksum in front of the text from `from` on, and end the line.
static void journal_end_line(line_t *line, size_t from)
{
    char sum[HEAD + 1];
    if (line->error != 0)
        return;
    snprintf(sum, sizeof(sum), "%016" PRIx64, gp_hash_bytes(line->text + from + HEAD - 1, line->len - from - HEAD + 1));
    memcpy(line->text + from, sum, HEAD - 1);
    line->text[line->len++] = '\n';
}

static bool journal_same_position(const void *owner, uint32_t number, const void *key)
{
    const position_t *a = &((const gp_journal_t *)owner)->positions[number], *b = key;
    return a->destination == b->destination && a->capture == b->capture;
}

static uint64_t journal_hash_of(const position_t *position)
{
    return gp_hash_more(gp_hash_u64(position->destination), position->capture);
}

static int journal_set_position(gp_journal_t *journal, position_t position)
{
    uint32_t number =
        gp_index_find(&journal->index, journal_hash_of(&position), journal_same_position, journal, &position);
    if (number != GP_INDEX_NONE) {
        journal->positions[number] = position;
        return 0;
    }
    if (gp_grow(&journal->positions, &journal->position_capacity, journal->position_count, sizeof(position)) < 0 ||
        gp_index_add(&journal->index, journal_hash_of(&position), (uint32_t)journal->position_count) < 0)
        return -ENOMEM;
    journal->positions[journal->position_count++] = position;
    return 0;
}

static group_t *journal_find_group(const gp_journal_t *journal, uint64_t destination)
{
    for (size_t i = 0; i < journal->group_count; i++)
        if (journal->groups[i].destination == destination)
            return &journal->groups[i];
    return NULL;
}

static int journal_set_group(gp_journal_t *journal, uint64_t destination, const gp_journal_piece_t *pieces,
                             size_t count)
{
    group_t *group = journal_find_group(journal, destination);
    gp_journal_piece_t *copy = malloc((count + 1) * sizeof(*copy));
    if (copy == NULL)
        return -ENOMEM;
    if (group == NULL) {
        if (gp_grow(&journal->groups, &journal->group_capacity, journal->group_count, sizeof(*group)) < 0) {
            free(copy);
            return -ENOMEM;
        }
        group = &journal->groups[journal->group_count++];
        *group = (group_t){.destination = destination};
    }
    if (count > 0)
        memcpy(copy, pieces, count * sizeof(*copy));
    free(group->pieces);
    group->pieces = copy;
    group->count = count;
    return 0;
}

static uint64_t journal_now_s(void)
{
    return (uint64_t)time(NULL);
}

static int journal_apply_end(gp_journal_t *journal, uint64_t destination)
{
    group_t *group = journal_find_group(journal, destination);
    int result = 0;
    for (size_t i = 0; group != NULL && i < group->count && result == 0; i++)
        result = journal_set_position(
            journal, (position_t){destination, group->pieces[i].capture, group->pieces[i].to, journal_now_s()});
    if (group != NULL && result == 0)
        group->count = 0;
    return result;
}

static bool journal_number(char **at, int base, uint64_t *value)
{
    char *end;
    if (**at != ' ')
        return false;
    *value = strtoull(*at, &end, base);
    bool is_one = end > *at + 1;
    *at = end;
    return is_one;
}

static int journal_apply_begin(gp_journal_t *journal, char *at)
{
    uint64_t destination, count;
    if (!journal_number(&at, 16, &destination) || !journal_number(&at, 10, &count) || count > GP_JOURNAL_GROUP_MAX)
        return -EBADMSG;
    gp_journal_piece_t *pieces = calloc(count + 1, sizeof(*pieces));
    int result = pieces != NULL ? 0 : -ENOMEM;
    for (uint64_t i = 0; i < count && result == 0; i++)
        if (!journal_number(&at, 16, &pieces[i].capture) || !journal_number(&at, 10, &pieces[i].from) ||
            !journal_number(&at, 10, &pieces[i].to))
            result = -EBADMSG;
    if (result == 0)
        result = journal_set_group(journal, destination, pieces, count);
    free(pieces);
    return result;
}

static void journal_forget_all(gp_journal_t *journal)
{
    gp_index_free(&journal->index);
    journal->index = (gp_index_t){0};
    journal->position_count = 0;
    for (size_t i = 0; i < journal->group_count; i++)
        journal->groups[i].count = 0;
}

// Apply a line without its end. Returns -EBADMSG for other bytes.
static int journal_apply(gp_journal_t *journal, char *line, size_t len)
{
    char sum[HEAD];
    position_t position;
    if (len < HEAD + 2)
        return -EBADMSG;
    snprintf(sum, sizeof(sum), "%016" PRIx64, gp_hash_bytes(line + HEAD - 1, len - HEAD + 1));
    if (memcmp(sum, line, HEAD - 1) != 0)
        return -EBADMSG;
    char *at = line + HEAD + 1;
    switch (line[HEAD]) {
    case 'B':
        return journal_apply_begin(journal, at);
    case 'J':
        journal_forget_all(journal);
        return journal_number(&at, 10, &journal->since_s) ? 0 : -EBADMSG;
    case 'E':
        return journal_number(&at, 16, &position.destination) ? journal_apply_end(journal, position.destination)
                                                              : -EBADMSG;
    case 'P':
        if (!journal_number(&at, 16, &position.destination) || !journal_number(&at, 16, &position.capture) ||
            !journal_number(&at, 10, &position.to) || !journal_number(&at, 10, &position.seen_s))
            return -EBADMSG;
        return journal_set_position(journal, position);
    default:
        return -EBADMSG;
    }
}

static int journal_read_all(int fd, char **text, size_t *len)
{
    struct stat status;
    if (fstat(fd, &status) < 0)
        return -errno;
    if (!S_ISREG(status.st_mode) || status.st_size > BYTES_MAX)
        return -EFBIG;
    *text = malloc((size_t)status.st_size + 1);
    *len = 0;
    while (*text != NULL && *len < (size_t)status.st_size) {
        ssize_t got = read(fd, *text + *len, (size_t)status.st_size - *len);
        if (got < 0 && errno != EINTR)
            return -errno;
        if (got == 0)
            break;
        *len += got > 0 ? (size_t)got : 0;
    }
    return *text != NULL ? 0 : -ENOMEM;
}

// Load the journal. Whole lines count; a torn one may be behind the last.
//   is_new: set, where former knowledge is lost, or there was none.
static int journal_load(gp_journal_t *journal, bool *is_new)
{
    char *text = NULL;
    size_t len = 0;
    int result = journal_read_all(journal->fd, &text, &len);
    for (size_t at = 0; result == 0 && at < len;) {
        char *end = memchr(text + at, '\n', len - at);
        if (end == NULL)
            break;
        *end = '\0';
        result = journal_apply(journal, text + at, (size_t)(end - text) - at);
        at = (size_t)(end - text) + 1;
        journal->bytes = result == 0 ? at : journal->bytes;
    }
    // A torn line is the last one.
    *is_new = journal->bytes == 0 ||
              (result == -EBADMSG && memchr(text + journal->bytes, '\0', len - journal->bytes) != NULL &&
               strlen(text + journal->bytes) + 1 < len - journal->bytes);
    free(text);
    return result == -EBADMSG ? 0 : result;
}

static int journal_write_whole(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t put = write(fd, text, len);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return -errno;
        text += put;
        len -= (size_t)put;
    }
    return fdatasync(fd) < 0 ? -errno : 0;
}

static int journal_append(gp_journal_t *journal, const line_t *line)
{
    if (line->error != 0)
        return line->error;
    // The rest of a failed attempt is overwritten, and does not count: it has no line end, or no right checksum.
    if (ftruncate(journal->fd, (off_t)journal->bytes) < 0 || lseek(journal->fd, (off_t)journal->bytes, SEEK_SET) < 0)
        return -errno;
    int result = journal_write_whole(journal->fd, line->text, line->len);
    if (result == 0)
        journal->bytes += line->len;
    else if (ftruncate(journal->fd, (off_t)journal->bytes) < 0)
        return -errno;
    return result;
}

static void journal_add_group(line_t *line, const group_t *group)
{
    size_t from = line->len;
    journal_begin_line(line, "B");
    journal_add(line, NULL, group->destination, true);
    journal_add(line, NULL, group->count, false);
    for (size_t i = 0; i < group->count; i++) {
        journal_add(line, NULL, group->pieces[i].capture, true);
        journal_add(line, NULL, group->pieces[i].from, false);
        journal_add(line, NULL, group->pieces[i].to, false);
    }
    journal_end_line(line, from);
}

static void journal_add_position(line_t *line, const position_t *position)
{
    size_t from = line->len;
    journal_begin_line(line, "P");
    journal_add(line, NULL, position->destination, true);
    journal_add(line, NULL, position->capture, true);
    journal_add(line, NULL, position->to, false);
    journal_add(line, NULL, position->seen_s, false);
    journal_end_line(line, from);
}

static void journal_add_since(line_t *line, uint64_t since_s)
{
    size_t from = line->len;
    journal_begin_line(line, "J");
    journal_add(line, NULL, since_s, false);
    journal_end_line(line, from);
}

static int journal_begin_anew(gp_journal_t *journal)
{
    line_t line = {0};
    journal_forget_all(journal);
    journal->since_s = journal_now_s();
    journal_add_since(&line, journal->since_s);
    int result = journal_append(journal, &line);
    free(line.text);
    return result;
}

static int journal_latest_first(const void *left, const void *right)
{
    const position_t *a = left, *b = right;
    return (a->seen_s < b->seen_s) - (a->seen_s > b->seen_s);
}

static void journal_forget(gp_journal_t *journal)
{
    uint64_t now = journal_now_s();
    if (journal->position_count <= GP_JOURNAL_CAPTURES)
        return;
    qsort(journal->positions, journal->position_count, sizeof(position_t), journal_latest_first);
    journal->position_count = GP_JOURNAL_CAPTURES / 2;
    journal->since_s = now > journal->since_s ? now : journal->since_s;
    gp_index_free(&journal->index);
    journal->index = (gp_index_t){0};
    for (size_t i = 0; i < journal->position_count; i++)
        gp_index_add(&journal->index, journal_hash_of(&journal->positions[i]), (uint32_t)i);
}

// Write a new file beside the old one, and have it take its place.
static int journal_compact(gp_journal_t *journal)
{
    line_t line = {0};
    journal_forget(journal);
    if (journal->since_s != 0)
        journal_add_since(&line, journal->since_s);
    for (size_t i = 0; i < journal->position_count; i++)
        journal_add_position(&line, &journal->positions[i]);
    for (size_t i = 0; i < journal->group_count; i++)
        if (journal->groups[i].count > 0)
            journal_add_group(&line, &journal->groups[i]);
    int fd =
        openat(journal->folder_fd, new_name, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    int result = fd < 0 ? -errno : line.error;
    if (result == 0)
        result = journal_write_whole(fd, line.text, line.len);
    if (result == 0 && renameat(journal->folder_fd, new_name, journal->folder_fd, name) < 0)
        result = -errno;
    if (result == 0) {
        fsync(journal->folder_fd);
        close(journal->fd);
        journal->fd = fd;
        journal->bytes = line.len;
    } else if (fd >= 0) {
        close(fd);
        unlinkat(journal->folder_fd, new_name, 0);
    }
    free(line.text);
    return result;
}

static int journal_fail(char *error, const char *path, int result, const char *what)
{
    snprintf(error, GP_FLEET_ERROR_SIZE, "%s: %s", path, what);
    return result;
}

static int journal_make_folders(char *path)
{
    for (char *at = path + 1; *at != '\0'; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        int result = mkdir(path, 0700);
        *at = '/';
        if (result < 0 && errno != EEXIST)
            return -errno;
    }
    return mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

static int journal_open_files(gp_journal_t *journal)
{
    int result = journal_make_folders(journal->folder);
    if (result < 0)
        return result;
    journal->folder_fd = open(journal->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (journal->folder_fd < 0)
        return -errno;
    journal->lock_fd =
        openat(journal->folder_fd, lock_name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (journal->lock_fd < 0)
        return -errno;
    if (flock(journal->lock_fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? -EBUSY : -errno;
    journal->fd = openat(journal->folder_fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    return journal->fd < 0 ? -errno : 0;
}

int gp_journal_open(gp_journal_t **out, const char *folder, char error[GP_FLEET_ERROR_SIZE])
{
    gp_journal_t *journal = calloc(1, sizeof(*journal));
    *out = NULL;
    if (journal == NULL)
        return journal_fail(error, folder, -ENOMEM, strerror(ENOMEM));
    journal->folder_fd = journal->lock_fd = journal->fd = -1;
    journal->folder = strdup(folder);
    int result = journal->folder != NULL ? journal_open_files(journal) : -ENOMEM;
    bool is_new = false;
    if (result == 0)
        result = journal_load(journal, &is_new);
    if (result == 0 && is_new)
        result = journal_begin_anew(journal);
    if (result < 0) {
        gp_journal_close(journal);
        return journal_fail(error, folder, result,
                            result == -EBUSY ? "another 'greenprof ship' uses it" : strerror(-result));
    }
    *out = journal;
    return 0;
}

uint64_t gp_journal_since_s(const gp_journal_t *journal)
{
    return journal->since_s;
}

uint64_t gp_journal_arrived(gp_journal_t *journal, uint64_t destination, uint64_t capture)
{
    const position_t key = {.destination = destination, .capture = capture};
    uint32_t found = gp_index_find(&journal->index, journal_hash_of(&key), journal_same_position, journal, &key);
    if (found == GP_INDEX_NONE)
        return 0;
    journal->positions[found].seen_s = journal_now_s();
    return journal->positions[found].to;
}

const gp_journal_piece_t *gp_journal_pending(const gp_journal_t *journal, uint64_t destination, size_t *count)
{
    const group_t *group = journal_find_group(journal, destination);
    *count = group != NULL ? group->count : 0;
    return *count > 0 ? group->pieces : NULL;
}

int gp_journal_begin(gp_journal_t *journal, uint64_t destination, const gp_journal_piece_t *pieces, size_t count)
{
    line_t line = {0};
    const group_t group = {destination, (gp_journal_piece_t *)pieces, count};
    if (journal->position_count > GP_JOURNAL_CAPTURES ||
        journal->bytes > COMPACT_BYTES + 2 * journal->position_count * LINE_BYTES)
        journal_compact(journal); // else it stays long
    journal_add_group(&line, &group);
    int result = journal_append(journal, &line);
    free(line.text);
    return result == 0 ? journal_set_group(journal, destination, pieces, count) : result;
}

int gp_journal_end(gp_journal_t *journal, uint64_t destination)
{
    line_t line = {0};
    journal_begin_line(&line, "E");
    journal_add(&line, NULL, destination, true);
    journal_end_line(&line, 0);
    int result = journal_append(journal, &line);
    free(line.text);
    return result == 0 ? journal_apply_end(journal, destination) : result;
}

void gp_journal_close(gp_journal_t *journal)
{
    if (journal == NULL)
        return;
    const int fds[] = {journal->fd, journal->lock_fd, journal->folder_fd};
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    for (size_t i = 0; i < journal->group_count; i++)
        free(journal->groups[i].pieces);
    free(journal->groups);
    free(journal->positions);
    gp_index_free(&journal->index);
    free(journal->folder);
    free(journal);
}
