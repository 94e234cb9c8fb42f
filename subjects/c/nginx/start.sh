#!/bin/sh
# Starts nginx with the configuration of this folder: start.sh FOLDER HOST PORT WORKERS.
#
# nginx takes no listening port from its command line, so this script fills it into a copy of nginx.conf.in. The copy
# is deleted before nginx starts, which reads it through an open descriptor. So nothing is left behind, however nginx
# ends. The pid file and the temporary folders lie in FOLDER. The configuration of the system's own nginx is neither
# used nor changed.
set -eu

folder=$1 port=$3 workers=$4
case $2 in
*:*) host="[$2]" ;;
*) host=$2 ;;
esac

mkdir -p "$folder/temp"
template=$(mktemp "$folder/nginx-conf.XXXXXX")
sed -e "s/@HOST@/$host/" -e "s/@PORT@/$port/" -e "s/@WORKERS@/$workers/" nginx.conf.in >"$template"
exec 3<"$template"
rm "$template"
# -e is needed: before nginx reads the configuration, it opens the log file that was compiled in, unless -e names
# another.
exec nginx -e stderr -p "$folder/" -c /dev/fd/3
