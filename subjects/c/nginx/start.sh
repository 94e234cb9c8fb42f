#!/bin/sh
# Starts nginx on our own configuration: start.sh FOLDER HOST PORT WORKERS.
#
# nginx takes no listening port from its command line, so the configuration is filled in here. It is read through a
# descriptor of a file that is already deleted, so that nothing stays behind however nginx ends. The pid file and the
# temporary folders lie in FOLDER: nothing of the system's own nginx is read, written or needed.
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
# Before the configuration is read nginx opens the log that was compiled in, unless -e names another.
exec nginx -e stderr -p "$folder/" -c /dev/fd/3
