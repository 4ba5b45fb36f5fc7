import HTTPCore

/// What is wrong in a file of users, groups or tokens. No text contains anything of a line but the
/// names in it: the rest may be a secret.
package struct CredentialsFileError: Error, Equatable, Sendable {
    /// The line, from 1.
    package var line: Int
    /// What is wrong, as a sentence without a subject's path.
    package var problem: String
    /// What was expected, or how to mend it.
    package var expected: String

    package init(line: Int, _ problem: String, expected: String) {
        self.line = line
        self.problem = problem
        self.expected = expected
    }
}

/// The lines of a file of users, groups or tokens: one entry a line, `name:…`; empty lines, and
/// those that begin with `#`, mean nothing. Lines may end with CR LF.
struct CredentialLines {
    /// The longest name, in bytes.
    static let maximumNameBytes = 256

    struct Line {
        /// From 1.
        var number: Int
        var name: String
        /// What follows the first colon, without outer white space.
        var rest: ArraySlice<UInt8>
    }

    /// Passes each entry to `body`.
    /// - Parameters:
    ///   - what: what a name is, for errors.
    ///   - form: the form of a line, for errors.
    static func read(
        _ content: [UInt8], what: String, form: String,
        _ body: (Line) throws(CredentialsFileError) -> Void
    ) throws(CredentialsFileError) {
        var start = 0
        var number = 0
        while start < content.count {
            let end = content[start...].firstIndex(of: 0x0A) ?? content.count
            var bytes = content[start..<end]
            start = end + 1
            number += 1
            if bytes.last == 0x0D { bytes = bytes.dropLast() }
            bytes = bytes.withoutOuterSpace
            guard let first = bytes.first, first != UInt8(ascii: "#") else { continue }
            guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else {
                throw CredentialsFileError(line: number, "has no colon", expected: form)
            }
            guard let name = name(of: bytes[..<colon].withoutOuterSpace) else {
                throw CredentialsFileError(
                    line: number, "does not begin with the name of a \(what)",
                    expected: """
                        1 to \(maximumNameBytes) bytes of UTF-8 without white space, control \
                        characters, colons and commas
                        """)
            }
            let rest = bytes[(colon + 1)...].withoutOuterSpace
            try body(Line(number: number, name: name, rest: rest))
        }
    }

    /// A name of a user, group or token; `nil` if the bytes are none. It may have no colon because
    /// of Basic (RFC 7617 §2), and no space or comma because lists of names have these.
    static func name(of bytes: some Collection<UInt8>) -> String? {
        guard (1...maximumNameBytes).contains(bytes.count), bytes.first != UInt8(ascii: "#"),
            bytes.allSatisfy({ byte in
                byte > 0x20 && byte != 0x7F && byte != UInt8(ascii: ":")
                    && byte != UInt8(ascii: ",")
            })
        else { return nil }
        guard let name = String(validating: bytes, as: UTF8.self) else { return nil }
        // Logs and terminals show names.
        let isShowable = name.unicodeScalars.allSatisfy { scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .spaceSeparator: false
            default: true
            }
        }
        return isShowable ? name : nil
    }
}
