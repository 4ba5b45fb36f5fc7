#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "CImages.h"

#if defined(__x86_64__)
#define OWN_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

/* Sanitizers map terabytes of address space, and make system calls of their own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNDER_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define UNDER_SANITIZER 1
#endif
#endif
#ifndef UNDER_SANITIZER
#define UNDER_SANITIZER 0
#endif

static int set_limit(int resource, rlim_t value) {
    struct rlimit limit = {value, value}, before;
    /* An existing lower limit is kept. */
    if (getrlimit(resource, &before) == 0 && before.rlim_max < value)
        limit.rlim_cur = limit.rlim_max = before.rlim_max;
    return setrlimit(resource, &limit);
}

/* The process's address space in bytes; 0 if unknown. */
static uint64_t own_address_space(void) {
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL) return 0;
    if (fscanf(file, "%lu", &pages) != 1) pages = 0;
    fclose(file);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

#ifdef OWN_ARCHITECTURE
#define LOAD(OFFSET) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (OFFSET))
#define FIELD(NAME) offsetof(struct seccomp_data, NAME)
/* The lower half of an argument, which is all that protections and flags use. */
#define ARGUMENT(NUMBER) (offsetof(struct seccomp_data, args) + 8 * (NUMBER))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define KILL BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
#define CALL(NAME) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##NAME, 0, 1), ALLOW

/* What decoding needs: its memory, its socket, the time, and to exit. Memory is never executable,
 * and never a file's. The x32 ABI has other numbers, which are therefore not included. */
static const struct sock_filter filter[] = {
    LOAD(FIELD(arch)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCHITECTURE, 1, 0),
    KILL,
    LOAD(FIELD(nr)),
    CALL(read),
    CALL(write),
    CALL(munmap),
    CALL(brk),
    CALL(mremap),
    CALL(madvise),
    CALL(futex),
    CALL(exit),
    CALL(exit_group),
    CALL(rt_sigreturn),
    CALL(restart_syscall),
    CALL(clock_gettime),
    CALL(getrandom),
    CALL(sysinfo),
    CALL(sched_yield),
    CALL(setitimer),
#ifdef __NR_alarm
    CALL(alarm),
#endif
    /* mprotect: not executable. */
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mprotect, 0, 4),
    LOAD(ARGUMENT(2)),
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
    KILL,
    ALLOW,
    /* mmap: neither executable nor file-backed. */
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mmap, 0, 5),
    LOAD(ARGUMENT(2)),
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 3, 0),
    LOAD(ARGUMENT(3)),
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_ANONYMOUS, 0, 1),
    ALLOW,
    KILL,
};

static int filter_calls(void) {
    struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), (struct sock_filter *)filter};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}
#else
static int filter_calls(void) {
    return -1;
}
#endif

static void ignore_signals(void) {
    /* The gateway decides when the process ends: a signal to its whole group must not take away
     * what an exchange in progress still needs. */
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGUSR1, SIG_IGN);
}

int image_confine(uint64_t memory, uint32_t seconds) {
    int result = 0;
    uint64_t own = own_address_space();
    ignore_signals();
    if (syscall(SYS_close_range, 3u, ~0u, 0u) != 0 && errno != ENOSYS) return -1;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
        return -1;
    if (set_limit(RLIMIT_CORE, 0) != 0 || set_limit(RLIMIT_FSIZE, 0) != 0
        || set_limit(RLIMIT_NOFILE, 0) != 0 || set_limit(RLIMIT_NPROC, 0) != 0
        || set_limit(RLIMIT_CPU, seconds) != 0)
        return -1;
    if (UNDER_SANITIZER) return 0;
    if (own > 0 && set_limit(RLIMIT_AS, own + memory) == 0) result |= IMAGE_CONFINED_MEMORY;
    if (filter_calls() == 0) result |= IMAGE_CONFINED_CALLS;
    return result;
}

void image_set_alarm(uint32_t seconds) {
    alarm(seconds);
}
