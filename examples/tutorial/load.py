# Sends requests to an address, one after the other, until the file "enough" appears. Then it says how many were served.
import os
import sys
import time
import urllib.request

served = failed = 0
while not os.path.exists("enough") or served == 0:
    try:
        urllib.request.urlopen(sys.argv[1], timeout=5).read()
        served += 1
    except OSError:
        failed += 1
    time.sleep(0.01)
print(f"{served} requests served, {failed} failed", flush=True)
