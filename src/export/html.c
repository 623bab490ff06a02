// SPDX-License-Identifier: MIT
// The page: one HTML file with a flame graph, a timeline, requests and what they waited for, that needs nothing else.
// page/ puts it together.
#include "export/formats.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "export/page_css.h"  // generated from page/web
#include "export/page_html.h" // the same
#include "export/page_js.h"   // the same
#include "page/html.h"

static void html_put_base64(const unsigned char *bytes, size_t len, FILE *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < len; i += 3) {
        size_t left = len - i;
        uint32_t three =
            (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) | (left > 2 ? bytes[i + 2] : 0u);
        const char four[4] = {digits[three >> 18], digits[three >> 12 & 63], left > 1 ? digits[three >> 6 & 63] : '=',
                              left > 2 ? digits[three & 63] : '='};
        fwrite(four, 1, sizeof(four), out);
    }
}

static int html_put_data(const gp_text_t *data, FILE *out)
{
    uLongf len = compressBound(data->len);
    unsigned char *packed = malloc(len);
    if (packed == NULL)
        return -ENOMEM;
    int result =
        compress2(packed, &len, (const Bytef *)data->data, data->len, Z_BEST_COMPRESSION) == Z_OK ? 0 : -ENOMEM;
    if (result == 0)
        html_put_base64(packed, len, out);
    free(packed);
    return result;
}

int gp_html_write_data(const gp_text_t *data, FILE *out)
{
    const char *at = page_html;
    int result = 0;
    for (const char *mark = strchr(at, '@'); mark != NULL && result == 0; mark = strchr(at, '@')) {
        fwrite(at, 1, (size_t)(mark - at), out);
        at = strchr(mark + 1, '@') + 1;
        if (strncmp(mark, "@STYLE@", 7) == 0)
            fputs(page_css, out);
        else if (strncmp(mark, "@SCRIPT@", 8) == 0)
            fputs(page_js, out);
        else
            result = html_put_data(data, out);
    }
    fputs(at, out);
    return result;
}

int gp_html_write(const gp_report_t *report, FILE *out)
{
    return gp_page_write(NULL, report, out);
}
