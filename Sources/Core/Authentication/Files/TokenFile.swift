import HTTPCore

/// A file of tokens, each by its SHA-256: `name:sha256-hex[:group,group[:expires]]` on each line,
/// where `expires` is a time or date of RFC 3339. A name may have several tokens.
package struct TokenFile: Sendable {
    /// The file's absolute path.
    package let path: String
    private let entries: [ProofDigest: Identity]
    /// What the tokens stand for, in the order of the file.
    package let everyIdentity: [Identity]

    package static let form = "name:sha256-hex[:group,group[:expires]]"

    /// - Parameter content: the content of the file.
    package init(path: String, content: [UInt8]) throws(CredentialsFileError) {
        var entries: [ProofDigest: Identity] = [:]
        var ordered: [Identity] = []
        var lines: [ProofDigest: Int] = [:]
        try CredentialLines.read(content, what: "token", form: Self.form) {
            line throws(CredentialsFileError) in
            let parts = line.rest.split(
                separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
            guard let digest = parts.first.flatMap({ ProofDigest(hexadecimal: $0) }) else {
                throw CredentialsFileError(
                    line: line.number,
                    // The name may be the token itself, in the wrong place.
                    "a token is not given by its SHA-256 in hexadecimal digits",
                    expected: "64 digits, as `printf %s TOKEN | sha256sum` prints them")
            }
            if let earlier = lines[digest] {
                throw CredentialsFileError(
                    line: line.number,
                    "\"\(line.name)\" has the same token as line \(earlier)",
                    expected: "each token once")
            }
            lines[digest] = line.number
            let identity = Identity(
                user: line.name,
                groups: try Self.groups(parts.count > 1 ? parts[1] : [], of: line),
                by: .token(digest),
                expires: parts.count > 2 ? try Self.time(parts[2], of: line) : nil)
            entries[digest] = identity
            ordered.append(identity)
        }
        self.path = path
        self.entries = entries
        everyIdentity = ordered
    }

    private static func groups(
        _ bytes: ArraySlice<UInt8>, of line: CredentialLines.Line
    ) throws(CredentialsFileError) -> [String] {
        guard !bytes.isEmpty else { return [] }
        var groups: [String] = []
        for word in bytes.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false) {
            guard let group = CredentialLines.name(of: word.withoutOuterSpace) else {
                throw CredentialsFileError(
                    line: line.number,
                    "the token \"\(line.name)\" has a group that is no name",
                    expected: "group,group without other characters")
            }
            groups.append(group)
        }
        return groups
    }

    private static func time(
        _ bytes: ArraySlice<UInt8>, of line: CredentialLines.Line
    ) throws(CredentialsFileError) -> Int64 {
        guard let time = CivilDate.secondsSince1970(rfc3339: bytes) else {
            throw CredentialsFileError(
                line: line.number,
                "the end of the token \"\(line.name)\" is no date",
                expected: "a date or time as 2027-01-31 or 2027-01-31T12:00:00Z")
        }
        return time
    }

    /// What the token with a SHA-256 stands for; `nil` for an unknown token.
    package subscript(digest: ProofDigest) -> Identity? { entries[digest] }

    /// Whether there are no tokens.
    package var isEmpty: Bool { entries.isEmpty }
}

extension TokenFile: Equatable {
    package static func == (one: TokenFile, other: TokenFile) -> Bool {
        one.path == other.path && one.entries == other.entries
    }
}
