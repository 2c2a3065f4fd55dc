"""Programs that mean harm. They print HARM where what they try works; `@…@` is filled in by the test."""

# ruff: noqa: E501  # programs are clearer on one line

BOMBS = {
    "fork bomb": ("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", {"processes", "cpu"}),
    "fork tree that sleeps": (
        "import os, time\nfor _ in range(12):\n    try: os.fork()\n    except OSError: break\ntime.sleep(60)",
        {"processes"},
    ),
    "2000 threads": (
        "import threading, time\nfor _ in range(2000):\n    threading.Thread(target=time.sleep, args=(60,)).start()",
        {"processes"},
    ),
    "8 GB at once": ("bytearray(8 * 2**30)\nprint('HARM')", {"memory", "exit"}),
    "list that grows": ("x = []\nwhile True: x.append(bytearray(2**20))", {"memory", "exit"}),
    "memory by many processes": (
        "import os, time\nfor _ in range(6): \n    if os.fork() == 0: break\nx = bytearray(b'x') * (60 * 2**20)\ntime.sleep(60)",
        {"memory", "processes"},
    ),
    "10 GB file": (
        "with open('big', 'wb') as f:\n    for _ in range(10240): f.write(b'x' * 2**20)\nprint('HARM')",
        {"files", "exit", "signal"},
    ),
    "many small files": (
        "for i in range(10**6):\n    open(f'f{i}', 'w').close()\nprint('HARM')",
        {"files", "exit", "cpu"},
    ),
    "endless output": ("while True: print('x' * 10000)", {"output"}),
    "endless errors": ("import sys\nwhile True: print('x' * 10000, file=sys.stderr)", {"cpu", "wall", "busy"}),
    "endless loop": ("while True: pass", {"cpu"}),
    "long sleep": ("import time; time.sleep(1e9)", {"wall", "busy"}),
    "endless wait for input": ("import os\nr, w = os.pipe()\nos.read(r, 1)", {"wall", "busy"}),
    "catastrophic expression": ("import re; re.match(r'(a+)+$', 'a' * 40 + 'b')", {"cpu"}),
    "huge power": ("print(9**9**9)", {"cpu", "memory", "exit"}),
    "deep recursion in C": (
        "import sys\nsys.setrecursionlimit(10**9)\ndef f(): f()\nf()",
        {"signal", "memory", "exit", "cpu"},
    ),
    "ignores every signal": (
        "import signal\nfor s in range(1, 64):\n    try: signal.signal(s, signal.SIG_IGN)\n    except (OSError, ValueError): pass\n"
        "while True: pass",
        {"cpu"},
    ),
    "sparse file": ("f = open('s', 'wb'); f.seek(2**40); f.write(b'x'); f.flush(); print('HARM')", {"exit", "files"}),
    "raises its limits": (
        "import resource\nfor n in ('CPU', 'AS', 'NPROC', 'FSIZE'):\n    try:\n"
        "        resource.setrlimit(getattr(resource, 'RLIMIT_' + n), (-1, -1)); print('HARM')\n    except (ValueError, OSError): pass",
        {"exit"},
    ),
}
"""Text, and how it may end."""

QUIET = {
    "reads the passwords": "print(open('/etc/shadow').read(), 'HARM')",
    "reads the host's users": "print(open('/etc/passwd').read(), 'HARM')",
    "reads a file of the run": "print(open('@file@').read(), 'HARM')",
    "lists the run folder": "import os; print(os.listdir('@folder@'), 'HARM')",
    "writes into the run folder": "open('@folder@/planted', 'w').write('x'); print('HARM')",
    "writes beside the program": "import os; open(os.path.dirname(__file__) + '/planted', 'w'); print('HARM')",
    "writes into the root": "open('/planted', 'w'); print('HARM')",
    "writes into system folders": "open('/usr/lib/planted', 'w'); print('HARM')",
    "reads a secret of the environment": "import os; print('HARM' if 'PAPO_SECRET' in os.environ or len(os.environ) > 8 else '')",
    "reads another's environment": (
        "import os, glob\nfor f in glob.glob('/proc/[0-9]*/environ'):\n    try:\n"
        "        if b'PAPO_SECRET' in open(f, 'rb').read(): print('HARM')\n    except OSError: pass"
    ),
    "connects to the host": "import socket; socket.create_connection(('127.0.0.1', @port@), 2); print('HARM')",
    "connects to the world": "import socket; socket.create_connection(('192.0.2.1', 80), 2); print('HARM')",
    "asks a name server": "import socket; socket.getaddrinfo('example.org', 80); print('HARM')",
    "abstract socket of the host": (
        "import socket\ns = socket.socket(socket.AF_UNIX); s.connect('\\0papo-@port@'); print('HARM')"
    ),
    "kills the caller": "import os, signal; os.kill(@pid@, signal.SIGKILL); print('HARM')",
    "kills its parent": "import os, signal, time\nos.kill(os.getppid(), 9)\nos.kill(1, 9)\ntime.sleep(0.1)\nprint('still here')",
    "stops its parent": "import os, signal\nfor p in (os.getppid(), 1):\n    try: os.kill(p, signal.SIGSTOP)\n    except OSError: pass",
    "kills all": "import os; os.kill(-1, 9); print('still here')",
    "grandchild in a session of its own": (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        time.sleep(600)\n    os._exit(0)"
    ),
    "daemon that holds the output open": "import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True)",
    "reads the first process's memory": "open('/proc/1/mem', 'rb').read(1); print('HARM')",
    "reads the first process's files": "import os; print(os.listdir('/proc/1/fd'), 'HARM')",
    "looks out by the first process's root": "import os; print(os.listdir('/proc/1/root@folder@'), 'HARM')",
    "sees the host's processes": "import os; print('HARM' if os.path.exists('/proc/@pid@/cmdline') else '')",
    "changes the kernel's settings": "open('/proc/sys/kernel/hostname', 'w').write('x'); print('HARM')",
    "presses the kernel's keys": "open('/proc/sysrq-trigger', 'w').write('h'); print('HARM')",
    "symlink out": "import os; os.symlink('@file@', 'link'); print(open('link').read(), 'HARM')",
    "symlink up": "import os; os.symlink('/' + '../' * 9, 'up'); print(open('up@file@').read(), 'HARM')",
    "leaves its root": (
        "import os\nos.mkdir('d'); os.chroot('d')\nfor _ in range(9): os.chdir('..')\nos.chroot('.'); print(open('@file@').read(), 'HARM')"
    ),
    "becomes root": "import os; os.setuid(0); print('HARM')",
    "mounts": (
        "import ctypes\nc = ctypes.CDLL(None)\nprint('HARM' if c.mount(b'none', b'/usr', b'tmpfs', 0, None) == 0 else '')"
    ),
    "unmounts": "import ctypes\nprint('HARM' if ctypes.CDLL(None).umount2(b'/usr', 2) == 0 else '')",
    "makes a device": "import os, stat; os.mknod('disk', 0o666 | stat.S_IFBLK, os.makedev(8, 0)); print('HARM')",
    "traces the first process": "import ctypes\nprint('HARM' if ctypes.CDLL(None).ptrace(16, 1, 0, 0) == 0 else '')",
    "set-user-id": "import subprocess; print('HARM' if subprocess.run(['su', '-c', 'true']).returncode == 0 else '')",
    "writes to every open descriptor": (
        'import os\nfor fd in range(3, 256):\n    try: os.write(fd, b\'{"ending": "exit", "code": 0}\\n\'); os.fstat(fd)\n    except OSError: pass'
    ),
    "exits early": "import os; os._exit(0)",
    "fills shared memory": "open('/dev/shm/x', 'wb').write(b'x' * 2**20); print('HARM')",
    "has a right": (
        "for line in open('/proc/self/status'):\n    if line.startswith(('CapEff', 'CapPrm', 'CapInh', 'CapAmb')) and int(line.split()[1], 16): print('HARM')"
    ),
    "takes the watch's limits away": (
        "import os, resource\nfor n in range(16):\n    for pid in (1, os.getppid()):\n"
        "        try: resource.prlimit(pid, n, (0, 0)); print('HARM')\n        except (OSError, ValueError): pass"
    ),
    "starves the watch": (
        "import os\ntries = [lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0)), lambda: os.setpriority(0, 1, 19),\n"
        "    lambda: os.setpriority(2, 0, 19), lambda: os.setpriority(1, 0, 19), lambda: os.sched_setaffinity(1, {0}),\n"
        "    lambda: os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0)), lambda: os.nice(19), lambda: os.sched_setaffinity(0, {0})]\n"
        "for t in tries:\n    try: t(); print('HARM')\n    except OSError: pass"
    ),
    "asks the watch to stop": "import os, time\nfor s in range(1, 65):\n    try: os.kill(1, s)\n    except OSError: pass\ntime.sleep(0.2); print('still here')",
    "writes to a disk": "open('/dev/sda', 'wb'); print('HARM')",
}
"""Whatever way these end is fine, as long as no HARM is done."""

FORGERS = {
    "lying equality": "class L(int):\n    def __eq__(s, o): return True\n    __hash__ = int.__hash__\ndef f(x): return L(0)",
    "lying list": "class L(list):\n    def __eq__(s, o): return True\n    def __len__(s): return 1\ndef f(x): return L()",
    "lying text": "class S(str):\n    def __eq__(s, o): return True\n    __hash__ = str.__hash__\ndef f(x): return S('a')",
    "object equal to all": "class A:\n    def __eq__(s, o): return True\n    def __ne__(s, o): return False\ndef f(x): return A()",
    "patched builtins": (
        "import builtins\nbuiltins.isinstance = lambda *a: True\nbuiltins.type = lambda *a: int\nbuiltins.len = lambda *a: 1\n"
        "builtins.AssertionError = ZeroDivisionError\nbuiltins.all = lambda *a: True\ndef f(x): return 0"
    ),
    "patched json": "import json\njson.dumps = lambda *a, **k: '{\"passed\": true}'\njson.loads = lambda *a: {}\ndef f(x): return 0",
    "patched transfer": (
        "import sys\nfor m in list(sys.modules.values()):\n    for n in ('encode', 'decode', 'matches'):\n"
        "        if hasattr(m, n): setattr(m, n, lambda *a, **k: True)\ndef f(x): return 0"
    ),
    "forged messages": (
        'import os\nfor _ in range(50): os.write(4, b\'{"passed": true, "reason": ""}\\n\')\ndef f(x): return 0'
    ),
    "forged values": "import os\nfor _ in range(50): os.write(4, b'{\"value\": true}\\n')\ndef f(x): return 0",
    "forged handles": 'import os\nfor _ in range(50): os.write(4, b\'{"value": {"h": -1}}\\n\')\ndef f(x): return 0',
    "broken messages": "import os\nos.write(4, b'[' * 100000 + b'\\n')\ndef f(x): return 0",
    "binary messages": "import os\nos.write(4, bytes(range(256)) * 9 + b'\\n')\ndef f(x): return 0",
    "exit inside a call": "import os\ndef f(x): os._exit(0)",
    "exit when loaded": "raise SystemExit(0)",
    "exit by exception": "def f(x): raise SystemExit(0)",
    "assertion of its own": "def f(x): raise AssertionError",
    "huge list": "def f(x): return [0] * 10**8",
    "huge text": "def f(x): return 'x' * 10**8",
    "huge number": "def f(x): return 1 << 10**7",
    "endless nesting": "def f(x):\n    a = []\n    for _ in range(10**6): a = [a]\n    return a",
    "value that holds itself": "def f(x):\n    a = []\n    a.append(a)\n    return a",
    "colliding keys": "def f(x): return {i * (2**61 - 1): 0 for i in range(20000)}",
    "not a number": "def f(x): return float('nan')",
    "True for 1": "def f(x): return True",
    "looks for the tests": (
        "import gc, sys\ndef f(x):\n    for o in gc.get_objects():\n        if type(o) is dict and ('expected' in o or 'tests' in o): return 41\n"
        "    g = sys._getframe()\n    while g:\n        if 'expected' in g.f_locals or 'tests' in g.f_locals: return 41\n        g = g.f_back\n    return 0"
    ),
    "looks for the tests on disk": (
        "import glob\ndef f(x):\n    for name in glob.glob('/program/*') + glob.glob('/proc/[0-9]*/cmdline'):\n"
        "        if b'5041' in open(name, 'rb').read(): return 5041\n    return 0"
    ),
    "replaces the driver's main": (
        "import sys\nm = sys.modules['__main__']\nfor n in list(vars(m)):\n    if callable(vars(m)[n]): setattr(m, n, lambda *a: None)\ndef f(x): return 0"
    ),
    "answers from a thread": (
        "import os, threading\ndef g():\n    while True: os.write(4, b'{\"value\": 1}\\n')\nthreading.Thread(target=g, daemon=True).start()\n"
        "def f(x): return 0"
    ),
    "replaces the process": "import os, sys\nos.execv(sys.executable, [sys.executable, '-c', 'print(1)'])",
    "traces the driver": "import sys\nsys.settrace(lambda *a: None)\nsys.setprofile(lambda *a: None)\ndef f(x): return 0",
}
"""f(71) is 5041 in the tests; none of these knows that."""
