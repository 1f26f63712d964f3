#!/bin/bash
# By hand with a real graph: make walks it, over ssh connections that are open already. This writes the Makefile that a
# person would have written.
set -eu
mkdir -p "$MEMORY/endpoints"
cd "$MEMORY"
awk -F'\t' '
  { id[NR] = $1; address[$1] = $3; needs[$1] = $4 == "-" ? "" : $4; stop[$1] = $5; start[$1] = $6; version[$1] = $7 }
  END {
    for (i in id) {
      it = id[i]; count = split(needs[it], need, ",")
      for (j = 1; j <= count; j++) {
        config[it] = config[it] " echo " need[j] " $$(cat endpoints/" need[j] ");"
        if (start[need[j]]) before[it] = before[it] " up-" need[j]
        if (stop[it] && stop[need[j]]) after[need[j]] = after[need[j]] " down-" it
      }
    }
    for (i in id) { it = id[i]; if (start[it]) all = all " up-" it; if (stop[it]) all = all " down-" it }
    print ".PHONY: all" all "\nall:" all
    for (i in id) {
      it = id[i]
      if (stop[it]) print "down-" it ":" after[it] "\n\t@ssh -n -F $$SSH " address[it] " \"$$COMP stop " it "\""
      if (start[it]) print "up-" it ":" before[it] (stop[it] ? " down-" it : "") "\n\t@{ echo version=" version[it] ";" config[it] \
        " } | ssh -F $$SSH " address[it] " \"cat >$$BASE/hosts/" it "/config && $$COMP start " it "\" >endpoints/" it
    }
  }' "$PLAN.tsv" >Makefile
