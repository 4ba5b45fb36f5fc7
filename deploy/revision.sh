# shellcheck shell=bash
# Sourced by deploy/run, deploy/test and deploy/package: builds with the commit embedded, for the
# metric pinfold_build_info and for `pinfold --version`.

revision=Sources/CommandLine/pinfold/Revision+Generated.swift

# write_revision: makes the builds that follow claim the present commit, until remove_revision.
write_revision() {
    local commit
    commit="$(git describe --always --dirty --abbrev=12 --exclude '*' 2>/dev/null || echo unknown)"
    printf 'extension Revision {\n    static let commit = "%s"\n}\n' "$commit" >"$revision"
}

remove_revision() {
    rm -f "$revision"
}

# build_with_revision ARGUMENTS...: `swift build` with the commit embedded only while it runs, however
# it ends, so that no later build claims this commit.
build_with_revision() (
    trap remove_revision EXIT
    write_revision
    swift build "$@" >&2
)
