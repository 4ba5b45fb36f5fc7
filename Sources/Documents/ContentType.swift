import Notation

/// What a Content-Type field says (RFC 9110, section 8.3).
package struct ContentType: Sendable, Equatable {
    /// Type and subtype in lower case, without parameters.
    package let essence: String
    /// The encoding of a text, in lower case; nil where none is said.
    package let charset: String?

    /// Nil where there is no field, or nothing in it.
    package init?(_ value: String?) {
        guard let value else { return nil }
        if Self.isBare(value) {
            (essence, charset) = (value, nil)
            return
        }
        let parts = value.utf8.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
        let essence = Substring(parts[0]).withoutOuterSpace.lowercasedASCII
        guard !essence.isEmpty else { return nil }
        self.essence = essence
        charset = parts.dropFirst().lazy.compactMap(Self.charset).first
    }

    /// Whether a field has nothing but a type in lower case, as most have.
    private static func isBare(_ value: String) -> Bool {
        !value.isEmpty
            && value.utf8.allSatisfy {
                $0 > 0x20 && $0 != UInt8(ascii: ";") && !(0x41...0x5A).contains($0)
            }
    }

    private static func charset(_ parameter: Substring.UTF8View) -> String? {
        let sides = parameter.split(separator: UInt8(ascii: "="), maxSplits: 1)
        guard sides.count == 2, Substring(sides[0]).withoutOuterSpace.lowercasedASCII == "charset"
        else { return nil }
        let value = Substring(sides[1]).withoutOuterSpace.filter { $0 != "\"" }.lowercasedASCII
        return value.isEmpty ? nil : value
    }

    /// The encoding that the type says XML is in; nil where it says none, or where the content
    /// begins with a byte order mark, which counts more (RFC 7303, section 3).
    package func charset(ofXML content: [UInt8]) -> String? {
        let marks: [[UInt8]] = [[0xEF, 0xBB, 0xBF], [0xFE, 0xFF], [0xFF, 0xFE]]
        return marks.contains { content.starts(with: $0) } ? nil : charset
    }
}

extension DocumentFormat {
    /// The media types of the format, in lower case; the first is the one that is written.
    public var mediaTypes: [String] {
        switch self {
        case .json: Self.typesOfJSON
        case .xml: Self.typesOfXML
        case .plist: Self.typesOfPropertyLists
        case .form: Self.typesOfForms
        case .multipart: Self.typesOfMultipart
        }
    }

    private static let typesOfJSON = ["application/json", "text/json", "text/javascript"]
    private static let typesOfXML = ["application/xml", "text/xml"]
    private static let typesOfPropertyLists = ["application/x-plist"]
    private static let typesOfForms = ["application/x-www-form-urlencoded"]
    private static let typesOfMultipart = ["multipart/form-data"]

    /// Whether content of a type (in lower case, without parameters) has the format: one of
    /// ``mediaTypes``, or a type that says so by its suffix (RFC 6839, `+json` and `+xml`).
    package func isFormat(of essence: String) -> Bool {
        switch self {
        case .json where essence.hasPrefix("application/") && essence.hasSuffix("+json"): true
        case .xml where essence.hasSuffix("+xml"): true
        default: mediaTypes.contains(essence)
        }
    }
}
