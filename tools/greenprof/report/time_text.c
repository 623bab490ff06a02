// SPDX-License-Identifier: MIT
#include "time_text.h"

#include <stddef.h>
#include <string.h>
#include <time.h>

enum { NS_DIGITS = 9 };

#define SECOND_NS   1000000000u
#define DAY_NS      (86400ull * SECOND_NS)
#define SECONDS_MAX (UINT64_MAX / SECOND_NS - 1)

// Read "123" or "123.456" as nanoseconds. Returns what is behind it, NULL when there is none.
static const char *time_text_read_seconds(const char *text, uint64_t *ns)
{
    const char *at = text;
    uint64_t seconds = 0, unit = SECOND_NS;
    for (; *at >= '0' && *at <= '9'; at++) {
        seconds = seconds * 10 + (uint64_t)(*at - '0');
        if (seconds > SECONDS_MAX)
            return NULL;
    }
    if (at == text)
        return NULL;
    *ns = seconds * SECOND_NS;
    if (*at != '.')
        return at;
    for (at++; *at >= '0' && *at <= '9'; at++) {
        unit /= 10; // digits beyond nanoseconds do not count
        *ns += (uint64_t)(*at - '0') * unit;
    }
    return at;
}

// Read "HH:MM", "HH:MM:SS" or "HH:MM:SS.frac" as nanoseconds since midnight. Returns what is behind.
static const char *time_text_read_clock(const char *text, uint64_t *ns)
{
    struct tm clock = {0};
    uint64_t seconds = 0;
    const char *at = strptime(text, "%H:%M", &clock);
    if (at == NULL)
        return NULL;
    if (*at == ':' && (at = time_text_read_seconds(at + 1, &seconds)) == NULL)
        return NULL;
    *ns = ((uint64_t)clock.tm_hour * 3600 + (uint64_t)clock.tm_min * 60) * SECOND_NS + seconds;
    return seconds < 61ull * SECOND_NS ? at : NULL;
}

// "Z", "+02:00", "+0200" or nothing, which is local time: makes seconds since 1970 of a day.
static bool time_text_read_zone(const char *text, struct tm *day, time_t *seconds)
{
    struct tm zone = {0};
    day->tm_isdst = -1;
    if (*text == '\0') {
        *seconds = mktime(day);
        return *seconds != (time_t)-1;
    }
    const char *end = strptime(text, "%z", &zone); // also "Z"
    *seconds = timegm(day) - zone.tm_gmtoff;
    return end != NULL && *end == '\0';
}

static bool time_text_read_date(const char *text, uint64_t *ns)
{
    struct tm day = {0};
    uint64_t of_day = 0;
    time_t seconds;
    const char *at = strptime(text, "%Y-%m-%d", &day);
    if (at == NULL)
        return false;
    if ((*at == 'T' || *at == ' ') && (at = time_text_read_clock(at + 1, &of_day)) == NULL)
        return false;
    day.tm_hour = (int)(of_day / SECOND_NS / 3600);
    day.tm_min = (int)(of_day / SECOND_NS / 60 % 60);
    day.tm_sec = (int)(of_day / SECOND_NS % 60);
    if (!time_text_read_zone(at, &day, &seconds) || seconds < 0)
        return false;
    *ns = (uint64_t)seconds * SECOND_NS + of_day % SECOND_NS;
    return true;
}

bool gp_moment_parse(const char *text, gp_moment_t *moment)
{
    const char *end;
    moment->kind = text[0] == '-' ? GP_MOMENT_BEFORE_END : text[0] == '@' ? GP_MOMENT_ABSOLUTE : GP_MOMENT_SINCE_START;
    end = time_text_read_seconds(text + (moment->kind != GP_MOMENT_SINCE_START), &moment->ns);
    if (end != NULL && *end == '\0')
        return true;
    moment->kind = GP_MOMENT_OF_DAY;
    end = time_text_read_clock(text, &moment->ns);
    if (end != NULL && *end == '\0')
        return true;
    moment->kind = GP_MOMENT_ABSOLUTE;
    return time_text_read_date(text, &moment->ns);
}

static uint64_t time_text_midnight_before(uint64_t realtime_ns)
{
    time_t seconds = (time_t)(realtime_ns / SECOND_NS);
    struct tm day;
    if (localtime_r(&seconds, &day) == NULL)
        return 0;
    day.tm_hour = day.tm_min = day.tm_sec = 0;
    day.tm_isdst = -1;
    seconds = mktime(&day);
    return seconds > 0 ? (uint64_t)seconds * SECOND_NS : 0;
}

uint64_t gp_moment_resolve(const gp_moment_t *moment, uint64_t start_ns, uint64_t end_ns)
{
    uint64_t at = moment->ns;
    switch (moment->kind) {
    case GP_MOMENT_SINCE_START:
        return at;
    case GP_MOMENT_BEFORE_END:
        return at < end_ns ? end_ns - at : 0;
    case GP_MOMENT_OF_DAY:
        at += time_text_midnight_before(start_ns);
        if (at < start_ns && at + DAY_NS <= start_ns + end_ns) // the capture went on past midnight
            at += DAY_NS;
        break;
    case GP_MOMENT_ABSOLUTE:
        break;
    }
    return at > start_ns ? at - start_ns : 0;
}
