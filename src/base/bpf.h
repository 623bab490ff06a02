// SPDX-License-Identifier: MIT
// A seccomp filter's answer to a system call, without making the call.
// Source: linux/Documentation/userspace-api/seccomp_filter.rst; kernel/seccomp.c, seccomp_check_filter(): the
// instructions that there may be.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>

// Run a filter of `count` instructions. Returns its word, an action and its data; SECCOMP_RET_KILL_PROCESS where it is
// no filter that the kernel would take.
uint32_t gp_bpf_run(const struct sock_filter *code, size_t count, const struct seccomp_data *call);

// The one of two filters' words that the kernel heeds.
uint32_t gp_bpf_stricter(uint32_t a, uint32_t b);
