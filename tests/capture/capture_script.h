// SPDX-License-Identifier: MIT
// clang-format off
// Writes captures from a script, for tests: one line a record, so that a test says what is in its
// capture.
//
//   header key=value...           frequency, engine, pid, realtime, version, features, header_bytes
//   meta KEY VALUE                value up to the end of the line; "\0" in it is a NUL
//   module ID PATH BUILDID|- START END BIAS
//   function NUMBER FIRST_LINE NAME FILE
//   pool NUMBER SIZE NAME         a function that stands for a pool of threads
//   words NUMBER TEXT             a function of this name, up to the end of the line
//   thread INDEX TID CORO CPU_NS NAME
//   coro ID PARENT ENTRY|- LO BYTES KIND THREAD NAME|- [BIRTH]
//   trace INDEX HEX
//   stack ID FLAGS LOC...         innermost first; LOC is MODULE:HEX, function:NUMBER:LINE,
//                                 switching, truncated or incomplete
//   origin CORO STACK REGION [POOL]     function:NUMBER:0
//   sample TIME WEIGHT CORO THREAD STACK TRACE [KIND]
//   ledger CORO TRACE CPU_NS SWITCHES TIME [SLICE BLOCKED READY PARKED WAITING LONGEST [GIL LOCK]]
//   activity CORO START LEFT END SLICE READY WAKER TRACE THREAD OPEN
//   census TIME CORO STATE STATE_NS STACK
//   hog ID CORO TRACE THREAD START DURATION STACK:WEIGHT...
//   delay HOG CORO TRACE NS
//   span ID PARENT CORO END_CORO START END TRACE KIND FLAGS NAME
//                                 name up to the end of the line
//   counters TIME PROCESS_CPU OWN_CPU VALUE...
//   end TIME REASON
//   chunk                         start a new chunk even where the type stays the same
//   unknown TYPE HEX              a chunk of an unknown type
//   skip N                        leave N sequence numbers out
//   bad                           the next chunk gets a wrong checksum
//   raw HEX                       bytes between chunks, as they are
// clang-format on
#ifndef GP_TESTS_CAPTURE_SCRIPT_H
#define GP_TESTS_CAPTURE_SCRIPT_H

#include <stddef.h>
#include <stdint.h>

// Make a capture in memory. Returns malloc()ed bytes; exits with a message when the script is
// wrong.
uint8_t *capture_from_script(const char *script, size_t *len);

#endif
