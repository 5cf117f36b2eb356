"""A seccomp profile of the OCI as the kernel takes it, by libseccomp, as runc makes it.

python compile.py PROFILE.json PROGRAM
"""

import ctypes, errno, json, sys

# libseccomp include/seccomp.h.in
ACTIONS = {"SCMP_ACT_ALLOW": 0x7FFF0000, "SCMP_ACT_ERRNO": 0x00050000}
COMPARE = {name: n for n, name in enumerate(("NE", "LT", "LE", "EQ", "GE", "GT", "MASKED_EQ"), 1)}
UNKNOWN = -1


class Argument(ctypes.Structure):
    _fields_ = [("index", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


lib = ctypes.CDLL("libseccomp.so.2")
lib.seccomp_init.restype = ctypes.c_void_p


def check(code):
    if code < 0:
        sys.exit(f"libseccomp says {code}")


def action(name, number=errno.EPERM):
    return ctypes.c_uint32(ACTIONS[name] | (number if name == "SCMP_ACT_ERRNO" else 0))


profile = json.load(open(sys.argv[1]))
context = ctypes.c_void_p(lib.seccomp_init(action(profile["defaultAction"])))
for rule in profile["syscalls"]:
    does = action(rule["action"], rule.get("errnoRet", errno.EPERM))
    arguments = [
        Argument(a["index"], COMPARE[a["op"].removeprefix("SCMP_CMP_")], a["value"], a.get("valueTwo", 0)) for a in rule.get("args") or ()
    ]
    for name in rule["names"]:
        number = lib.seccomp_syscall_resolve_name(name.encode())
        # One that this libseccomp has not heard of stays forbidden.
        if number != UNKNOWN:
            check(lib.seccomp_rule_add_array(context, does, number, len(arguments), (Argument * len(arguments))(*arguments)))
with open(sys.argv[2], "wb") as program:
    check(lib.seccomp_export_bpf(context, program.fileno()))
