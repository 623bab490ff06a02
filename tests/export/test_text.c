// SPDX-License-Identifier: MIT
// UTF-8 repair, decimals, marshal and XML: byte by byte.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "export/marshal.h"
#include "export/write/text.h"
#include "export/write/xml.h"

static void expect_repair(const char *text, const char *repaired)
{
    char out[256];
    assert_int_equal(gp_text_repair(out, text), strlen(repaired));
    assert_string_equal(out, repaired);
}

#define BAD "\xef\xbf\xbd"

static void test_repair(void **state)
{
    (void)state;
    expect_repair("", "");
    expect_repair("plain", "plain");
    expect_repair("\xc3\xa9\xe2\x82\xac\xf0\x9f\x94\xa5", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x94\xa5");
    expect_repair("a\xff"
                  "b",
                  "a" BAD "b");
    expect_repair("\xc3", BAD);                         // cut off
    expect_repair("\xe2\x82", BAD BAD);                 // cut off
    expect_repair("\xc0\xaf", BAD BAD);                 // overlong
    expect_repair("\xe0\x80\xaf", BAD BAD BAD);         // overlong
    expect_repair("\xed\xa0\x80", BAD BAD BAD);         // surrogate
    expect_repair("\xf4\x90\x80\x80", BAD BAD BAD BAD); // above U+10FFFF
    expect_repair("\xf5\x80", BAD BAD);
    expect_repair("\x80\xbf", BAD BAD);
}

static void expect_decimal(uint64_t ns, uint64_t unit, unsigned digits, const char *expected)
{
    char text[32];
    assert_int_equal(gp_text_decimal(text, ns, unit, digits), strlen(expected));
    assert_string_equal(text, expected);
}

static void test_decimal(void **state)
{
    (void)state;
    expect_decimal(0, 1000000000, 3, "0.000");
    expect_decimal(1499999, 1000000000, 3, "0.001");
    expect_decimal(1500000, 1000000000, 3, "0.002");
    expect_decimal(999999999, 1000000000, 3, "1.000");
    expect_decimal(1234567, 1000000, 3, "1.235");
    expect_decimal(1234567, 1000, 0, "1235");
    expect_decimal(UINT64_MAX, 1000000000, 3, "18446744073.710");
    expect_decimal(5, 1000, 3, "0.005");
}

static void test_uint(void **state)
{
    (void)state;
    const struct {
        uint64_t value;
        const char *text;
    } cases[] = {{0, "0"}, {9, "9"}, {10, "10"}, {1234567890, "1234567890"}, {UINT64_MAX, "18446744073709551615"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[GP_TEXT_UINT_MAX];
        assert_int_equal(gp_text_uint(text, cases[i].value), strlen(cases[i].text));
        assert_memory_equal(text, cases[i].text, strlen(cases[i].text));
    }
}

static void expect_bytes(void (*write)(FILE *), const void *expected, size_t len)
{
    char *bytes = NULL;
    size_t written = 0;
    FILE *out = open_memstream(&bytes, &written);
    write(out);
    fclose(out);
    assert_int_equal(written, len);
    assert_memory_equal(bytes, expected, len);
    free(bytes);
}

static void hand_over(gp_text_t *text, FILE *out)
{
    assert_false(text->failed);
    fwrite(text->data, 1, text->len, out);
    gp_text_free(text);
}

static void write_numbers(FILE *file)
{
    gp_text_t text = {0}, *out = &text;
    gp_marshal_int(out, 0);
    gp_marshal_int(out, 0x7fffffff);
    gp_marshal_int(out, 0x80000000u);
    gp_marshal_int(out, UINT64_MAX);
    gp_marshal_float(out, 1.0);
    hand_over(out, file);
}

static void test_marshal_numbers(void **state)
{
    (void)state;
    static const char expected[] = "i\0\0\0\0"
                                   "i\xff\xff\xff\x7f"
                                   "l\x03\0\0\0\0\0\0\0\x02\0"
                                   "l\x05\0\0\0\xff\x7f\xff\x7f\xff\x7f\xff\x7f\x0f\0"
                                   "g\0\0\0\0\0\0\xf0\x3f";
    expect_bytes(write_numbers, expected, sizeof(expected) - 1);
}

static void write_texts(FILE *file)
{
    gp_text_t text = {0}, *out = &text;
    gp_marshal_dict_begin(out);
    gp_marshal_tuple(out, 2);
    gp_marshal_text(out, "");
    gp_marshal_text(out, "\xc3\xa9\xff");
    gp_marshal_dict_end(out);
    hand_over(out, file);
}

static void test_marshal_texts(void **state)
{
    (void)state;
    static const char expected[] = "{(\x02\0\0\0u\0\0\0\0u\x05\0\0\0\xc3\xa9\xef\xbf\xbd"
                                   "0";
    expect_bytes(write_texts, expected, sizeof(expected) - 1);
}

static void write_long_text(FILE *file)
{
    static char text[200001];
    gp_text_t out = {0};
    memset(text, 'x', sizeof(text) - 1);
    gp_marshal_text(&out, text);
    hand_over(&out, file);
}

static void test_marshal_long_text(void **state)
{
    (void)state;
    static char expected[5 + 65536] = "u\0\0\x01";
    memset(expected + 5, 'x', 65536);
    expect_bytes(write_long_text, expected, sizeof(expected));
}

static void write_xml(FILE *out)
{
    gp_xml_text(out, "<a href=\"x\">&\x01\t\n\x7f\xff\xef\xbf\xbf");
    fputc('|', out);
    gp_xml_text_cut(out, "<<<<<<", 4);
    fputc('|', out);
    gp_xml_text_cut(out, "1234", 4);
    fputc('|', out);
    gp_xml_text_cut(out, "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e", 5);
}

static void test_xml(void **state)
{
    (void)state;
    static const char expected[] = "&lt;a href=&quot;x&quot;&gt;&amp;" BAD BAD BAD BAD BAD BAD
                                   "|&lt;&lt;&lt;\xe2\x80\xa6|1234|\xe6\x97\xa5\xe6\x9c\xac\xe2\x80\xa6";
    expect_bytes(write_xml, expected, sizeof(expected) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_repair),        cmocka_unit_test(test_decimal),
        cmocka_unit_test(test_uint),          cmocka_unit_test(test_marshal_numbers),
        cmocka_unit_test(test_marshal_texts), cmocka_unit_test(test_marshal_long_text),
        cmocka_unit_test(test_xml),
    };
    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
