# shellcheck shell=bash
# Sourced by the scripts beside it: installs Debian packages, but only if one is missing, so that a
# second run needs no network.

# Packages for building and running the gateway.
# shellcheck disable=SC2034 # read by the scripts that source this
build_packages=(
    ca-certificates
    curl
    g++
    libargon2-dev
    libavif-dev
    libbrotli-dev
    libc-ares-dev
    libcrypt-dev
    libexpat1-dev
    libidn2-dev
    libjpeg62-turbo-dev
    libpng-dev
    libpsl-dev
    libre2-dev
    libsqlite3-dev
    libssl-dev
    libwebp-dev
    libyaml-dev
    libzstd-dev
    openssl
    pkg-config
    publicsuffix
    zlib1g-dev
)

# Further packages for the tests: origins, clients and checkers.
# shellcheck disable=SC2034 # read by the scripts that source this
test_packages=(
    binutils
    chromium
    faketime
    git
    h2o
    haproxy
    iproute2
    iptables
    json-schema-test-suite
    libnginx-mod-stream
    libnss3-tools
    mandoc
    microsocks
    nghttp2-client
    nghttp2-proxy
    nftables
    nginx
    node-undici
    procps
    prometheus
    python3
    python3-venv
    redis-server
    shellcheck
    squid-openssl
    systemd
    tinyproxy
    util-linux
    wget
    zstd
)
# Further packages for deploy/package.
# shellcheck disable=SC2034 # read by the scripts that source this
pack_packages=(
    binutils
    debhelper
    dpkg-dev
    python3
    tzdata
)

# Languages of client tests, whose tools may already be installed from elsewhere.
command -v go >/dev/null || test_packages+=(golang-go)
command -v javac >/dev/null || test_packages+=(default-jdk-headless)
command -v node >/dev/null || test_packages+=(nodejs)

# say TEXT...: prints a line of progress on standard error, so that standard output can be piped.
say() {
    printf '==> %s\n' "$*" >&2
}

# fail TEXT...: prints an error and ends the script.
fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# as_root COMMAND...: runs a command as root, with sudo if necessary.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        fail "'$*' requires root, and there is no sudo: run it as root, then run this again"
    fi
}

# installed PACKAGE: whether a package is completely installed.
installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# Some packages (nginx, prometheus) start a server when they are installed. While /usr/sbin/policy-rc.d
# exits with 101, none is started. An existing policy-rc.d is left alone.
policy=/usr/sbin/policy-rc.d

install_without_starting() {
    local guard=no status=0
    if [ ! -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
        as_root chmod 755 "$policy"
        guard=yes
    fi
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install --yes --quiet --no-install-recommends "$@" >&2 || status=$?
    if [ "$guard" = yes ]; then
        as_root rm -f "$policy"
    fi
    return "$status"
}

# require_packages PACKAGE...: installs the packages that are missing, and leaves their services off.
require_packages() {
    local package service missing=()
    for package in "$@"; do
        installed "$package" || missing+=("$package")
    done
    if [ "${#missing[@]}" -eq 0 ]; then
        return
    fi
    command -v apt-get >/dev/null \
        || fail "missing Debian packages, and there is no apt-get to install them: ${missing[*]}"
    say "installing ${missing[*]}"
    as_root apt-get update --quiet >&2 || fail "apt-get update failed: is there a network?"
    install_without_starting "${missing[@]}" || fail "could not install: ${missing[*]}"
    for package in "${missing[@]}"; do
        # Do not start these when the machine boots either.
        case "$package" in
            h2o | haproxy | nghttp2-proxy | nginx | prometheus | squid-openssl | trafficserver)
                if [ -d /run/systemd/system ]; then
                    service=${package%-openssl}
                    as_root systemctl disable --quiet "${service/#nghttp2-proxy/nghttpx}" >&2 || true
                fi
                ;;
        esac
    done
}

# require_swift: checks for the Swift toolchain, the only requirement that is not installed here.
require_swift() {
    command -v swift >/dev/null \
        || fail "swift is not on PATH: install Swift 6.2 or later from https://www.swift.org/install/linux/"
    command -v git >/dev/null || require_packages git
}
