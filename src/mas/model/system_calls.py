"""System calls by name and number, and what the filter of isolated agents does with each: what is not listed is closed.

Numbers are (x86_64, aarch64); -1 is a call that a machine does not have. From 424 on they are the same everywhere. The
launcher imports this, so it imports nothing itself.
"""

from __future__ import annotations

# Open to every agent, by what they are for. Some only with certain arguments, and in tier B some not at all.
ALLOWED: dict[str, dict[str, tuple[int, int]]] = {
    "files": {
        "read": (0, 63), "write": (1, 64), "open": (2, -1), "close": (3, 57), "lseek": (8, 62), "pread64": (17, 67),
        "pwrite64": (18, 68), "readv": (19, 65), "writev": (20, 66), "preadv": (295, 69), "pwritev": (296, 70),
        "preadv2": (327, 286), "pwritev2": (328, 287), "openat": (257, 56), "creat": (85, -1), "stat": (4, -1),
        "fstat": (5, 80), "lstat": (6, -1), "newfstatat": (262, 79), "statx": (332, 291), "statfs": (137, 43),
        "fstatfs": (138, 44), "access": (21, -1), "faccessat": (269, 48), "faccessat2": (439, 439),
        "getdents": (78, -1), "getdents64": (217, 61), "getcwd": (79, 17), "chdir": (80, 49), "fchdir": (81, 50),
        "rename": (82, -1), "renameat": (264, 38), "renameat2": (316, 276), "mkdir": (83, -1), "mkdirat": (258, 34),
        "rmdir": (84, -1), "link": (86, -1), "linkat": (265, 37), "unlink": (87, -1), "unlinkat": (263, 35),
        "symlink": (88, -1), "symlinkat": (266, 36), "readlink": (89, -1), "readlinkat": (267, 78), "mknod": (133, -1),
        "mknodat": (259, 33), "truncate": (76, 45), "ftruncate": (77, 46), "fallocate": (285, 47),
        "fadvise64": (221, 223), "readahead": (187, 213), "sync": (162, 81), "fsync": (74, 82), "fdatasync": (75, 83),
        "syncfs": (306, 267), "sync_file_range": (277, 84), "copy_file_range": (326, 285), "sendfile": (40, 71),
        "splice": (275, 76), "tee": (276, 77), "vmsplice": (278, 75), "dup": (32, 23), "dup2": (33, -1),
        "dup3": (292, 24), "close_range": (436, 436), "fcntl": (72, 25), "flock": (73, 32), "ioctl": (16, 29),
        "umask": (95, 166), "pipe": (22, -1), "pipe2": (293, 59), "memfd_create": (319, 279),
        "name_to_handle_at": (303, 264), "inotify_init": (253, -1), "inotify_init1": (294, 26),
        "inotify_add_watch": (254, 27), "inotify_rm_watch": (255, 28), "io_setup": (206, 0), "io_destroy": (207, 1),
        "io_submit": (209, 2), "io_cancel": (210, 3), "io_getevents": (208, 4), "io_pgetevents": (333, 292),
        "cachestat": (451, 451), "file_getattr": (468, 468),
    },
    "modes, times and attributes": {
        "chmod": (90, -1), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, -1),
        "fchown": (93, 55), "lchown": (94, -1), "fchownat": (260, 54), "utime": (132, -1), "utimes": (235, -1),
        "utimensat": (280, 88), "futimesat": (261, -1), "setxattr": (188, 5), "lsetxattr": (189, 6),
        "fsetxattr": (190, 7), "setxattrat": (463, 463), "getxattr": (191, 8), "lgetxattr": (192, 9),
        "fgetxattr": (193, 10), "getxattrat": (464, 464), "listxattr": (194, 11), "llistxattr": (195, 12),
        "flistxattr": (196, 13), "listxattrat": (465, 465), "removexattr": (197, 14), "lremovexattr": (198, 15),
        "fremovexattr": (199, 16), "removexattrat": (466, 466),
    },
    "memory": {
        "mmap": (9, 222), "mprotect": (10, 226), "munmap": (11, 215), "mremap": (25, 216), "msync": (26, 227),
        "mincore": (27, 232), "madvise": (28, 233), "brk": (12, 214), "mlock": (149, 228), "mlock2": (325, 284),
        "munlock": (150, 229), "mlockall": (151, 230), "munlockall": (152, 231), "remap_file_pages": (216, 234),
        "membarrier": (324, 283), "pkey_mprotect": (329, 288), "pkey_alloc": (330, 289), "pkey_free": (331, 290),
        "mbind": (237, 235), "set_mempolicy": (238, 237), "get_mempolicy": (239, 236),
        "set_mempolicy_home_node": (450, 450), "move_pages": (279, 239), "map_shadow_stack": (453, 453),
        "mseal": (462, 462),
    },
    "processes": {
        "fork": (57, -1), "vfork": (58, -1), "clone": (56, 220), "execve": (59, 221), "execveat": (322, 281),
        "exit": (60, 93), "exit_group": (231, 94), "wait4": (61, 260), "waitid": (247, 95), "unshare": (272, 97),
        "getpid": (39, 172), "getppid": (110, 173), "gettid": (186, 178), "getpgrp": (111, -1), "getpgid": (121, 155),
        "setpgid": (109, 154), "getsid": (124, 156), "setsid": (112, 157), "set_tid_address": (218, 96),
        "set_robust_list": (273, 99), "get_robust_list": (274, 100), "rseq": (334, 293), "prctl": (157, 167),
        "arch_prctl": (158, -1), "set_thread_area": (205, -1), "get_thread_area": (211, -1), "personality": (135, 92),
        "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "pidfd_open": (434, 434),
        "seccomp": (317, 277), "landlock_create_ruleset": (444, 444), "landlock_add_rule": (445, 445),
        "landlock_restrict_self": (446, 446), "lsm_get_self_attr": (459, 459), "lsm_list_modules": (461, 461),
        "uretprobe": (335, -1), "uprobe": (336, -1),
    },
    "users and limits": {
        "getuid": (102, 174), "geteuid": (107, 175), "getgid": (104, 176), "getegid": (108, 177),
        "getresuid": (118, 148), "getresgid": (120, 150), "getgroups": (115, 158), "setuid": (105, 146),
        "setgid": (106, 144), "setreuid": (113, 145), "setregid": (114, 143), "setresuid": (117, 147),
        "setresgid": (119, 149), "setfsuid": (122, 151), "setfsgid": (123, 152), "setgroups": (116, 159),
        "capget": (125, 90), "capset": (126, 91), "getrlimit": (97, 163), "setrlimit": (160, 164),
        "prlimit64": (302, 261), "getrusage": (98, 165), "getpriority": (140, 141), "setpriority": (141, 140),
        "ioprio_get": (252, 31), "ioprio_set": (251, 30), "sched_yield": (24, 124), "sched_getaffinity": (204, 123),
        "sched_setaffinity": (203, 122), "sched_getparam": (143, 121), "sched_setparam": (142, 118),
        "sched_getscheduler": (145, 120), "sched_setscheduler": (144, 119), "sched_getattr": (315, 275),
        "sched_setattr": (314, 274), "sched_get_priority_max": (146, 125), "sched_get_priority_min": (147, 126),
        "sched_rr_get_interval": (148, 127), "getcpu": (309, 168), "uname": (63, 160), "sysinfo": (99, 179),
        "getrandom": (318, 278),
    },
    "signals": {
        "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "pidfd_send_signal": (424, 424),
        "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "rt_sigpending": (127, 136),
        "rt_sigtimedwait": (128, 137), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
        "rt_sigsuspend": (130, 133), "sigaltstack": (131, 132), "signalfd": (282, -1), "signalfd4": (289, 74),
        "pause": (34, -1), "restart_syscall": (219, 128),
    },
    "time": {
        "time": (201, -1), "times": (100, 153), "gettimeofday": (96, 169), "clock_gettime": (228, 113),
        "clock_getres": (229, 114), "clock_nanosleep": (230, 115), "nanosleep": (35, 101), "alarm": (37, -1),
        "getitimer": (36, 102), "setitimer": (38, 103), "timer_create": (222, 107), "timer_settime": (223, 110),
        "timer_gettime": (224, 108), "timer_getoverrun": (225, 109), "timer_delete": (226, 111),
        "timerfd_create": (283, 85), "timerfd_settime": (286, 86), "timerfd_gettime": (287, 87),
    },
    "waiting": {
        "poll": (7, -1), "ppoll": (271, 73), "select": (23, -1), "pselect6": (270, 72), "epoll_create": (213, -1),
        "epoll_create1": (291, 20), "epoll_ctl": (233, 21), "epoll_wait": (232, -1), "epoll_pwait": (281, 22),
        "epoll_pwait2": (441, 441), "eventfd": (284, -1), "eventfd2": (290, 19), "futex": (202, 98),
        "futex_waitv": (449, 449), "futex_wait": (455, 455), "futex_wake": (454, 454), "futex_requeue": (456, 456),
    },
    "sockets": {
        "socket": (41, 198), "socketpair": (53, 199), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201),
        "accept": (43, 202), "accept4": (288, 242), "shutdown": (48, 210), "getsockname": (51, 204),
        "getpeername": (52, 205), "setsockopt": (54, 208), "getsockopt": (55, 209), "sendto": (44, 206),
        "sendmsg": (46, 211), "sendmmsg": (307, 269), "recvfrom": (45, 207), "recvmsg": (47, 212),
        "recvmmsg": (299, 243),
    },
    "shared memory and queues": {
        "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "shmdt": (67, 197), "semget": (64, 190),
        "semop": (65, 193), "semtimedop": (220, 192), "semctl": (66, 191), "msgget": (68, 186), "msgsnd": (69, 189),
        "msgrcv": (70, 188), "msgctl": (71, 187), "mq_open": (240, 180), "mq_unlink": (241, 181),
        "mq_timedsend": (242, 182), "mq_timedreceive": (243, 183), "mq_notify": (244, 184), "mq_getsetattr": (245, 185),
    },
}  # fmt: skip
# Refused, unless a provider's file opens them for its agents. They reach no further than its own processes, but few
# programs need them, and each is a large part of the kernel.
OPENABLE: dict[str, tuple[int, int]] = {
    "userfaultfd": (323, 282), "perf_event_open": (298, 241), "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263), "kcmp": (312, 272), "memfd_secret": (447, 447), "modify_ldt": (154, -1),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440), "process_mrelease": (448, 448), "syslog": (103, 116),
    "adjtimex": (159, 171), "clock_adjtime": (305, 266), "quotactl": (179, 60), "quotactl_fd": (443, 443),
}  # fmt: skip
# Refused always: they would bypass this filter or the other walls, or they are for the machine's administrator.
NEVER: dict[str, tuple[int, int]] = {
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "setns": (308, 268), "mount": (165, 40),
    "umount2": (166, 39), "mount_setattr": (442, 442), "move_mount": (429, 429), "open_tree": (428, 428),
    "open_tree_attr": (467, 467), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432),
    "fspick": (433, 433), "pivot_root": (155, 41), "chroot": (161, 51), "open_by_handle_at": (304, 265),
    "bpf": (321, 280), "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "reboot": (169, 142), "swapon": (167, 224),
    "swapoff": (168, 225), "acct": (163, 89), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "sethostname": (170, 161), "setdomainname": (171, 162), "iopl": (172, -1), "ioperm": (173, -1),
    "vhangup": (153, 58), "migrate_pages": (256, 238), "lookup_dcookie": (212, 18), "file_setattr": (469, 469),
    "lsm_set_self_attr": (460, 460),
}  # fmt: skip
# As if the kernel did not have them, like every call that is not listed: programs then use an older one. The filter
# cannot see what is asked of the first two; the others are obsolete, or show mounts.
ABSENT = (
    "clone3", "openat2", "statmount", "listmount", "uselib", "ustat", "sysfs", "_sysctl", "create_module",
    "get_kernel_syms", "query_module", "nfsservctl", "getpmsg", "putpmsg", "afs_syscall", "tuxcall", "security",
    "vserver", "epoll_ctl_old", "epoll_wait_old",
)  # fmt: skip

# Refused in tier B, which has neither a view of the file system nor a namespace of its own for these.
REFUSED_IN_B = (*ALLOWED["shared memory and queues"], "chown", "fchown", "lchown", "fchownat")
# There no file system can keep such attributes, as far as an agent can tell.
UNSUPPORTED_IN_B = (
    "setxattr", "lsetxattr", "fsetxattr", "setxattrat", "removexattr", "lremovexattr", "fremovexattr", "removexattrat",
)  # fmt: skip


def numbers(machine: int) -> dict[str, int]:
    """The numbers on one of the machines, by name, of all calls that are open to some agents."""
    found = {name: pair for group in ALLOWED.values() for name, pair in group.items()} | OPENABLE
    return {name: pair[machine] for name, pair in found.items() if pair[machine] >= 0}
