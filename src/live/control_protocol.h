// SPDX-License-Identifier: MIT
// The talk between `greenprof start|stop|dump|status|top PID` and a process.
//
// Model: a connection is one request and one reply, each a packet of a SOCK_SEQPACKET socket and of a size that never
// changes; then the process closes it. Where the process has keys, a request says which of them the asker has: before
// it, on the same connection, comes GP_CONTROL_HELLO, whose reply brings a nonce and nothing else; the request then is
// signed with it (live/control_sign.h). Data that grows with the process, the rows of its coroutines, is in a file
// without a name; the reply carries the descriptor: gp_control_row_t[rows]. So the process never waits for what asks.
// START carries the descriptor of the file itself, write-only, where the process has another root directory than what
// asks; the reply of DUMP carries one of the capture, as no name that a process says is opened. Both sides are
// greenprof on one machine; one of another version is refused by `version`.
#pragma once

#include <stdint.h>

#include "model/clients.h"
#include "model/counters.h"

enum {
    GP_CONTROL_MAGIC = 0x43475052,
    GP_CONTROL_VERSION = 7,
    GP_CONTROL_PATH_SIZE = 3024,
    GP_CONTROL_NAME_SIZE = 48,
    GP_CONTROL_NONCE_BYTES = 32,
    GP_CONTROL_MAC_BYTES = 32,
};

enum gp_control_command {
    GP_CONTROL_STATUS,
    GP_CONTROL_START,
    GP_CONTROL_STOP,
    GP_CONTROL_DUMP, // have everything so far in the file
    GP_CONTROL_TOP,
    GP_CONTROL_DETACH, // stop, and leave the process as it was before `greenprof attach`
    GP_CONTROL_HELLO,  // bring a nonce: the next packet is a request that is signed
    GP_CONTROL_COMMANDS,
};

enum gp_control_state {
    GP_CONTROL_STOPPED,
    GP_CONTROL_RECORDING,
    GP_CONTROL_FULL,   // stopped: the capture was as large as it may be
    GP_CONTROL_FAILED, // stopped: it could not be written any further
};

typedef struct gp_control_request {
    uint32_t magic, version;
    uint32_t command;                  // enum gp_control_command
    uint32_t frequency_hz;             // START; 0 = as the environment says
    int32_t clock;                     // START; enum prof_clock, -1 = as the environment says
    uint32_t budget_ppm;               // START; millionths of the program's CPU time, 0 = as the environment says
    uint32_t flush_ms;                 // START; 5 to 60000, 0 = as the environment says
    uint32_t lease_ms;                 // TOP: how long to keep ledgers for a further request
    char path[GP_CONTROL_PATH_SIZE];   // START; absolute, ended by a 0; "" = as the environment says, but a new file
    char spans[GP_CLIENTS_LIST_SIZE];  // START; a list of model/clients.h, ended by a 0; "" = as it is
    uint32_t unused[3];                // 0
    uint8_t mac[GP_CONTROL_MAC_BYTES]; // of all before it; without meaning where the process has no key
} gp_control_request_t;

typedef struct gp_control_reply {
    uint32_t magic, version;
    // 0, or a negative errno value; -EALREADY: it is in that state already. With these, nothing else is said: -ENOKEY:
    // the process has keys, and the request is not signed; -EKEYREJECTED: none of the keys signed the request;
    // -EKEYREVOKED: there should be keys, but they could not be read.
    int32_t error;
    uint32_t state;      // enum gp_control_state
    int32_t rings_error; // why there is no ring file though there was to be one: a negative errno value, or 0
    uint32_t frequency_hz, clock, engine, threads;
    uint32_t budget_ppm, lowered_hz;       // 0 = there is none; the present rate, 0 = as asked for
    uint32_t budget_processes;             // sharing it, this one included
    uint32_t slowed_percent;               // how much later it looks and writes for the budget's sake; 100 = not at all
    uint32_t delivery_ns;                  // of a signal beside the handler, 0 = not measured
    uint64_t now_ns;                       // CLOCK_MONOTONIC
    uint64_t start_realtime_ns, start_ns;  // of the capture; the latter CLOCK_MONOTONIC
    uint64_t bytes;                        // of the capture, as far as it is written
    uint64_t process_cpu_ns, own_cpu_ns;   // since the process began; greenprof's own threads
    uint64_t coroutines;                   // live ones; TOP
    uint64_t rows;                         // in the file of the descriptor; TOP
    uint64_t counters[GP_COUNTER_COUNT];   // since the capture began
    uint64_t clients;                      // libraries with spans for their calls: bits of gp_client_t
    uint64_t refused;                      // packets so far that are no request, or not let in
    char path[GP_CONTROL_PATH_SIZE];       // of the latest capture; "" = there is none
    uint8_t nonce[GP_CONTROL_NONCE_BYTES]; // HELLO: for the next request of this connection, and no other
} gp_control_reply_t;

enum gp_control_row_state {
    GP_CONTROL_ROW_RUNNING,
    GP_CONTROL_ROW_READY,
    GP_CONTROL_ROW_PARKED,
    GP_CONTROL_ROW_WAITING,
    GP_CONTROL_ROW_NEW,
    GP_CONTROL_ROW_IDLE,
    GP_CONTROL_ROW_UNKNOWN, // recording rests
};

typedef struct gp_control_row { // a live coroutine, or a thread's own stack
    uint64_t id, parent_id;
    uint64_t trace[2];
    uint64_t state_ns; // for so long
    uint64_t cpu_ns, blocked_ns, slice_ns, ready_ns, parked_ns, waiting_ns, switches, longest_ns;
    uint32_t state; // enum gp_control_row_state
    uint32_t tid;   // of a thread's own stack; else 0
    char name[GP_CONTROL_NAME_SIZE];
} gp_control_row_t;
