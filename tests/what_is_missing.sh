#!/bin/sh
# Say loudly what this machine lacks for the full test run, and how to get it. Installs it where that is allowed.
if ! command -v go >/dev/null 2>&1 && [ -z "$KUBEBUILDER_ASSETS" ]; then
    echo "NOT ALL TESTS WILL RUN: without Go 1.26 (https://go.dev/dl) no kube-apiserver is built, and KUBEBUILDER_ASSETS names none"
fi
missing=""
for pair in bwrap:bubblewrap sshd:openssh-server ssh:openssh-client chromium:chromium etcd:etcd-server kubectl:kubernetes-client; do
    tool=${pair%%:*}
    package=${pair##*:}
    if ! command -v "$tool" >/dev/null 2>&1 && [ ! -x "/usr/sbin/$tool" ]; then
        missing="$missing $package"
    fi
done
[ -z "$missing" ] && exit 0
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing for the tests:$missing"
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null && exit 0
fi
echo "=================================================================================="
echo "NOT ALL TESTS WILL RUN: this machine lacks$missing"
echo "get them with: sudo apt-get install$missing"
echo "=================================================================================="
exit 0
