#!/bin/sh
# The trusted judge runs on the host and is never copied into a container, so nothing can be graded from in here.
echo "this task is judged by orbit: orbit verify SOLUTION --task ID --framework NAME" >&2
exit 1
