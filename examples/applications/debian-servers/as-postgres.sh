#!/bin/sh
# PostgreSQL refuses to be root, so where the agent is root it runs as the user of its package. The directories of an agent
# are closed to that user; the way over an open file goes past them, to the one directory that is his.
set -e
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
as=""
if [ "$(id -u)" = 0 ]; then as="setpriv --reuid=postgres --regid=postgres --clear-groups"; fi

case "$1" in
  make)
    test ! -d data || exit 0
    rm -rf making
    mkdir -m 0700 making
    test -z "$as" || chown postgres: making
    exec 9< making
    $as "$bin/initdb" --pgdata=/proc/self/fd/9 --username=shop --encoding=UTF8 --locale=C --auth=trust --no-sync
    word=$(printf %s "$PASSWORD" | sed "s/'/''/g")
    echo "ALTER USER shop PASSWORD '$word'" | $as "$bin/postgres" --single -D /proc/self/fd/9 postgres
    echo "host all all all scram-sha-256" > making/pg_hba.conf
    mv making data
    ;;
  run)
    exec 9< data
    exec $as "$bin/postgres" -D /proc/self/fd/9 -p "$3" -c listen_addresses="$2" -c unix_socket_directories=
    ;;
esac
