import HTTPCore

/// A file of groups, as Apache's mod_authz_groupfile reads it: `name: user user` on each line. A
/// group may be on several lines, whose users are all its members.
package struct GroupFile: Sendable, Equatable {
    /// The file's absolute path.
    package let path: String
    private let groups: [String: [String]]
    /// All groups, sorted.
    package let names: [String]
    /// The users that are named, each with the first line that does.
    package let members: [String: Int]

    package static let form = "name: user user"

    /// - Parameter content: the content of the file.
    package init(path: String, content: [UInt8]) throws(CredentialsFileError) {
        var groups: [String: [String]] = [:]
        var names: Set<String> = []
        var members: [String: Int] = [:]
        try CredentialLines.read(content, what: "group", form: Self.form) {
            line throws(CredentialsFileError) in
            names.insert(line.name)
            for word in line.rest.split(whereSeparator: ASCII.isWhitespace) {
                guard let user = CredentialLines.name(of: word) else {
                    throw CredentialsFileError(
                        line: line.number,
                        "the group \"\(line.name)\" has a member that is no name of a user",
                        expected: "names separated by spaces")
                }
                if members[user] == nil { members[user] = line.number }
                groups[user, default: []].append(line.name)
            }
        }
        self.path = path
        self.groups = groups.mapValues { Set($0).sorted() }
        self.names = names.sorted()
        self.members = members
    }

    /// The groups of a user, sorted.
    package func groups(of user: String) -> [String] { groups[user] ?? [] }
}
