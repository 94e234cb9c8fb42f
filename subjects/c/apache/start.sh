#!/bin/sh
# Starts Apache httpd with a configuration that this script writes: start.sh SCHEME HOST PORT PROCESSES [text]. It
# serves files filled with the letter x over HTTP/2, or with `text` a short text over HTTP/1.1. Of the system's
# installation it uses only the modules.
#
# When started as root, Apache serves as another user, who cannot look into TMPDIR. So the files that it serves lie in
# a world-readable folder in /tmp, which is removed at the end.
set -eu

case $2 in
*:*) host="[$2]" ;;
*) host=$2 ;;
esac
case $1 in
https)
    protocol=h2
    secured="SSLEngine on
SSLCertificateFile $PWD/cert.pem
SSLCertificateKeyFile $PWD/key.pem"
    ;;
*) protocol=h2c secured="" ;;
esac
headers=""
if [ "${5-}" = text ]; then
    protocol=http/1.1
    headers='DirectoryIndex index.txt
ForceType text/plain
FileETag None
Header unset Last-Modified
Header unset Accept-Ranges
Header set X-Pad ....................................................'
fi

files=$(mktemp -d /tmp/apache-subject.XXXXXX)
trap 'rm -rf "$files"' EXIT
chmod 755 "$files"
mkdir "$files/bytes"
for size in 1024 65536; do
    head -c "$size" /dev/zero | tr '\0' x >"$files/bytes/$size"
done
printf 'Hello, World!' >"$files/index.txt"
cat >"$TMPDIR/apache.conf" <<END
$(for module in mpm_event authz_core ssl http2 dir mime headers; do
    echo "LoadModule ${module}_module /usr/lib/apache2/modules/mod_$module.so"
done)
$([ "$(id -u)" != 0 ] || printf 'User nobody\nGroup nogroup\n')
ServerRoot "$TMPDIR"
DefaultRuntimeDir "$TMPDIR"
PidFile "$TMPDIR/pid"
ErrorLog /dev/stderr
LogLevel crit
ServerName subject
ServerTokens Prod
Listen $host:$3
ListenBacklog 4096

StartServers $4
ServerLimit $4
ThreadsPerChild 64
MaxRequestWorkers $((64 * $4))
AsyncRequestWorkerFactor 256
MaxConnectionsPerChild 0

# A connection ends when the client says so.
KeepAliveTimeout 3600
MaxKeepAliveRequests 0
Timeout 3600

Protocols $protocol
$secured
TypesConfig /dev/null
DocumentRoot "$files"
$headers
<Directory "$files">
    Require all granted
    AllowOverride None
</Directory>
END
apache2 -D FOREGROUND -f "$TMPDIR/apache.conf" &
server=$!
trap 'kill "$server"; wait; exit 0' TERM INT
wait "$server"
