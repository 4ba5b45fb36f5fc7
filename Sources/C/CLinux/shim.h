#ifndef PINFOLD_CLINUX_H
#define PINFOLD_CLINUX_H
/* Without _GNU_SOURCE, because the standard library's own C module is built that way: the two must
 * agree on what the headers declare. Anything missing without it is declared at the end. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

/* Linux-specific calls (_GNU_SOURCE). */
extern long syscall(long number, ...);
extern int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);
extern int pipe2(int ends[2], int flags);
extern ssize_t splice(int from, off_t *from_offset, int to, off_t *to_offset, size_t count,
                      unsigned int flags);
extern int memfd_create(const char *name, unsigned int flags);
extern int syncfs(int fd);
extern int pthread_setname_np(pthread_t thread, const char *name);
extern int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int from);
extern int posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t *actions,
                                                const char *path);
enum {
    PINFOLD_F_OFD_GETLK = 36,
    PINFOLD_F_OFD_SETLK = 37,
    PINFOLD_F_OFD_SETLKW = 38,
    PINFOLD_F_SETPIPE_SZ = 1031,
    PINFOLD_SPLICE_F_MOVE = 1,
    PINFOLD_SPLICE_F_NONBLOCK = 2,
    PINFOLD_MFD_CLOEXEC = 1
};

/* The version of the Swift compiler, 60301 for 6.3.1: it defines this for the C headers that it
 * imports, and provides nothing like it in Swift. */
#ifdef __swift__
enum { PINFOLD_SWIFT_COMPILER = __swift__ };
#else
enum { PINFOLD_SWIFT_COMPILER = 0 };
#endif

/* send(2) and recv(2) on sockets that never block: returns the count, or the negated errno. The C
 * library's versions are cancellation points: in a multithreaded program each call costs two atomic
 * operations to support pthread_cancel(3), which nothing here uses. With PINFOLD_CHECKED_SOCKETS
 * the C library's are called, so that sanitizers see them. MSG_NOSIGNAL: a peer that has gone away
 * is an error to report, never a SIGPIPE. */
static inline ssize_t socket_send(int fd, const void *bytes, size_t count) {
#ifdef PINFOLD_CHECKED_SOCKETS
    ssize_t sent = send(fd, bytes, count, MSG_NOSIGNAL);
#else
    ssize_t sent = syscall(SYS_sendto, fd, bytes, count, MSG_NOSIGNAL, NULL, 0);
#endif
    return sent < 0 ? -(ssize_t)errno : sent;
}
static inline ssize_t socket_receive(int fd, void *room, size_t count) {
#ifdef PINFOLD_CHECKED_SOCKETS
    ssize_t received = recv(fd, room, count, 0);
#else
    ssize_t received = syscall(SYS_recvfrom, fd, room, count, 0, NULL, NULL);
#endif
    return received < 0 ? -(ssize_t)errno : received;
}

/* Variadic calls, which Swift does not import. */
static inline int fcntl_int(int fd, int command, int argument) {
    return fcntl(fd, command, argument);
}
/* Locks one byte of a file for this open file description (F_RDLCK or F_WRLCK), or unlocks it
 * (F_UNLCK). -1 if another description has it. */
static inline int lock_byte(int fd, short kind, off_t byte) {
    struct flock range = {.l_type = kind, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    return fcntl(fd, PINFOLD_F_OFD_SETLK, &range);
}
/* The same, and waits until nobody else has it. */
static inline int wait_for_byte(int fd, short kind, off_t byte) {
    struct flock range = {.l_type = kind, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    return fcntl(fd, PINFOLD_F_OFD_SETLKW, &range);
}
/* Whether another open file description has locked the byte, in any way; -1 if that is unknown. */
static inline int byte_is_locked(int fd, off_t byte) {
    struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    return fcntl(fd, PINFOLD_F_OFD_GETLK, &range) == 0 ? range.l_type != F_UNLCK : -1;
}
/* SIOCOUTQ, which the headers also call TIOCOUTQ. */
static inline int unsent_bytes(int fd, int *count) {
    return ioctl(fd, TIOCOUTQ, count);
}
/* The total number of bytes that a TCP socket's peer has acknowledged, and the milliseconds since
 * anything was last acknowledged. The C library's tcp_info is the beginning of the kernel's. */
static inline int acknowledged_bytes(int fd, uint64_t *count, uint32_t *milliseconds) {
    struct {
        struct tcp_info known;
        uint64_t pacing_rate, max_pacing_rate, bytes_acked;
    } info;
    _Static_assert(sizeof(struct tcp_info) == 104, "the kernel's fields follow");
    socklen_t length = sizeof(info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 || length < sizeof(info))
        return -1;
    *count = info.bytes_acked;
    *milliseconds = info.known.tcpi_last_ack_recv;
    return 0;
}
/* Lowers the priority of only the calling thread (setpriority(2): on Linux each thread has its own
 * nice value). */
static inline int lower_own_priority(int nice_value) {
    return setpriority(PRIO_PROCESS, 0, nice_value);
}
/* Our parent may ignore SIGCHLD, which is inherited: dead children would then disappear before they
 * are waited for, and their process ids could be reused. */
static inline void keep_dead_children(void) {
    struct sigaction action;
    if (sigaction(SIGCHLD, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
        signal(SIGCHLD, SIG_DFL);
}
/* Sends one datagram to a Unix-domain socket, with descriptors (SCM_RIGHTS, unix(7)), at most as many
 * as the kernel takes in one message. Returns the count, or the negated errno. */
enum { PINFOLD_MAXIMUM_DESCRIPTORS = 253 };
static inline ssize_t send_with_descriptors(int fd, const struct sockaddr_un *to, socklen_t length,
                                            const void *bytes, size_t count,
                                            const int *descriptors, size_t descriptor_count,
                                            int flags) {
    union {
        struct cmsghdr first;
        char bytes[CMSG_SPACE(PINFOLD_MAXIMUM_DESCRIPTORS * sizeof(int))];
    } control;
    struct iovec part = {.iov_base = (void *)bytes, .iov_len = count};
    struct msghdr message = {
        .msg_name = (void *)to, .msg_namelen = length, .msg_iov = &part, .msg_iovlen = 1};
    if (descriptor_count > PINFOLD_MAXIMUM_DESCRIPTORS)
        return -(ssize_t)EINVAL;
    if (descriptor_count > 0) {
        size_t size = descriptor_count * sizeof(int);
        memset(&control, 0, sizeof(control));
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(size);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(size);
        memcpy(CMSG_DATA(header), descriptors, size);
    }
    ssize_t sent = sendmsg(fd, &message, flags | MSG_NOSIGNAL);
    return sent < 0 ? -(ssize_t)errno : sent;
}
/* Receives one message with its descriptors, which are close-on-exec. Returns the count, or the
 * negated errno; -EMSGSIZE if it had more bytes, or more descriptors, than there is room for. */
static inline ssize_t receive_with_descriptors(int fd, void *room, size_t size, int *descriptors,
                                               size_t *descriptor_count) {
    union {
        struct cmsghdr first;
        char bytes[CMSG_SPACE(PINFOLD_MAXIMUM_DESCRIPTORS * sizeof(int))];
    } control;
    struct iovec part = {.iov_base = room, .iov_len = size};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    *descriptor_count = 0;
    ssize_t received = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    if (received < 0)
        return -(ssize_t)errno;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header != NULL;
         header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(descriptors + *descriptor_count, CMSG_DATA(header), count * sizeof(int));
        *descriptor_count += count;
    }
    if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
        for (size_t index = 0; index < *descriptor_count; index++)
            close(descriptors[index]);
        *descriptor_count = 0;
        return -(ssize_t)EMSGSIZE;
    }
    return received;
}
/* The process at the other end of a Unix-domain socket (SO_PEERCRED), or -1. */
static inline int peer_process(int fd, pid_t *process, uid_t *user) {
    struct {
        pid_t process;
        uid_t user;
        gid_t group;
    } peer;
    socklen_t length = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
        return -1;
    *process = peer.process;
    *user = peer.user;
    return 0;
}
/* The number of processors that the calling thread may run on (sched_setaffinity(2), cpuset
 * cgroups), or 0 if it is unknown. */
static inline int allowed_processors(void) {
    unsigned long mask[1024];
    long size = syscall(SYS_sched_getaffinity, 0, sizeof(mask), mask);
    int count = 0;
    for (long word = 0; word * (long)sizeof(long) < size; word++)
        count += __builtin_popcountl(mask[word]);
    return count;
}
/* The environment, whose last entry is NULL. */
static inline char **process_environment(void) {
    extern char **environ;
    return environ;
}
static inline int open_with_mode(const char *path, int flags, mode_t mode) {
    return open(path, flags, mode);
}
#endif
