#!/bin/sh
# Starts nginx with a configuration that this script writes: start.sh SCHEME HOST PORT WORKERS. All files that it
# writes lie in TMPDIR, which is removed afterwards. It neither uses nor changes the configuration of the system's own
# nginx.
set -eu

scheme=$1 port=$3 workers=$4
case $2 in
*:*) host="[$2]" ;;
*) host=$2 ;;
esac
case $scheme in
https) secured=" ssl" ;;
*) secured="" ;;
esac

mkdir -p "$TMPDIR/temp" "$TMPDIR/files/bytes"
for size in 1024 65536; do
    head -c "$size" /dev/zero | tr '\0' x >"$TMPDIR/files/bytes/$size"
done
cat >"$TMPDIR/nginx.conf" <<END
daemon off;
$([ "$(id -u)" != 0 ] || echo "user root;") # the files are the caller's alone
worker_processes $workers;
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
    log_not_found off;
    server_tokens off;
    default_type text/plain;
    sendfile on;
    tcp_nopush on;
    open_file_cache max=100;

    # A connection ends when the client says so: neither by a count of requests nor by an idle minute.
    keepalive_requests 1000000000;
    keepalive_timeout 1h;
    client_header_timeout 1h;

    server {
        listen $host:$port$secured http2 backlog=4096 reuseport;
        ssl_certificate $PWD/cert.pem;
        ssl_certificate_key $PWD/key.pem;
        root files;
    }
}
END
# -e is needed: before nginx reads the configuration, it opens the log file that was compiled in, unless -e names
# another.
exec nginx -e stderr -p "$TMPDIR/" -c nginx.conf
