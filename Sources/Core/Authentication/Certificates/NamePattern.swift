import HTTPCore
import Trust

/// A pattern for subjects of certificates, written like a name of RFC 4514:
/// `CN=device-*,O=Example`.
///
///     name  = rdn *( "," rdn )
///     rdn   = "**" / attribute *( "+" attribute )
///     attribute = type "=" value       ; CN, O … or an object identifier
///
/// In a value `*` stands for any characters, and a backslash makes the next character, or the byte
/// of two hexadecimal digits, mean itself. `**` stands for any number of relative names. Values are
/// compared as the certificate has them, byte by byte, and never as a text with escapes.
package struct NamePattern: Sendable, Hashable, CustomStringConvertible {
    private enum Part: Sendable, Hashable {
        /// Any number of relative names.
        case any
        /// One with exactly these attributes.
        case attributes([Attribute])
    }

    private struct Attribute: Sendable, Hashable {
        var type: String
        var value: TextPattern
    }

    /// The pattern as written.
    package let description: String
    private let parts: [Part]

    /// The most attributes of a pattern.
    private static let maximumParts = 32

    /// The keywords of RFC 4514 §3 and RFC 4519, and the mail address of RFC 2985.
    private static let types: [String: String] = [
        "CN": "2.5.4.3", "SN": "2.5.4.4", "SERIALNUMBER": "2.5.4.5", "C": "2.5.4.6",
        "L": "2.5.4.7", "ST": "2.5.4.8", "STREET": "2.5.4.9", "O": "2.5.4.10", "OU": "2.5.4.11",
        "TITLE": "2.5.4.12", "GIVENNAME": "2.5.4.42", "DNQUALIFIER": "2.5.4.46",
        "UID": "0.9.2342.19200300.100.1.1", "DC": "0.9.2342.19200300.100.1.25",
        "EMAILADDRESS": "1.2.840.113549.1.9.1",
    ]

    package static let expected = """
        a name such as CN=device-*,O=Example (RFC 4514), with a backslash before characters that \
        mean something
        """

    /// Returns `nil` if the text is no name.
    package init?(_ text: String) {
        var reader = NamePatternReader(rest: Array(text.utf8)[...])
        var parts: [Part] = []
        repeat {
            reader.skipSpaces()
            if reader.take("**") {
                reader.skipSpaces()
                parts.append(.any)
            } else {
                var attributes: [Attribute] = []
                repeat {
                    guard let name = reader.type(), let type = Self.type(name),
                        let value = reader.value()
                    else { return nil }
                    attributes.append(
                        Attribute(type: type, value: TextPattern(parts: value, barrier: nil)))
                } while reader.take("+")
                parts.append(.attributes(attributes))
            }
            guard parts.count <= Self.maximumParts else { return nil }
        } while reader.take(",")
        // Each is tried at every place.
        guard reader.isAtEnd, parts.count(where: { $0 == .any }) <= 2 else { return nil }
        self.parts = parts
        description = text
    }

    /// The object identifier that a type stands for.
    private static func type(_ name: String) -> String? {
        if let known = types[name.uppercased()] { return known }
        let numbers = name.utf8.split(
            separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        let isIdentifier =
            numbers.count > 1
            && numbers.allSatisfy { number in
                (1...10).contains(number.count) && number.allSatisfy(ASCII.isDigit)
                    && (number.count == 1 || number.first != UInt8(ascii: "0"))
            }
        return isIdentifier ? name : nil
    }

    /// How many stars are in its values; `**` counts as two, for it stands for no single text.
    var stars: Int {
        parts.reduce(0) { count, part in
            switch part {
            case .any: count + 2
            case .attributes(let attributes): attributes.reduce(count) { $0 + $1.value.stars }
            }
        }
    }

    /// What the only star stands for in a subject that matches; empty if there is not exactly one.
    /// `nil` if the subject does not match.
    package func match(_ subject: [[CertificateNames.Attribute]]) -> [UInt8]? {
        Self.match(parts[...], subject[...])
    }

    private static func match(
        _ parts: ArraySlice<Part>, _ names: ArraySlice<[CertificateNames.Attribute]>
    ) -> [UInt8]? {
        guard let first = parts.first else { return names.isEmpty ? [] : nil }
        let rest = parts.dropFirst()
        switch first {
        case .any:
            guard !rest.isEmpty else { return [] }
            for count in 0...names.count {
                if let found = match(rest, names.dropFirst(count)) { return found }
            }
            return nil
        case .attributes(let attributes):
            guard let name = names.first, let own = match(attributes, name),
                let others = match(rest, names.dropFirst())
            else { return nil }
            return own.isEmpty ? others : own
        }
    }

    /// A set: in whatever order, each exactly once.
    private static func match(
        _ attributes: [Attribute], _ name: [CertificateNames.Attribute]
    ) -> [UInt8]? {
        guard attributes.count == name.count else { return nil }
        var found: [UInt8] = []
        for attribute in attributes {
            let same = name.filter { $0.type == attribute.type }
            guard same.count == 1, let text = attribute.value.match(same[0].value) else {
                return nil
            }
            if !text.isEmpty { found = text }
        }
        return Set(attributes.map(\.type)).count == attributes.count ? found : nil
    }
}

/// Reads a pattern from left to right.
private struct NamePatternReader {
    var rest: ArraySlice<UInt8>

    var isAtEnd: Bool { rest.isEmpty }

    mutating func skipSpaces() {
        while rest.first == 0x20 { rest.removeFirst() }
    }

    mutating func take(_ text: StaticString) -> Bool {
        let count = text.utf8CodeUnitCount
        let isThere = text.withUTF8Buffer { rest.prefix(count).elementsEqual($0) }
        if isThere { rest.removeFirst(count) }
        return isThere
    }

    /// What is before the equals sign, which is taken as well.
    mutating func type() -> String? {
        skipSpaces()
        guard let equals = rest.firstIndex(of: UInt8(ascii: "=")) else { return nil }
        let name = rest[..<equals]
        rest = rest[(equals + 1)...]
        let isType = name.allSatisfy { byte in
            ASCII.isLetter(byte) || ASCII.isDigit(byte) || byte == UInt8(ascii: ".")
        }
        return isType && !name.isEmpty ? String(decoding: name, as: UTF8.self) : nil
    }

    /// The texts between the stars of a value (RFC 4514 §2.4, §3), up to a comma or plus.
    mutating func value() -> [[UInt8]]? {
        skipSpaces()
        var parts: [[UInt8]] = [[]]
        /// Spaces that count only if something follows them.
        var spaces = 0
        func isEmpty() -> Bool { parts == [[]] }
        while let byte = rest.first {
            if byte == UInt8(ascii: ",") || byte == UInt8(ascii: "+") { break }
            rest.removeFirst()
            if byte == 0x20 {
                spaces += 1
                continue
            }
            parts[parts.count - 1] += [UInt8](repeating: 0x20, count: spaces)
            spaces = 0
            switch byte {
            case UInt8(ascii: "*"): parts.append([])
            case UInt8(ascii: "\\"):
                guard let escaped = escaped() else { return nil }
                parts[parts.count - 1].append(escaped)
            // What has to be escaped; a leading # begins a value in BER.
            case UInt8(ascii: "\""), UInt8(ascii: ";"), UInt8(ascii: "<"), UInt8(ascii: ">"):
                return nil
            case UInt8(ascii: "#") where isEmpty(): return nil
            case 0..<0x20, 0x7F: return nil
            default: parts[parts.count - 1].append(byte)
            }
        }
        return isEmpty() ? nil : parts
    }

    private mutating func escaped() -> UInt8? {
        guard let first = rest.popFirst() else { return nil }
        if let high = ASCII.hexValue(first) {
            guard let second = rest.popFirst(), let low = ASCII.hexValue(second) else { return nil }
            let byte = high << 4 | low
            return byte == 0 ? nil : byte
        }
        return "\\\"+,;<># =*".utf8.contains(first) ? first : nil
    }
}
