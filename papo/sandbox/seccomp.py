"""The filter of system calls that every program runs under: what no test needs and holes in kernels are reached by.

A BPF program (seccomp(2)) by hand, for two machines: a call of the list fails with EPERM, one of another machine's
table with ENOSYS. Threads, processes, files, pipes and sockets of AF_UNIX are as ever. It needs no right and holds
without namespaces too. Standard library only.
"""

import ctypes
import errno
import os
import struct

ALLOW, FAIL = 0x7FFF0000, 0x00050000
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
X32 = 0x40000000
DENIED: dict[str, tuple[int | None, int | None]] = {
    # Mounts and roots.
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "open_tree": (428, 428),
    "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432),
    "fspick": (433, 433), "mount_setattr": (442, 442), "open_by_handle_at": (304, 265), "quotactl": (179, 60),
    "quotactl_fd": (443, 443), "sysfs": (139, None), "ustat": (136, None), "uselib": (134, None),
    # Other namespaces.
    "unshare": (272, 97), "setns": (308, 268), "sethostname": (170, 161), "setdomainname": (171, 162),
    # Other processes.
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440),
    # Programs in the kernel, and what watches it.
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "fanotify_init": (300, 262),
    "syslog": (103, 116), "lookup_dcookie": (212, 18), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "create_module": (174, None), "query_module": (178, None),
    "get_kernel_syms": (177, None), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    # Rings, keys, memory in unusual ways.
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "vmsplice": (278, 75),
    "memfd_secret": (447, 447), "mbind": (237, 235), "set_mempolicy": (238, 237), "migrate_pages": (256, 238),
    "move_pages": (279, 239), "set_mempolicy_home_node": (450, 450),
    # The machine.
    "personality": (135, 92), "modify_ldt": (154, None), "iopl": (172, None), "ioperm": (173, None),
    "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89), "vhangup": (153, 58),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "clock_adjtime": (305, 266), "adjtimex": (159, 171),
    "nfsservctl": (180, 42), "_sysctl": (156, None),
    # Its place in the queue: who has to wait for a processor is not judged (`busy`), so nobody may choose to.
    "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119), "sched_setparam": (142, 118),
    "sched_setattr": (314, 274), "setpriority": (141, 140), "ioprio_set": (251, 30),
}  # fmt: skip
"""Numbers on x86_64 and aarch64; None: there is no such call."""
CLONE, CLONE3, SOCKET, SOCKETPAIR, IOCTL = (56, 220), (435, 435), (41, 198), (53, 199), (16, 29)
PRLIMIT = (302, 261)
NAMESPACES, AF_UNIX, TIOCSTI, TIOCLINUX = 0x7E020000, 1, 0x5412, 0x541C
_LOAD, _EQUAL, _ABOVE, _ANY, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_SECCOMP, _FILTER = 22, 2

Instruction = tuple[int, int, int, int]


def confine_calls() -> bool:
    """Filter this process's calls from here on; False where machine or kernel know no such filter."""
    machine = os.uname().machine
    if machine not in ARCHITECTURES:
        return False
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in program(machine))
    text = ctypes.create_string_buffer(code, len(code))
    head = ctypes.create_string_buffer(struct.pack("HP", len(code) // 8, ctypes.addressof(text)))
    prctl = ctypes.CDLL(None).prctl
    return bool(prctl(_SECCOMP, ctypes.c_ulong(_FILTER), head, 0, 0) == 0)


def program(machine: str) -> list[Instruction]:
    """The filter. Each rule ends in a return or leaves the call's number where it was."""
    at = list(ARCHITECTURES).index(machine)
    refused, missing = (_RETURN, 0, 0, FAIL | errno.EPERM), (_RETURN, 0, 0, FAIL | errno.ENOSYS)
    allowed = (_RETURN, 0, 0, ALLOW)
    found = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, ARCHITECTURES[machine]), missing, (_LOAD, 0, 0, 0)]
    found += [(_ABOVE, 0, 1, X32), missing]
    for numbers in DENIED.values():
        if (number := numbers[at]) is not None:
            found += [(_EQUAL, 0, 1, number), refused]
    # The C library then takes clone, whose flags can be seen.
    found += [(_EQUAL, 0, 1, CLONE3[at]), missing]
    found += [(_EQUAL, 0, 4, CLONE[at]), _argument(0), (_ANY, 0, 1, NAMESPACES), refused, allowed]
    for call in (SOCKET, SOCKETPAIR):
        found += [(_EQUAL, 0, 4, call[at]), _argument(0), (_EQUAL, 1, 0, AF_UNIX), refused, allowed]
    # Process 1 watches, and may be of the program's own user: its limits are not the program's to set.
    found += [(_EQUAL, 0, 4, PRLIMIT[at]), _argument(0), (_EQUAL, 0, 1, 1), refused, allowed]
    # Typing into a terminal that was left open.
    found += [(_EQUAL, 0, 4, IOCTL[at]), _argument(1), (_EQUAL, 1, 0, TIOCSTI), (_EQUAL, 0, 1, TIOCLINUX), refused]
    return [*found, allowed]


def _argument(number: int) -> Instruction:
    """The lower half, which is all that the kernel looks at of these."""
    return (_LOAD, 0, 0, 16 + 8 * number)
