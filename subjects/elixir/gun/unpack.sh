#!/bin/sh
# Unpacks Gun and cowlib into build/deps, from Debian's package of RabbitMQ, which contains them. The package is not
# installed: none of its scripts runs, and no broker starts.
set -eu

mkdir -p build/deps build/ebin build/rabbitmq
dpkg-deb --extract rabbitmq-server_*.deb build/rabbitmq
for library in gun cowlib; do
    mv build/rabbitmq/usr/lib/rabbitmq/lib/rabbitmq_server-*/plugins/"$library"-[0-9]* "build/deps/$library"
done
rm -r build/rabbitmq rabbitmq-server_*.deb
