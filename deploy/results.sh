# shellcheck shell=bash
# Sourced by deploy/test and deploy/sanitize: runs the tests and measurements, keeps their output in a
# folder, and shows one line of it per suite.

# start_results FOLDER: empties the folder for this run, and sets `results` to its absolute path.
start_results() {
    rm -rf "$1"
    mkdir -p "$1"
    results="$(realpath "$1")"
    status=0
}

# suites: reduces Swift's output to a line for each suite and each issue, the latter without arguments.
suites() {
    sed -unE -e 's/^(✘ .*) with [0-9]+ arguments? .* at ([^ ]+\.swift:[0-9]+)/\1 at \2/' \
        -e 's/^(((✔|✘) (Suite|Test run) |✘ |error: |.*Fatal error).{0,200}).*$/\1/p'
}

# The exit code of each of the following is 0 if nothing failed. What they write is in a log as well.

# swift_tests OPTION...: runs the Swift tests, which must have been built.
swift_tests() {
    local events=()
    # Events have the source location of issues; only newer toolchains support them.
    if swift test --help-hidden | grep -e --event-stream-output-path >/dev/null; then
        events=(--event-stream-output-path "$results/swift.events")
    fi
    swift test "$@" --skip-build --disable-xctest --xunit-output "$results/swift.xml" \
        "${events[@]}" 2>&1 | tee "$results/swift.log" | suites
}

# compile_integration_tests: leaves the tests' bytecode in __pycache__, so that not every process of the
# run compiles all of them. What is wrong with one is reported by the run.
compile_integration_tests() {
    env -u PYTHONDONTWRITEBYTECODE .build-venv/bin/python -m pytest Tests/Integration \
        --collect-only -q >/dev/null 2>&1 || true
}

# integration_tests PROCESSES [ARGUMENT]...: runs the integration tests against PINFOLD_BINARY in that
# many processes; the arguments go to pytest. The folders of the gateways of failed tests are kept.
integration_tests() {
    local processes="$1"
    shift
    PINFOLD_TEST_RESULTS="$results" .build-venv/bin/python -m pytest Tests/Integration -q \
        -n "$processes" --dist worksteal --junitxml "$results/integration.xml" "$@" 2>&1 \
        | tee "$results/integration.log"
}

# integration_tests_again: runs the few integration tests that failed once more, when nothing runs beside
# them. The exit code is 0 if all of them pass; they are listed all the same.
integration_tests_again() {
    local tests
    mapfile -t tests < <(.build-venv/bin/python deploy/summary.py --again "$results")
    [ "${#tests[@]}" -gt 0 ] || return 1
    say "once more, alone: ${tests[*]}"
    mkdir -p "$results/again"
    PINFOLD_TEST_RESULTS="$results/again" .build-venv/bin/python -m pytest "${tests[@]}" -q \
        --junitxml "$results/again/integration.xml" 2>&1 | tee "$results/again/integration.log"
}

# instructions: counts the instructions of PINFOLD_BINARY for each load, and compares them with the
# ceilings. These are those of one architecture.
instructions() {
    if [ "$(uname -m)" != x86_64 ]; then
        say "not compared: deploy/bench/ceilings is for x86_64, and this is $(uname -m)" 2>&1 \
            | tee "$results/instructions.log"
        return
    fi
    deploy/bench/instructions --junitxml "$results/instructions.xml" 2>&1 \
        | tee "$results/instructions.log"
}

# sum_up: lists the failed tests and the total. The exit code is 0 only if nothing failed.
sum_up() {
    .build-venv/bin/python deploy/summary.py "$status" "$results"
}
