# SPDX-License-Identifier: MIT
# The readers of `greenprof trace`. Of the sources only those that read what others wrote: no captures, no network.
set(tree ${PROJECT_SOURCE_DIR}/src/traces)
foreach(part spans tree clocks critical read_json read_osprofiler read_profile
        short_name write_words write_text write_json write_dot write_chrome write_html write_rally)
  list(APPEND fuzz_parts ${tree}/${part}.c)
endforeach()
foreach(part base/index base/memory base/secret consumer/bytes consumer/span_json consumer/url export/write/json_text
        export/write/text export/write/xml model/ledger model/span model/trace_id)
  list(APPEND fuzz_parts ${PROJECT_SOURCE_DIR}/src/${part}.c)
endforeach()
file(GLOB fuzz_headers CONFIGURE_DEPENDS ${tree}/*.h)
greenprof_fuzz_parts(tree PARTS ${fuzz_parts} HEADERS ${fuzz_headers} gp_traces
  INCLUDES ${PROJECT_BINARY_DIR}/src/traces)
greenprof_fuzz(tree spans SOURCE fuzz_spans.c CORPUS corpus RUNS 20000 LONGEST 4096 REPLAY gp_traces LIBRARIES -ljansson)
