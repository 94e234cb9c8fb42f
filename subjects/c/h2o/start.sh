#!/bin/sh
# Starts h2o with a configuration that this script writes: start.sh SCHEME HOST PORT THREADS [text]. It serves files
# filled with the letter x over HTTP/2, or with `text` a short text over HTTP/1.1. All files that it writes lie in
# TMPDIR, which is removed afterwards.
set -eu

mkdir -p "$TMPDIR/files/bytes"
for size in 1024 65536; do
    head -c "$size" /dev/zero | tr '\0' x >"$TMPDIR/files/bytes/$size"
done
printf 'Hello, World!' >"$TMPDIR/files/index.txt"
{
    cat <<END
listen:
  host: "$2"
  port: $3
END
    if [ "$1" = https ]; then
        cat <<END
  ssl:
    certificate-file: "$PWD/cert.pem"
    key-file: "$PWD/key.pem"
    ocsp-update-interval: 0
END
    fi
    if [ "$(id -u)" = 0 ]; then echo "user: root"; fi # only the caller can read the files
    cat <<END
num-threads: $4
max-connections: 16384
# A connection ends when the client says so.
http1-request-timeout: 3600
http2-idle-timeout: 3600
hosts:
  default:
    paths:
      /:
        file.dir: "$TMPDIR/files"
        file.index: [ "index.txt" ]
END
    if [ "${5-}" = text ]; then
        cat <<END
        file.etag: OFF
        header.unset: "last-modified"
        header.unset: "accept-ranges"
        header.add: "X-Pad: ........................."
END
    fi
} >"$TMPDIR/h2o.conf"
exec h2o -m worker -c "$TMPDIR/h2o.conf"
