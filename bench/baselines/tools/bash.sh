#!/bin/bash
# By hand: tier by tier, one background ssh for each host over connections that are open already.
set -u
declare -A address needs stop start version tier
while IFS=$'\t' read -r id level host need down up number; do
  address[$id]=$host needs[$id]=${need#-} stop[$id]=$down start[$id]=$up version[$id]=$number tier[$level]+=" $id"
done <"$PLAN.tsv"
mkdir -p "$MEMORY/endpoints"
bring_up() {
  { echo "version=${version[$1]}"
    local IFS=,; for it in ${needs[$1]}; do echo "$it $(<"$MEMORY/endpoints/$it")"; done
  } | ssh -F "$SSH" "${address[$1]}" "cat >$BASE/hosts/$1/config && $COMP start $1" >"$MEMORY/endpoints/$1"
}
take_down() { ssh -n -F "$SSH" "${address[$1]}" "$COMP stop $1"; }
each() { # each FUNCTION TIER FLAGS: all of the tier at once
  local -n flags=$3; local id process processes=()
  for id in ${tier[$2]}; do
    if ((flags[$id])); then "$1" "$id" & processes+=($!); fi
  done
  for process in "${processes[@]}"; do wait "$process" || exit 1; done
}
for level in 3 2 1; do each take_down $level stop; done
for level in 1 2 3; do each bring_up $level start; done
