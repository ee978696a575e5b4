# Starts a worker twice, and kills it with SIGKILL: at 80 MiB resident, while it grows ("limit"), or when its second is up
# ("time"). supervisor.sh WHY PROGRAM WORDS...
why=$1
shift
for round in 1 2; do
  "$@" &
  worker=$!
  if [ "$why" = limit ]; then
    resident=0
    while [ "$resident" -lt 20480 ]; do  # pages
      sleep 0.02
      read -r size resident rest < "/proc/$worker/statm" || exit 3
    done
  else
    sleep 1.5
  fi
  kill -KILL "$worker"
  wait "$worker"
done
exit 0
