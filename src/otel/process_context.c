// SPDX-License-Identifier: MIT
// The process context: a mapping with a name, in which readers outside of the process find what it is called, and how
// to read its threads.
//
// Source: OTEP 4719, "Publication Protocol"; OTEP 4947, "Thread-Local Reference Data".
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "otel/otel.h"
#include "otel/protobuf.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

#define MAPPING_NAME "OTEL_CTX"

enum { FORMAT_VERSION = 2, MAPPING_BYTES = 4096, SERVICE_MAX = 255 }; // all that is written has room

// Source: opentelemetry/proto/common/v1/common.proto, resource.proto, and the message ProcessContext of OTEP 4719.
enum { KEY = 1, VALUE = 2, STRING_VALUE = 1, ARRAY_VALUE = 5, RESOURCE = 1, RESOURCE_ATTRIBUTES = 1, ATTRIBUTES = 2 };

typedef struct header {
    char signature[8];
    uint32_t version, payload_bytes;
    _Atomic uint64_t published_ns; // CLOCK_BOOTTIME; 0 = not yet to be read
    uint64_t payload;              // its address
} header_t;

_Static_assert(sizeof(header_t) == 32, "as in OTEP 4719");

static void process_context_put_attribute(gp_proto_t *proto, unsigned field, const char *key, const char *value)
{
    size_t attribute = gp_proto_open(proto, field);
    gp_proto_text(proto, KEY, key);
    size_t any = gp_proto_open(proto, VALUE);
    if (value != NULL)
        gp_proto_text(proto, STRING_VALUE, value);
    else
        gp_proto_close(proto, gp_proto_open(proto, ARRAY_VALUE)); // without elements
    gp_proto_close(proto, any);
    gp_proto_close(proto, attribute);
}

// Source: RFC 9562, version 4.
static void process_context_make_uuid(char text[37])
{
    unsigned char b[16] = {0};
    if (getrandom(b, sizeof(b), GRND_NONBLOCK) != sizeof(b)) {
        struct timespec now;
        pid_t pid = getpid();
        clock_gettime(CLOCK_REALTIME, &now);
        memcpy(b, &now.tv_nsec, sizeof(now.tv_nsec));
        memcpy(b + 8, &pid, sizeof(pid));
        memcpy(b + 12, &now.tv_sec, 4);
    }
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    snprintf(text, 37, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2], b[3],
             b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

static size_t process_context_put_payload(unsigned char *room, const char *service)
{
    gp_proto_t proto = {.room = room};
    char name[SERVICE_MAX + 1], instance[37];
    snprintf(name, sizeof(name), "%s", service);
    process_context_make_uuid(instance);
    size_t resource = gp_proto_open(&proto, RESOURCE);
    process_context_put_attribute(&proto, RESOURCE_ATTRIBUTES, "service.name", name);
    process_context_put_attribute(&proto, RESOURCE_ATTRIBUTES, "service.instance.id", instance);
    process_context_put_attribute(&proto, RESOURCE_ATTRIBUTES, "telemetry.sdk.name", "greenprof");
    process_context_put_attribute(&proto, RESOURCE_ATTRIBUTES, "telemetry.sdk.language", "cpp");
    process_context_put_attribute(&proto, RESOURCE_ATTRIBUTES, "telemetry.sdk.version", GP_OTEL_VERSION);
    gp_proto_close(&proto, resource);
    process_context_put_attribute(&proto, ATTRIBUTES, "threadlocal.schema_version", "tlsdesc_v1_dev");
    process_context_put_attribute(&proto, ATTRIBUTES, "threadlocal.attribute_key_map", NULL);
    return proto.len;
}

// By its file it has a name where the kernel knows none for anonymous memory. Returns MAP_FAILED.
static void *process_context_map_file(void)
{
    int fd = memfd_create(MAPPING_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (fd < 0)
        fd = memfd_create(MAPPING_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return MAP_FAILED;
    void *mapping = MAP_FAILED;
    if (ftruncate(fd, MAPPING_BYTES) == 0)
        mapping = mmap(NULL, MAPPING_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    close(fd);
    return mapping;
}

static uint64_t process_context_boot_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    uint64_t ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    return ns != 0 ? ns : 1;
}

static void process_context_fill(header_t *header, const char *service)
{
    unsigned char *payload = (unsigned char *)(header + 1);
    header->payload_bytes = (uint32_t)process_context_put_payload(payload, service);
    header->payload = (uintptr_t)payload;
    header->version = FORMAT_VERSION;
    memcpy(header->signature, MAPPING_NAME, sizeof(header->signature));
    // A reader that sees the time sees all of the above.
    atomic_thread_fence(memory_order_seq_cst);
    atomic_store_explicit(&header->published_ns, process_context_boot_ns(), memory_order_relaxed);
}

int prof_otel_publish(const char *service)
{
    int saved = errno, error = 0;
    void *mapping = process_context_map_file();
    bool is_file = mapping != MAP_FAILED;
    if (!is_file)
        mapping = mmap(NULL, MAPPING_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED || madvise(mapping, MAPPING_BYTES, MADV_DONTFORK) != 0) {
        error = -errno;
    } else {
        process_context_fill(mapping, service);
        // The last step: what waits for this call finds all in place.
        if (prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, mapping, MAPPING_BYTES, MAPPING_NAME) != 0 && !is_file)
            error = -errno;
    }
    if (error != 0 && mapping != MAP_FAILED)
        munmap(mapping, MAPPING_BYTES);
    errno = saved;
    return error;
}
