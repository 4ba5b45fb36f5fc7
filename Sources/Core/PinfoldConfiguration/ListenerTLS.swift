/// How the clients of a listener speak TLS to it.
package struct ListenerTLS: Sendable, Equatable {
    /// The oldest version that is spoken.
    package enum Minimum: String, Sendable, Equatable, CaseIterable {
        case tls10 = "1.0"
        case tls11 = "1.1"
        case tls12 = "1.2"
        case tls13 = "1.3"
    }

    /// A certificate with its key, the files read when the configuration was loaded.
    package struct Certificate: Sendable, Equatable {
        /// The absolute path of the certificate, and of those that lead to its anchor behind it.
        package var path: String
        /// Their PEM.
        package var chain: [UInt8]
        /// The absolute path of the private key.
        package var keyPath: String
        /// Its PEM.
        package var key: [UInt8]
        /// The absolute path of the certificate's OCSP response; nil without one.
        package var staplePath: String?
        /// The response, in DER.
        package var staple: [UInt8]?

        /// A certificate without an OCSP response.
        package init(path: String, chain: [UInt8], keyPath: String, key: [UInt8]) {
            self.path = path
            self.chain = chain
            self.keyPath = keyPath
            self.key = key
        }
    }

    /// What clients may be shown, chosen by the name that they ask for; the first one is the
    /// default. Not empty.
    package var certificates: [Certificate] = []
    /// The oldest version that is spoken.
    package var minimum = Minimum.tls12
    /// Who must have issued a client's certificate; empty: clients are asked for none.
    package var clientRoots: [TrustRoots] = []
    /// The subjects of clients' certificates that are served; empty: all.
    package var clientSubjects: [SubjectPattern] = []

    /// The defaults, without a certificate.
    package init() {}

    /// Whether a connection that was made under `other` is as good as a new one: whatever its
    /// certificate was, its client has proved what is asked for now.
    package func admits(connectionsOf other: ListenerTLS) -> Bool {
        clientRoots == other.clientRoots && minimum == other.minimum
    }

    /// Whether a client is served.
    /// - Parameter subject: of the certificate that it has proved itself with; nil for none.
    package func serves(subject: String?) -> Bool {
        guard !clientSubjects.isEmpty else { return clientRoots.isEmpty || subject != nil }
        guard let subject else { return false }
        return clientSubjects.contains { $0.matches(subject) }
    }
}

/// Which subjects of certificates are meant, in the form of RFC 2253: `CN=device-*,O=Example`.
///
/// `*` stands for any characters within one attribute, and `**` for any number of attributes.
/// Letters are compared as they are written.
package struct SubjectPattern: Sendable, Hashable, CustomStringConvertible {
    /// As it was written.
    package let description: String
    private let attributes: [[UInt8]]

    /// Subjects are told up to so many bytes: one that is as long may have been cut.
    private static let subjectBytes = 256
    private static let anyAttributes = Array("**".utf8)

    /// nil for a text that is no list of attributes.
    package init?(_ text: String) {
        description = text
        attributes = Self.attributes(of: text)
        let areValid = attributes.allSatisfy { attribute in
            attribute == Self.anyAttributes
                || attribute.contains(UInt8(ascii: "=")) && attribute.first != UInt8(ascii: "=")
        }
        guard areValid, text.utf8.count < Self.subjectBytes else { return nil }
    }

    /// Whether a subject is meant; one that is too long to be known whole is not.
    package func matches(_ subject: String) -> Bool {
        guard subject.utf8.count < Self.subjectBytes else { return false }
        return Self.matches(attributes[...], Self.attributes(of: subject)[...])
    }

    private static func matches(
        _ pattern: ArraySlice<[UInt8]>, _ subject: ArraySlice<[UInt8]>
    ) -> Bool {
        guard let first = pattern.first else { return subject.isEmpty }
        let rest = pattern.dropFirst()
        if first == anyAttributes {
            return (0...subject.count).contains { matches(rest, subject.dropFirst($0)) }
        }
        guard let attribute = subject.first else { return false }
        return matches(text: first[...], attribute[...]) && matches(rest, subject.dropFirst())
    }

    /// Goes back to the last `*` where the rest does not match: linear in both lengths' product.
    private static func matches(text pattern: ArraySlice<UInt8>, _ text: ArraySlice<UInt8>) -> Bool
    {
        var (here, there) = (pattern.startIndex, text.startIndex)
        var afterStar: (pattern: Int, text: Int)?
        while there < text.endIndex {
            if here < pattern.endIndex, pattern[here] == UInt8(ascii: "*") {
                here += 1
                afterStar = (here, there)
            } else if here < pattern.endIndex, pattern[here] == text[there] {
                here += 1
                there += 1
            } else if let star = afterStar {
                afterStar = (star.pattern, star.text + 1)
                (here, there) = (star.pattern, star.text + 1)
            } else {
                return false
            }
        }
        return pattern[here...].allSatisfy { $0 == UInt8(ascii: "*") }
    }

    /// The parts between commas that are not escaped by a backslash, without spaces before them.
    private static func attributes(of text: String) -> [[UInt8]] {
        var attributes: [[UInt8]] = [[]]
        var isEscaped = false
        for byte in text.utf8 {
            if byte == UInt8(ascii: ","), !isEscaped {
                attributes.append([])
            } else if byte != UInt8(ascii: " ") || !attributes[attributes.count - 1].isEmpty {
                attributes[attributes.count - 1].append(byte)
            }
            isEscaped = byte == UInt8(ascii: "\\") && !isEscaped
        }
        return attributes
    }
}
