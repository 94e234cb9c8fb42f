#!/bin/sh
# Starts haproxy as a reverse proxy before nginx, with configurations that this script writes: start.sh SCHEME HOST
# PORT CPUS [text]. They serve files filled with the letter x over HTTP/2, or with `text` a short text over HTTP/1.1.
# All files that they write lie in TMPDIR, which is removed afterwards. When haproxy ends, nginx is ended too.
set -eu

case $2 in
*:*) host="[$2]" ;;
*) host=$2 ;;
esac
mkdir -p "$TMPDIR/temp" "$TMPDIR/files/bytes"
for size in 1024 65536; do
    head -c "$size" /dev/zero | tr '\0' x >"$TMPDIR/files/bytes/$size"
done
case $1 in
https)
    cat cert.pem key.pem >"$TMPDIR/both.pem" # haproxy wants both in one file
    secured="ssl crt both.pem alpn h2"
    ;;
*) secured="proto h2" ;;
esac
if [ "${5-}" = text ]; then secured=""; fi

cd "$TMPDIR"
cat >nginx.conf <<END
daemon off;
$([ "$(id -u)" != 0 ] || echo "user root;") # the files are the caller's alone
worker_processes $4;
pid temp/nginx.pid;
error_log stderr crit;
events {
    worker_connections 16384;
}
http {
    client_body_temp_path temp/body;
    proxy_temp_path temp/proxy;
    fastcgi_temp_path temp/fastcgi;
    uwsgi_temp_path temp/uwsgi;
    scgi_temp_path temp/scgi;
    access_log off;
    server_tokens off;
    log_not_found off;
    default_type text/plain;
    sendfile on;
    open_file_cache max=100;
    keepalive_requests 1000000000;
    keepalive_timeout 1h;
    server {
        listen unix:nginx.sock backlog=4096;
        root files;
        location = / {
            add_header X-Pad ".....................................................";
            return 200 "Hello, World!";
        }
    }
}
END
cat >haproxy.cfg <<END
global
    nbthread $4
    ssl-default-bind-options ssl-min-ver TLSv1.2
defaults
    mode http
    timeout connect 5s
    timeout client 1h
    timeout server 1h
    http-reuse always
frontend all
    bind $host:$3 backlog 4096 $secured
    default_backend nginx
backend nginx
    server nginx unix@nginx.sock
END
nginx -e stderr -p "$TMPDIR/" -c nginx.conf &
behind=$!
while [ ! -S nginx.sock ]; do
    kill -0 "$behind"
    sleep 0.01
done
haproxy -db -f haproxy.cfg &
before=$!
trap 'kill "$before" "$behind"; wait; exit 0' TERM INT
wait "$before" || true
kill "$behind"
wait
exit 1
