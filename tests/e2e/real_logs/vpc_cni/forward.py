"""python forward.py PORT=SOCKET... -- COMMAND...

Runs the command; what it says to a port of the loopback interface goes to a Unix socket, which network namespaces do not part.
"""

import socket, subprocess, sys, threading


def pump(source, sink):
    try:
        while data := source.recv(1 << 16):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # Either end may hang up.


def forward(listener, path):
    while True:
        client, _ = listener.accept()
        server = socket.socket(socket.AF_UNIX)
        server.connect(path)
        for ends in ((client, server), (server, client)):
            threading.Thread(target=pump, args=ends, daemon=True).start()


split = sys.argv.index("--")
for port, path in (pair.split("=", 1) for pair in sys.argv[1:split]):
    listener = socket.create_server(("127.0.0.1", int(port)))
    threading.Thread(target=forward, args=(listener, path), daemon=True).start()
sys.exit(subprocess.call(sys.argv[split + 1 :]))
