#!/bin/sh
# Starts lighttpd with a configuration that this script writes: start.sh HOST PORT WORKERS. All files that it writes
# lie in TMPDIR, which is removed afterwards.
set -eu

mkdir "$TMPDIR/files"
printf 'Hello, World!' >"$TMPDIR/files/index.txt"
cat >"$TMPDIR/lighttpd.conf" <<END
server.document-root = "$TMPDIR/files"
server.bind = "$1"
server.port = $2
server.listen-backlog = 4096
server.tag = "lighttpd"
server.max-fds = 16384
server.max-worker = $([ "$3" = 1 ] && echo 0 || echo "$3")

# A connection ends when the client says so.
server.max-keep-alive-idle = 3600
server.max-keep-alive-requests = 65535
server.max-read-idle = 3600

server.modules = ("mod_setenv")
index-file.names = ("index.txt")
mimetype.assign = (".txt" => "text/plain")
static-file.etags = "disable"
server.range-requests = "disable"
setenv.set-response-header = ("X-Pad" => "..................................................", "Last-Modified" => "")
END
exec lighttpd -D -f "$TMPDIR/lighttpd.conf"
