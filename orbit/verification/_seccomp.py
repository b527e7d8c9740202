"""A system call filter for the child: no sockets, no new user namespaces, no tracing, no change of the allowed cores.

A second lock behind the sandbox, and the only one on the network where there is no sandbox. It is a deny list, because
numerical libraries use too many calls to list what they need. Offsets and numbers: `linux/seccomp.h`,
`linux/filter.h`, `asm/unistd.h`.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct

_SYSTEM_CALLS: dict[str, tuple[int, dict[str, int]]] = {
    "x86_64": (
        0xC000003E,
        {
            "shmget": 29, "socket": 41, "clone": 56, "ptrace": 101, "mount": 165, "sched_setaffinity": 203,
            "add_key": 248, "request_key": 249, "keyctl": 250, "unshare": 272, "perf_event_open": 298, "setns": 308,
            "process_vm_readv": 310, "process_vm_writev": 311, "bpf": 321, "userfaultfd": 323, "io_uring_setup": 425,
            "clone3": 435,
        },
    ),
    "aarch64": (
        0xC00000B7,
        {
            "mount": 40, "unshare": 97, "ptrace": 117, "sched_setaffinity": 122, "shmget": 194, "socket": 198,
            "add_key": 217, "request_key": 218, "keyctl": 219, "clone": 220, "perf_event_open": 241, "setns": 268,
            "process_vm_readv": 270, "process_vm_writev": 271, "bpf": 280, "userfaultfd": 282, "io_uring_setup": 425,
            "clone3": 435,
        },
    ),
}  # fmt: skip

_LOAD, _JUMP_EQUAL, _JUMP_GREATER_EQUAL, _JUMP_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_OFFSET_NUMBER, _OFFSET_ARCHITECTURE, _OFFSET_FIRST_ARGUMENT = 0, 4, 16
_CLONE_NEWUSER = 0x10000000
_X32_BIT = 0x40000000
_SET_MODE_FILTER = 1
_FLAGS = 0b101  # all threads; and no slow-down of the process by mitigations that the filter would switch on
_SECCOMP_CALL = {"x86_64": 317, "aarch64": 277}


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def build(machine: str) -> bytes | None:
    """The filter as BPF instructions, or None for a machine whose system call numbers are not known here."""
    if machine not in _SYSTEM_CALLS:
        return None
    architecture, numbers = _SYSTEM_CALLS[machine]
    denied = [number for name, number in numbers.items() if name not in ("clone", "clone3")]
    # Every jump is relative: "to the refusal" is the distance to the last instruction.
    head = [
        (_LOAD, "", "", _OFFSET_ARCHITECTURE),
        (_JUMP_EQUAL, "", "deny", architecture),
        (_LOAD, "", "", _OFFSET_NUMBER),
        (_JUMP_GREATER_EQUAL, "deny", "", _X32_BIT),
        *((_JUMP_EQUAL, "deny", "", number) for number in denied),
        (_JUMP_EQUAL, "missing", "", numbers["clone3"]),  # its flags lie in memory; the C library falls back to clone
        (_JUMP_EQUAL, "", "allow", numbers["clone"]),
        (_LOAD, "", "", _OFFSET_FIRST_ARGUMENT),
        (_JUMP_SET, "deny", "allow", _CLONE_NEWUSER),
    ]
    tail = {"allow": _ALLOW, "missing": _ERRNO | errno.ENOSYS, "deny": _ERRNO | errno.EPERM}
    targets = {label: len(head) + index for index, label in enumerate(tail)}
    code = b""
    for index, (operation, if_true, if_false, value) in enumerate(head):
        jumps = [targets[label] - index - 1 if label else 0 for label in (if_true, if_false)]
        code += struct.pack("<HBBI", operation, *jumps, value)
    return code + b"".join(struct.pack("<HBBI", _RETURN, 0, 0, value) for value in tail.values())


def install(libc: ctypes.CDLL) -> bool:
    """Filter this process for good; needs the no-new-privileges flag. False where the kernel or machine cannot."""
    machine = platform.machine()
    code = build(machine)
    if code is None:
        return False
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.cast(buffer, ctypes.c_void_p).value)
    return bool(libc.syscall(_SECCOMP_CALL[machine], _SET_MODE_FILTER, _FLAGS, ctypes.byref(program)) == 0)
