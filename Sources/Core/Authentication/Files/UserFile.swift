/// A file of users with the hashes of their passwords, as Apache's htpasswd writes it: `name:hash`
/// on each line. Pure: it is given the content.
package struct UserFile: Sendable, Equatable {
    /// The file's absolute path.
    package let path: String
    private let hashes: [String: PasswordHash]
    /// The hash against which the password of an unknown user is checked, so that it takes as long
    /// as that of a known one: one of those with the commonest scheme and cost of the file. `nil`
    /// if there are no users.
    package let decoy: PasswordHash?

    package static let form = "name:hash, as Apache's htpasswd writes it"

    /// - Parameter content: the content of the file.
    package init(path: String, content: [UInt8]) throws(CredentialsFileError) {
        var hashes: [String: PasswordHash] = [:]
        var lines: [String: Int] = [:]
        var schemes: [PasswordHash.Scheme: (count: Int, first: Int, hash: PasswordHash)] = [:]
        try CredentialLines.read(content, what: "user", form: Self.form) {
            line throws(CredentialsFileError) in
            if let earlier = lines[line.name] {
                throw CredentialsFileError(
                    line: line.number,
                    "names the user \"\(line.name)\" again (first on line \(earlier))",
                    expected: "each user once")
            }
            lines[line.name] = line.number
            do throws(PasswordHashError) {
                let hash = try PasswordHash(line.rest)
                hashes[line.name] = hash
                schemes[hash.scheme, default: (0, line.number, hash)].count += 1
            } catch {
                throw CredentialsFileError(
                    line: line.number, "the password of \"\(line.name)\" \(error.problem)",
                    expected: error.expected)
            }
        }
        self.path = path
        self.hashes = hashes
        // Of equally common ones, that of the first line.
        decoy =
            schemes.values.max { ($0.count, $1.first) < ($1.count, $0.first) }?.hash
    }

    /// The hash of a user's password; `nil` for an unknown user.
    package func hash(of user: String) -> PasswordHash? { hashes[user] }

    /// Whether there are no users.
    package var isEmpty: Bool { hashes.isEmpty }
    /// The names, sorted.
    package var users: [String] { hashes.keys.sorted() }
    package func contains(_ user: String) -> Bool { hashes[user] != nil }
}
