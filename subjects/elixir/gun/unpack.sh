#!/bin/sh
# Lays down Gun and cowlib in build/deps: from Debian's package of RabbitMQ, which ships them. The package is
# unpacked, not installed: no broker is started, none of its scripts runs.
set -eu

mkdir -p build/deps build/ebin build/rabbitmq
dpkg-deb --extract rabbitmq-server_*.deb build/rabbitmq
for library in gun cowlib; do
    mv build/rabbitmq/usr/lib/rabbitmq/lib/rabbitmq_server-*/plugins/"$library"-[0-9]* "build/deps/$library"
done
rm -r build/rabbitmq rabbitmq-server_*.deb
