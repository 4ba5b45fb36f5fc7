/// The TLS settings of a listener.
package struct ListenerTLS: Sendable, Equatable {
    /// The minimum TLS version.
    package enum Minimum: String, Sendable, Equatable, CaseIterable {
        case tls10 = "1.0"
        case tls11 = "1.1"
        case tls12 = "1.2"
        case tls13 = "1.3"
    }

    /// Whether clients must show a certificate, if there are issuers for them.
    package enum ClientCertificates: String, Sendable, Equatable, CaseIterable {
        case required
        /// One that is shown must be valid. Who shows none has to prove otherwise who they are.
        case optional
    }

    /// A certificate with its key; the files are read when the configuration is loaded.
    package struct Certificate: Sendable, Equatable {
        /// The absolute path of the certificate, followed in the file by those that lead to its
        /// anchor.
        package var path: String
        /// Their PEM.
        package var chain: [UInt8]
        /// The absolute path of the private key.
        package var keyPath: String
        /// Its PEM.
        package var key: [UInt8]
        /// The absolute path of the certificate's OCSP response; `nil` if there is none.
        package var staplePath: String?
        /// The response, in DER.
        package var staple: [UInt8]?

        /// Creates a certificate without an OCSP response.
        package init(path: String, chain: [UInt8], keyPath: String, key: [UInt8]) {
            self.path = path
            self.chain = chain
            self.keyPath = keyPath
            self.key = key
        }
    }

    /// The certificates to present, selected by the name that the client requests; the first one is
    /// the default. Not empty.
    package var certificates: [Certificate] = []
    /// The minimum TLS version.
    package var minimum = Minimum.tls12
    /// The issuers accepted for clients' certificates; empty if clients are not asked for one.
    package var clientRoots: [TrustRoots] = []
    /// Whether clients must show a certificate of one of these.
    package var clientCertificates = ClientCertificates.required
    /// The subjects of clients' certificates that are accepted; empty for all.
    package var clientSubjects: [SubjectPattern] = []

    /// Creates the defaults, without a certificate.
    package init() {}

    /// Whether a connection that was made under `other` is as good as a new one: whatever the
    /// certificate was, the client has proved what is required now.
    package func admits(connectionsOf other: ListenerTLS) -> Bool {
        clientRoots == other.clientRoots && minimum == other.minimum
            && clientCertificates == other.clientCertificates
    }

    /// Whether a client is served.
    /// - Parameter subject: the subject of the certificate that it authenticated with; `nil` if
    ///   none.
    package func serves(subject: String?) -> Bool {
        guard let subject else { return clientRoots.isEmpty || clientCertificates == .optional }
        return clientSubjects.isEmpty || clientSubjects.contains { $0.matches(subject) }
    }
}

/// A pattern for certificate subjects, in the format of RFC 2253: `CN=device-*,O=Example`.
///
/// `*` stands for any characters within one attribute, and `**` for any number of attributes.
/// Comparison is case-sensitive.
package struct SubjectPattern: Sendable, Hashable, CustomStringConvertible {
    /// The pattern as written.
    package let description: String
    private let attributes: [[UInt8]]

    /// Subjects are reported with at most this many bytes: one of this length may be truncated.
    private static let subjectBytes = 256
    private static let anyAttributes = Array("**".utf8)

    /// Returns `nil` if the text is not a list of attributes.
    package init?(_ text: String) {
        description = text
        attributes = Self.attributes(of: text)
        let areValid = attributes.allSatisfy { attribute in
            attribute == Self.anyAttributes
                || attribute.contains(UInt8(ascii: "=")) && attribute.first != UInt8(ascii: "=")
        }
        guard areValid, text.utf8.count < Self.subjectBytes else { return nil }
    }

    /// Whether a subject matches; one that may have been truncated does not.
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

    /// Backtracks to the last `*` if the rest does not match: the time is proportional to the
    /// product of the lengths.
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

    /// The parts between commas that are not escaped by a backslash, without leading spaces.
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
