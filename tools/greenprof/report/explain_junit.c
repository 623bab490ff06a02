// SPDX-License-Identifier: MIT
// JUnit's XML: a suite, in which each condition is a test. Source: the schema of Jenkins' JUnit plug-in, junit-10.xsd:
// <failure> is a condition that holds, <error> one of unknown value.
#include "explain_junit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/verdict_text.h"
#include "export/write/xml.h"
#include "message.h"
#include "output_guard.h"

typedef struct junit {
    const char *capture;
    const gp_findings_t *findings;
    const gp_condition_outcome_t *outcomes;
    size_t count;
} junit_t;

static void explain_junit_put_attribute(FILE *out, const char *name, const char *value)
{
    fprintf(out, " %s=\"", name);
    gp_xml_text(out, value);
    putc('"', out);
}

static void explain_junit_put_case(FILE *out, const gp_condition_outcome_t *outcome)
{
    fprintf(out, "    <testcase classname=\"greenprof.explain\"");
    explain_junit_put_attribute(out, "name", outcome->text);
    if (outcome->is_known && !outcome->holds) {
        fprintf(out, " time=\"0\"/>\n");
        return;
    }
    const char *element = outcome->is_known ? "failure" : "error";
    fprintf(out, " time=\"0\">\n      <%s", element);
    explain_junit_put_attribute(out, "type", outcome->is_known ? "condition" : "not known");
    explain_junit_put_attribute(out, "message", outcome->why);
    fprintf(out, "/>\n    </testcase>\n");
}

static int explain_junit_put_findings(FILE *out, const junit_t *junit)
{
    char *text = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&text, &length);
    if (memory == NULL)
        return -ENOMEM;
    gp_verdict_write(memory, junit->findings, junit->capture, GP_VERDICT_COLUMNS);
    int result = fclose(memory) == 0 ? 0 : -ENOMEM;
    fprintf(out, "    <system-out>");
    if (result == 0)
        gp_xml_text(out, text);
    fprintf(out, "</system-out>\n");
    free(text);
    return result;
}

static int explain_junit_write(gp_output_t *output, void *context)
{
    const junit_t *junit = context;
    FILE *out = output->file;
    size_t failures = 0, errors = 0;
    for (size_t i = 0; i < junit->count; i++) {
        failures += junit->outcomes[i].holds;
        errors += !junit->outcomes[i].is_known;
    }
    fprintf(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"greenprof explain\"");
    fprintf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"0\" time=\"0\">\n", junit->count, failures,
            errors);
    fprintf(out, "    <properties><property name=\"capture\"");
    explain_junit_put_attribute(out, "value", junit->capture);
    fprintf(out, "/></properties>\n");
    for (size_t i = 0; i < junit->count; i++)
        explain_junit_put_case(out, &junit->outcomes[i]);
    int result = explain_junit_put_findings(out, junit);
    fprintf(out, "  </testsuite>\n</testsuites>\n");
    return result < 0 ? result : gp_output_state(out);
}

int gp_explain_junit(const char *path, const char *capture, const gp_findings_t *findings,
                     const gp_condition_outcome_t *outcomes, size_t count)
{
    junit_t junit = {capture, findings, outcomes, count};
    int result = gp_output_guarded(path, explain_junit_write, &junit);
    return result == 0 ? 0 : gp_fail(path, "%s", strerror(-result));
}
