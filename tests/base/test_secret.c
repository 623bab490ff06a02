// SPDX-License-Identifier: MIT
// No password of a URL is left in a text, wherever it is and whatever it is made of.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/secret.h"

static void check(const char *text, const char *without, const char *instead)
{
    char *removed = gp_secret_masked(text, ""), *masked = gp_secret_masked(text, "PASSWORD"), *place = strdup(text);
    assert_non_null(place);
    gp_secret_remove(place);
    assert_string_equal(removed, without);
    assert_string_equal(place, without);
    assert_string_equal(masked, instead);
    free(removed);
    free(masked);
    free(place);
}

static void test_texts(void **state)
{
    static const char *const same[] = {"",
                                       "api.greenprof",
                                       "://",
                                       "redis://127.0.0.1:6379/0",
                                       "redis://[::1]:6379",
                                       "clickhouse://shipper@a,b:8123/db?cluster=c",
                                       "https://host:80/path?mail=a@b",
                                       "https://host:443/@user",
                                       "otlp+http://host:9000/path?token_file=/etc/a@b",
                                       "otlp+http://host/path?token_file=/etc/token",
                                       "file:///a@b/c:d"};
    (void)state;
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
        check(same[i], same[i], same[i]);
}

static void test_passwords(void **state)
{
    static const char *const texts[][3] = {
        {"redis://:secret@h:1/0", "redis://h:1/0", "redis://:PASSWORD@h:1/0"},
        {"redis://secret@h", "redis://h", "redis://:PASSWORD@h"},
        {"redis://user:secret@h", "redis://user@h", "redis://user:PASSWORD@h"},
        {"redis+sentinel://:secret@a:1,b:2/name", "redis+sentinel://a:1,b:2/name",
         "redis+sentinel://:PASSWORD@a:1,b:2/name"},
        {"redissentinel://:secret@h:1", "redissentinel://h:1", "redissentinel://:PASSWORD@h:1"},
        {"clickhouse://shipper:secret@h/db", "clickhouse://shipper@h/db", "clickhouse://shipper:PASSWORD@h/db"},
        {"redis://:se/c?r#e@t@h", "redis://h", "redis://:PASSWORD@h"},
        {"redis://:se cret@h", "redis://h", "redis://:PASSWORD@h"},
        {"redis://:12/34@h", "redis://h", "redis://:PASSWORD@h"},
        {"postgresql://u:12/34@h", "postgresql://u@h", "postgresql://u:PASSWORD@h"},
        {"https://u:secret@h/p", "https://u@h/p", "https://u:PASSWORD@h/p"},
        {"redis://h?password=secret&ttl=1s", "redis://h?password=&ttl=1s", "redis://h?password=PASSWORD&ttl=1s"},
        {"otlp+https://h/p?tenant=t&Token=secret",
         "otlp+https://h/p?tenant=t&Token=", "otlp+https://h/p?tenant=t&Token=PASSWORD"},
        {"no 'redis://:secret@h' is at mysql://u:secret@db/x", "no 'redis://h' is at mysql://u@db/x",
         "no 'redis://:PASSWORD@h' is at mysql://u:PASSWORD@db/x"},
        {"--db=postgresql://u:secret@h/d", "--db=postgresql://u@h/d", "--db=postgresql://u:PASSWORD@h/d"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        check(texts[i][0], texts[i][1], texts[i][2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts), cmocka_unit_test(test_passwords)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
