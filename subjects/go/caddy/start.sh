#!/bin/sh
# Starts Caddy with a configuration that this script writes: start.sh SCHEME HOST PORT [text]. It serves files filled
# with the letter x over HTTP/2, or with `text` a short text over HTTP/1.1. All files that it writes lie in TMPDIR,
# which is removed afterwards. Caddy's administration endpoint is off.
set -eu

case ${4-} in
text)
    protocols="h1"
    site='header {
        Content-Type text/plain
        X-Pad .....................................................
    }
    respond / "Hello, World!" 200
    respond 404'
    ;;
*)
    protocols="h1 h2 h2c"
    site="root * $TMPDIR/files
    file_server"
    ;;
esac
mkdir -p "$TMPDIR/files/bytes"
for size in 1024 65536; do
    head -c "$size" /dev/zero | tr '\0' x >"$TMPDIR/files/bytes/$size"
done
case $1 in
https) secured="tls $PWD/cert.pem $PWD/key.pem" ;;
*) secured="" ;;
esac
cat >"$TMPDIR/Caddyfile" <<END
{
    admin off
    auto_https off
    log {
        level ERROR
    }
    servers {
        protocols $protocols
        # A connection ends when the client says so.
        timeouts {
            idle 1h
        }
    }
}
$1://:$3 {
    bind $2
    $secured
    $site
}
END
exec caddy run --config "$TMPDIR/Caddyfile" --adapter caddyfile
