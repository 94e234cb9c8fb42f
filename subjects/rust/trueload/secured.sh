#!/bin/sh
# secured.sh SCHEME COMMAND …: the command, with --tls where the scheme is https.
scheme=$1
shift
if [ "$scheme" = https ]; then set -- "$@" --tls; fi
exec "$@"
