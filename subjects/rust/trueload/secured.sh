#!/bin/sh
# Runs a command, and adds --tls to it if the scheme is https: secured.sh SCHEME COMMAND ...
scheme=$1
shift
if [ "$scheme" = https ]; then set -- "$@" --tls; fi
exec "$@"
