import HTTPCore

/// Changes a file of users line by line. Whatever else is in it stays as it is: comments, the
/// order, and lines that cannot be used, one of which may be what is being mended.
package enum UserLines {
    /// Whether a text can be the name of a user.
    package static func isName(_ text: String) -> Bool {
        CredentialLines.name(of: Array(text.utf8)) != nil
    }

    /// The content with `name:hash` in place of the user's line, or after the last line.
    package static func setting(_ name: String, to hash: String, in content: [UInt8]) -> [UInt8] {
        let line = Array("\(name):\(hash)".utf8)
        var lines = split(content)
        var isSet = false
        lines = lines.filter { candidate in
            guard names(candidate, name) else { return true }
            defer { isSet = true }
            return !isSet
        }
        if let index = lines.firstIndex(where: { names($0, name) }) {
            lines[index] = line
        } else {
            lines.append(line)
        }
        return joined(lines)
    }

    /// The content without the user's lines; `nil` if there is none.
    package static func removing(_ name: String, from content: [UInt8]) -> [UInt8]? {
        let lines = split(content)
        let left = lines.filter { !names($0, name) }
        return left.count < lines.count ? joined(left) : nil
    }

    private static func names(_ line: [UInt8], _ name: String) -> Bool {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return false }
        return CredentialLines.name(of: line[..<colon].withoutOuterSpace) == name
    }

    /// The lines without their line feeds.
    private static func split(_ content: [UInt8]) -> [[UInt8]] {
        var lines = content.split(separator: 0x0A, omittingEmptySubsequences: false).map {
            Array($0)
        }
        if lines.last == [] { lines.removeLast() }
        return lines
    }

    private static func joined(_ lines: [[UInt8]]) -> [UInt8] { lines.flatMap { $0 + [0x0A] } }
}

extension PasswordHash.Scheme: CustomStringConvertible {
    /// As in `pinfold user list`.
    package var description: String {
        switch self {
        case .bcrypt(let cost): "bcrypt, cost \(cost)"
        case .sha256(let rounds): "SHA-256, \(rounds) rounds"
        case .sha512(let rounds): "SHA-512, \(rounds) rounds"
        case .yescrypt(let parameters): "yescrypt, \(parameters)"
        case .argon2(let cost):
            "argon2\(cost.variant == .id ? "id" : "i"), \(cost.memoryKiB) KiB, "
                + "\(cost.passes) passes"
        }
    }
}
