import HTTPCore
import Trust

/// Whom the certificates of clients stand for: the first rule that matches one decides. One that a
/// rule matches in two ways stands for nobody.
package struct CertificateUsers: Sendable, Equatable {
    package let rules: [CertificateUserRule]

    package init(_ rules: [CertificateUserRule]) { self.rules = rules }

    /// The user and the groups besides those in the file of groups; `nil` for nobody.
    func user(of names: CertificateNames) -> (name: String, groups: [String])? {
        for rule in rules {
            switch rule.match(names) {
            case .none: continue
            case .ambiguous: return nil
            case .user(let name): return (name, rule.groups)
            }
        }
        return nil
    }
}

/// A rule that says whom some certificates stand for.
package struct CertificateUserRule: Sendable, Equatable {
    /// What it looks at.
    package enum Subject: Sendable, Hashable {
        /// The subject.
        case subject(NamePattern)
        /// An alternative name, of any number that the certificate has.
        case dns(String)
        case email(String)
        case uri(String)

        /// The same as a pattern; in a DNS name a star ends at a dot, in a mail address at `@`, in
        /// a URI at a slash.
        fileprivate var pattern: TextPattern? {
            switch self {
            case .subject: nil
            case .dns(let text):
                TextPattern(text, barrier: UInt8(ascii: "."), ignoresCase: true)
            case .email(let text): TextPattern(text, barrier: UInt8(ascii: "@"))
            case .uri(let text): TextPattern(text, barrier: UInt8(ascii: "/"))
            }
        }

        fileprivate var stars: Int {
            if case .subject(let pattern) = self { pattern.stars } else { pattern?.stars ?? 0 }
        }
    }

    package let subject: Subject
    private let pattern: TextPattern?
    /// The name as written, with `$1` for what the star of the pattern stands for.
    package let user: String
    /// What is before and after `$1`; `nil` without it.
    private let around: (before: String, after: String)?
    package let groups: [String]

    /// - Parameters:
    ///   - user: a name, or one with `$1` in it.
    ///   - groups: names of groups.
    package init(
        _ subject: Subject, user: String, groups: [String] = []
    ) throws(CertificateUserRuleError) {
        self.subject = subject
        pattern = subject.pattern
        self.user = user
        self.groups = groups
        let parts = user.split(separator: "$", omittingEmptySubsequences: false)
        switch parts.count {
        case 1:
            guard CredentialLines.name(of: user.utf8) != nil else { throw .user }
            around = nil
        case 2 where parts[1].hasPrefix("1"):
            let (before, after) = (String(parts[0]), String(parts[1].dropFirst()))
            guard before.utf8.contains(UInt8(ascii: ":")) else { throw .mayBeInFile }
            guard SignedTokenNames.isUser((before + after).utf8) else { throw .user }
            guard subject.stars == 1 else { throw .stars }
            around = (before, after)
        default: throw .user
        }
        guard groups.allSatisfy({ CredentialLines.name(of: $0.utf8) != nil }) else {
            throw .groups
        }
    }

    package static func == (one: Self, other: Self) -> Bool {
        one.subject == other.subject && one.user == other.user && one.groups == other.groups
    }

    /// The name, if it is the same for all certificates.
    package var fixedUser: String? { around == nil ? user : nil }

    /// Whether it may give somebody this name.
    package func mayName(_ name: String) -> Bool {
        guard let around else { return name.utf8.elementsEqual(user.utf8) }
        return name.utf8.count > around.before.utf8.count + around.after.utf8.count
            && name.utf8.starts(with: around.before.utf8)
            && name.utf8.suffix(around.after.utf8.count).elementsEqual(around.after.utf8)
            && SignedTokenNames.isUser(name.utf8)
    }

    enum Match: Equatable {
        case none
        case ambiguous
        case user(String)
    }

    func match(_ names: CertificateNames) -> Match {
        let stars: [[UInt8]] =
            switch subject {
            case .subject(let pattern): pattern.match(names.subject).map { [$0] } ?? []
            case .dns: names.dns.compactMap { pattern?.match($0) }
            case .email: names.email.compactMap { pattern?.match($0) }
            case .uri: names.uri.compactMap { pattern?.match($0) }
            }
        guard let star = stars.first else { return .none }
        guard let around else { return .user(user) }
        guard stars.allSatisfy({ $0 == star }) else { return .ambiguous }
        // A wildcard in a certificate is no name of anybody.
        guard !star.isEmpty, !star.contains(UInt8(ascii: "*")) else { return .ambiguous }
        let bytes = Array(around.before.utf8) + star + Array(around.after.utf8)
        guard SignedTokenNames.isUser(bytes) else { return .ambiguous }
        return .user(String(decoding: bytes, as: UTF8.self))
    }
}

/// Why a rule cannot be used.
package enum CertificateUserRuleError: Error, Sendable, Equatable {
    case user
    /// What is in certificates must not become the name of somebody in a file.
    case mayBeInFile
    case stars
    case groups

    package var problem: String {
        switch self {
        case .user: "is not the name of a user"
        case .mayBeInFile: "may become the name of a user in a file"
        case .stars: "has $1, but the pattern has not exactly one *"
        case .groups: "has a group that is no name"
        }
    }

    package var expected: String {
        switch self {
        case .user: "a name, with $1 for what the * of the pattern stands for"
        case .mayBeInFile: "a colon before $1, as in device:$1: names in files have none"
        case .stars: "one *, and no **"
        case .groups: "names without white space, control characters, colons and commas"
        }
    }
}
