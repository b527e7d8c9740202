"""What the static policy knows of modules: which names of which modules are allowed, and which rule the others break.

`classify` maps a dotted path such as `os.environ.get` or `numpy.load` to the rule that its use breaks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from orbit.verification._policy_rules import Rule


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


HARMLESS_STDLIB = _names(
    """
    __future__ abc array bisect calendar cmath collections colorsys contextlib copy csv dataclasses datetime decimal
    difflib enum fractions functools graphlib hashlib heapq itertools json keyword math numbers operator pprint queue
    random re reprlib statistics string struct textwrap time typing warnings weakref zoneinfo
    """
)
"""Modules of the standard library that compute and nothing else."""

KNOWN_PACKAGES = _names(
    """
    autograd autoray chex diffrax equinox jax jaxlib jaxopt jaxtyping lineax mindspore networkx numpy
    opt_einsum optax optimistix scipy torch torchdiffeq tqdm typing_extensions
    """
)
"""Numerical packages beside the framework that need no second look."""

JUDGE_MODULES = frozenset({"evaluator", "oracle", "orbit", "harbor", "conftest", "runner", "tests", "test_outputs"})


def _by_rule(table: Mapping[Rule, str]) -> dict[str, Rule]:
    return {name: rule for rule, names in table.items() for name in names.split()}


STDLIB = _by_rule(
    {
        Rule.FILE_ACCESS: """
            bz2 configparser dbm filecmp fileinput genericpath glob gzip linecache lzma mailbox mimetypes
            netrc ntpath nturl2path pathlib plistlib posixpath shelve shutil sqlite3 stat tarfile tempfile
            tokenize xml zipfile _io
            """,
        Rule.CHILD_PROCESS: "multiprocessing _multiprocessing pty subprocess popen2 commands _posixsubprocess",
        Rule.PROCESS_ACCESS: "_signal _winapi fcntl msvcrt nt posix readline resource rlcompleter signal termios tty",
        Rule.NETWORK_ACCESS: """
            _socket _ssl asynchat asyncio asyncore ftplib http imaplib nntplib poplib select selectors smtpd
            smtplib socket socketserver ssl telnetlib urllib webbrowser wsgiref xmlrpc
            """,
        Rule.CTYPES_ACCESS: "_ctypes ctypes mmap",
        Rule.INTROSPECTION: """
            __main__ _frozen_importlib _opcode _testcapi _testinternalcapi _tracemalloc _xxsubinterpreters
            bdb dis faulthandler opcode site symtable sysconfig tracemalloc
            """,
        Rule.DYNAMIC_IMPORT: """
            _frozen_importlib_external _imp _pickle cProfile code codeop copyreg doctest ensurepip idlelib
            imp importlib lib2to3 marshal modulefinder pdb pickle pickletools pkgutil profile pydoc runpy
            timeit trace venv zipapp zipimport
            """,
        Rule.MODULE_PATCHING: "unittest mock",
        Rule.ENVIRONMENT_ACCESS: "getpass pwd grp spwd",
        Rule.BACKGROUND_WORK: "_thread atexit sched threading",
        Rule.BULK_DATA: "base64 binascii quopri uu zlib",
    }
)
"""Modules of the standard library whose import breaks a rule as such."""

THIRD_PARTY = _by_rule(
    {
        Rule.FILE_ACCESS: "h5py joblib orbax pandas pyarrow tables zarr fsspec safetensors",
        Rule.CHILD_PROCESS: "billiard dask loky mpi4py multiprocess pathos pexpect ray",
        Rule.NETWORK_ACCESS: "aiohttp boto3 datasets grpc httpx huggingface_hub paramiko requests urllib3 websockets",
        Rule.CTYPES_ACCESS: "cffi pybind11 pycuda cppyy llvmlite",
        Rule.DYNAMIC_IMPORT: "cloudpickle dill numexpr pip setuptools pkg_resources",
        Rule.MODULE_PATCHING: "pytest forbiddenfruit wrapt gorilla freezegun time_machine",
        Rule.PROCESS_ACCESS: "psutil",
        Rule.ENVIRONMENT_ACCESS: "dotenv decouple",
        Rule.BACKGROUND_WORK: "gevent greenlet trio anyio",
    }
)
"""Other packages whose import breaks a rule as such."""


@dataclass(frozen=True)
class Mixed:
    """A module that honest programs use in part: names that are allowed, names by rule, and the rule of all others."""

    allowed: frozenset[str]
    otherwise: Rule
    named: Mapping[str, Rule] = field(default_factory=dict)


MIXED: dict[str, Mixed] = {
    "os": Mixed(
        frozenset({"cpu_count", "process_cpu_count", "sched_getaffinity"}),
        Rule.FILE_ACCESS,
        _by_rule(
            {
                Rule.ENVIRONMENT_ACCESS: """
            environ environb getenv getenvb putenv unsetenv getlogin uname get_exec_path confstr sysconf
            """,
                Rule.CHILD_PROCESS: """
            execl execle execlp execlpe execv execve execvp execvpe fork forkpty popen posix_spawn
            posix_spawnp register_at_fork spawnl spawnle spawnlp spawnlpe spawnv spawnve spawnvp spawnvpe
            startfile system wait wait3 wait4 waitid waitpid
            """,
                Rule.PROCESS_ACCESS: """
            _exit abort getpgid getpid getppid getpriority kill killpg nice pidfd_open sched_setaffinity
            sched_setparam sched_setscheduler setgid setpgid setpgrp setpriority setsid setuid times unshare
            setns ptrace
            """,
            }
        ),
    ),
    "sys": Mixed(
        _names(
            """
            byteorder exit float_info float_repr_style getrecursionlimit getsizeof hash_info implementation int_info
            maxsize platform set_int_max_str_digits setrecursionlimit stderr stdout version version_info
            """
        ),
        Rule.INTROSPECTION,
        {"path": Rule.DYNAMIC_IMPORT, "meta_path": Rule.DYNAMIC_IMPORT, "path_hooks": Rule.DYNAMIC_IMPORT}
        | {"stdin": Rule.FILE_ACCESS, "__stdin__": Rule.FILE_ACCESS},
    ),
    "io": Mixed(frozenset({"StringIO", "BytesIO"}), Rule.FILE_ACCESS),
    "gc": Mixed(frozenset({"collect", "disable", "enable", "freeze", "isenabled"}), Rule.INTROSPECTION),
    "inspect": Mixed(
        frozenset({"signature", "Parameter", "Signature", "isfunction", "isclass", "ismethod", "isgeneratorfunction"}),
        Rule.INTROSPECTION,
    ),
    "traceback": Mixed(
        frozenset({"print_exc", "format_exc", "format_exception", "print_exception", "format_exception_only"}),
        Rule.INTROSPECTION,
    ),
    "types": Mixed(
        frozenset({"SimpleNamespace", "MappingProxyType", "MethodType", "NoneType", "GenericAlias", "UnionType"})
        | {"EllipsisType", "NotImplementedType", "DynamicClassAttribute", "new_class"},
        Rule.INTROSPECTION,
    ),
    "codecs": Mixed(frozenset(), Rule.FILE_ACCESS, {"decode": Rule.COMPUTED_NAME, "encode": Rule.COMPUTED_NAME}),
    "ast": Mixed(frozenset({"literal_eval"}), Rule.DYNAMIC_IMPORT),
    "platform": Mixed(
        frozenset({"machine", "python_version", "system", "processor", "python_implementation"}),
        Rule.ENVIRONMENT_ACCESS,
    ),
    "concurrent": Mixed(frozenset(), Rule.BACKGROUND_WORK),
    "logging": Mixed(
        _names(
            """
            CRITICAL DEBUG ERROR INFO WARNING captureWarnings critical debug disable error exception getLogger info
            warning NullHandler Formatter Logger
            """
        ),
        Rule.FILE_ACCESS,
        {"basicConfig": Rule.UNLISTED_IMPORT},
    ),
    "builtins": Mixed(
        frozenset(),
        Rule.INTROSPECTION,
        _by_rule(
            {
                Rule.FILE_ACCESS: "open input license copyright credits __file__ __cached__ __path__",
                Rule.DYNAMIC_IMPORT: "__import__ breakpoint compile eval exec __loader__ __spec__ help",
                Rule.INTROSPECTION: "__builtins__ __build_class__ globals locals vars dir",
            }
        ),
    ),
}

_STREAMS = ("stdout", "stderr")

CALLED_BUILTINS = frozenset({"input", "vars", "locals", "dir", "help", "license", "copyright", "credits"})
"""Builtins whose names are also good names for variables, so that they count only where nothing hides them."""

# Names that mean the same in every numerical package: reading and writing files, native code, other processes.
_GENERIC = _by_rule(
    {
        Rule.FILE_ACCESS: """
            DataSource dump compilation_cache export_text from_file from_filename from_npy from_qasm_file
            fromfile fromregex fsave genfromtxt imread imsave load load_checkpoint load_func load_npz
            loadtxt memmap mafromtxt ndfromtxt npyio open open_memmap profiler read_bytes read_csv read_text
            recfromcsv recfromtxt save save_checkpoint save_func save_npz savefig savetxt savez
            savez_compressed serialize_executable tensorboard to_csv tofile to_qasm_file write_bytes
            write_text write_to_file
            """,
        Rule.CTYPES_ACCESS: """
            LowLevelCallable __array_interface__ __array_struct__ __cuda_array_interface__ cffi
            cpp_extension ctypes ctypeslib f2py ffi load_inline load_library register_ffi_target
            """,
        Rule.DYNAMIC_IMPORT: """
            CompilationUnit distutils exec_command exec_module get_type_hints import_module load_module
            lambdify parse_expr runstring safe_eval sympify exec_mod_from_string load_with_pickle _evaluate
            """,
        Rule.CHILD_PROCESS: "Popen ProcessPoolExecutor popen process_map",
        Rule.NETWORK_ACCESS: "hub urlopen urlretrieve model_zoo multihost_utils DataserviceClient",
        Rule.ENVIRONMENT_ACCESS: "environ getenv putenv",
        Rule.BACKGROUND_WORK: "finalize thread_map ThreadPoolExecutor",
    }
)

_FILE_VERBS = ("read_", "write_", "tree_serialise", "tree_deserialise")
_FILE_NOUNS = ("_file", "_from_disk", "_to_disk")

_BELOW: dict[str, Rule] = {
    "scipy.io": Rule.FILE_ACCESS,
    "scipy.datasets": Rule.NETWORK_ACCESS,
    "jax.distributed": Rule.NETWORK_ACCESS,
    "torch.distributed": Rule.NETWORK_ACCESS,
    "torch.package": Rule.DYNAMIC_IMPORT,
    "torch.serialization": Rule.FILE_ACCESS,
    "tensorcircuit.cloud": Rule.NETWORK_ACCESS,
    "pennylane.data": Rule.NETWORK_ACCESS,
    "mindspore.export": Rule.FILE_ACCESS,
    "numpy.testing.extbuild": Rule.DYNAMIC_IMPORT,
    "numpy.testing.measure": Rule.DYNAMIC_IMPORT,
    "numpy.testing.rundocs": Rule.DYNAMIC_IMPORT,
    "torch.onnx": Rule.FILE_ACCESS,
    "torch.utils.benchmark": Rule.DYNAMIC_IMPORT,
    "torch.utils.collect_env": Rule.CHILD_PROCESS,
    "typing.ForwardRef": Rule.DYNAMIC_IMPORT,
    "typing._eval_type": Rule.DYNAMIC_IMPORT,
}

ANY_OBJECT = _by_rule(
    {
        Rule.FILE_ACCESS: """
            from_file from_json_file from_openqasm_file from_qasm_file fromfile genfromtxt loadtxt memmap open_memmap
            read_bytes read_text savefig savetxt savez savez_compressed to_file to_qasm_file tofile write_bytes
            write_text
            """,
        Rule.CTYPES_ACCESS: "__array_interface__ __array_struct__ __cuda_array_interface__ cffi ctypes ctypeslib",
        Rule.INTROSPECTION: """
            __base__ __bases__ __builtins__ __closure__ __code__ __func__ __getattribute__ __globals__
            __mro__ __reduce__ __reduce_ex__ __self__ __subclasses__ __traceback__ ag_frame co_code
            co_consts cr_frame f_back f_builtins f_code f_globals f_locals func_globals gi_code gi_frame
            gi_yieldfrom mro tb_frame tb_next __thisclass__ __self_class__
            """,
        Rule.DYNAMIC_IMPORT: """
            __import__ __loader__ __spec__ exec_module find_loader find_module find_spec import_module
            load_module
            """,
        Rule.CHILD_PROCESS: "Popen ProcessPoolExecutor popen",
        Rule.ENVIRONMENT_ACCESS: "environ getenv putenv",
    }
) | {"__file__": Rule.FILE_ACCESS, "__path__": Rule.FILE_ACCESS, "__cached__": Rule.FILE_ACCESS}
"""Attributes that break a rule on whatever object they stand."""

DOUBTFUL_ATTRIBUTES = {"__dict__": Rule.INTROSPECTION, "__doc__": Rule.BULK_DATA, "dump": Rule.FILE_ACCESS}
"""Attributes that are a flag on an object of unknown kind."""

REEXPORTED = _names(
    """
    atexit builtins ctypes gc importlib inspect linecache marshal mmap multiprocessing os pathlib pickle pkgutil posix
    runpy shutil signal socket subprocess sys sysconfig tempfile threading traceback unittest urllib zipfile
    """
)
"""Modules that other modules import and so hand on: `random._os` and `dataclasses.sys` are `os` and `sys`."""

_NOT_REEXPORTED = frozenset({"scipy.signal", "torch.signal", "jax.scipy.signal", "mindspore.scipy.signal"})


def join(base: str, name: str) -> str:
    """Path of an attribute; a standard-library module that another module carries is that module itself."""
    path = f"{base}.{name}"
    plain = name.lstrip("_") if name.startswith("_") and not name.endswith("_") else name
    if plain in REEXPORTED and path not in _NOT_REEXPORTED and not base.endswith("()"):
        return plain
    return path


def is_within(path: str, roots: frozenset[str] | tuple[str, ...]) -> str | None:
    """The root that a dotted path lies under, if any."""
    parts = path.split(".")
    prefixes = (".".join(parts[:length]) for length in range(1, len(parts) + 1))
    return next((prefix for prefix in prefixes if prefix in roots), None)


def classify(path: str) -> Rule | None:
    """The rule that using this dotted path breaks, or None."""
    root, *names = path.split(".")
    mixed = MIXED.get(root)
    if mixed is not None:
        return _classify_mixed(root, names, mixed)
    if root in JUDGE_MODULES:
        return Rule.TESTS_ACCESS
    if root in STDLIB or root in THIRD_PARTY:
        return STDLIB.get(root) or THIRD_PARTY[root]
    if (below := is_within(path, tuple(_BELOW))) is not None:
        return _BELOW[below]
    generic = root not in HARMLESS_STDLIB or root in ("typing", "weakref")
    called = False
    for name in names:
        if name in ANY_OBJECT:
            return ANY_OBJECT[name]
        # What a call returned is an object, and its methods may well be named `load` or `open`.
        if not called and name == "__dict__":
            return Rule.INTROSPECTION
        if name.startswith(_FILE_VERBS) or name.endswith(_FILE_NOUNS):
            return Rule.FILE_ACCESS
        if not called and generic and name in _GENERIC:
            return _GENERIC[name]
        called = called or name.endswith("()")
    return None


def _classify_mixed(root: str, names: list[str], mixed: Mixed) -> Rule | None:
    if not names:
        return None
    if root == "concurrent":
        return Rule.CHILD_PROCESS if {"ProcessPoolExecutor", "process"} & set(names) else Rule.BACKGROUND_WORK
    first = names[0].removesuffix("()")
    if root == "builtins":
        inside = next((ANY_OBJECT[name] for name in names[1:] if name in ANY_OBJECT), None)
        return mixed.named.get(first, Rule.INTROSPECTION if first == "__dict__" else inside)
    if first in _STREAMS and root == "sys":
        return None if set(names[1:]) <= {"write", "flush"} else Rule.FILE_ACCESS
    if first in mixed.allowed:
        return next((ANY_OBJECT[name] for name in names[1:] if name in ANY_OBJECT), None)
    return mixed.named.get(first, mixed.otherwise)


def is_listed(root: str) -> bool:
    """Whether the policy knows what importing this module means."""
    return root in HARMLESS_STDLIB or root in MIXED or root in KNOWN_PACKAGES or classify(root) is not None


DANGEROUS_NAMES = frozenset(_GENERIC) | frozenset(ANY_OBJECT) | frozenset(DOUBTFUL_ATTRIBUTES) | REEXPORTED
"""Every attribute name that matters on a module that is otherwise harmless."""
