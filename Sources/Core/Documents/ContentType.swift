import HTTPCore

/// The value of a Content-Type field (RFC 9110 §8.3).
package struct ContentType: Sendable, Equatable {
    /// Type and subtype in lower case, without parameters; ``malformed`` if the value does not
    /// follow the grammar of media types (``MediaTypeSyntax``).
    package let essence: String
    /// The character encoding, in lower case; `nil` if none is given.
    package let charset: String?
    /// The field's value.
    private let value: String

    /// The essence of a malformed value: not the type of any content.
    package static let malformed = "malformed"

    /// `nil` if there is no field, or no type in it.
    package init?(_ value: String?) {
        guard let value else { return nil }
        let beginning = value.utf8.prefix { $0 != UInt8(ascii: ";") }
        let type = Substring(beginning).withoutOuterSpace.lowercasedASCII
        // There may still be a type after a comma.
        guard !type.isEmpty || value.utf8.contains(UInt8(ascii: ",")) else { return nil }
        self.value = value
        let bytes = Array(value.utf8)
        var charset: String?
        let essence = MediaTypeSyntax.read(bytes.span) { name, content in
            guard charset == nil, bytes[name].map(ASCII.lowercased).elementsEqual("charset".utf8)
            else { return }
            let text = String(decoding: bytes[content], as: UTF8.self)
            charset = text.isEmpty ? nil : text.lowercasedASCII
        }
        self.essence = essence == nil ? Self.malformed : type
        self.charset = essence == nil ? nil : charset
    }

    /// How a user agent interprets a response's field, even if its parameters are malformed: for
    /// `application/json; utf-8` and `application/json charset=utf-8` it uses the type in front,
    /// and no charset. After a comma there may be another type, and nobody can tell which of two is
    /// meant.
    ///
    /// Not for rules about what may pass: whoever writes the field would choose what the rules see.
    package init?(ofResponse value: String?) {
        guard let value, let strict = ContentType(value) else { return nil }
        guard strict.essence == Self.malformed, !value.utf8.contains(UInt8(ascii: ",")) else {
            self = strict
            return
        }
        let front = Substring(value).withoutOuterSpace.utf8.prefix {
            $0 != UInt8(ascii: ";") && !ASCII.isWhitespace($0)
        }
        self = ContentType(String(Substring(front))) ?? strict
    }

    /// The character encoding of XML according to its type; `nil` if the type names none, or if the
    /// content begins with a byte order mark, which takes precedence (RFC 7303 §3).
    package func charset(ofXML content: [UInt8]) -> String? {
        let marks: [[UInt8]] = [[0xEF, 0xBB, 0xBF], [0xFE, 0xFF], [0xFF, 0xFE]]
        return marks.contains { content.starts(with: $0) } ? nil : charset
    }
}

extension ContentType {
    /// Whether some reader may take the content for a type. If the value is not a media type,
    /// readers use one or another part of the list that it resembles: browsers the last, others the
    /// first.
    ///
    /// - Parameter isRight: called with types in lower case.
    package func mayBe(_ isRight: (String) -> Bool) -> Bool {
        guard essence == Self.malformed else { return isRight(essence) }
        return value.utf8.split(separator: UInt8(ascii: ",")).contains { member in
            // Some parse a type up to white space, a semicolon or a parenthesis, some up to
            // whatever cannot be part of one.
            let type = member.drop(while: ASCII.isWhitespace).prefix {
                $0 == UInt8(ascii: "/") || ASCII.isToken($0)
            }
            return isRight(Substring(type).lowercasedASCII)
        }
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

    /// Whether content with this type (in lower case, without parameters) has the format: one of
    /// ``mediaTypes``, or a type with a corresponding suffix (RFC 6839, `+json` and `+xml`).
    package func isFormat(of essence: String) -> Bool {
        switch self {
        case .json where essence.hasPrefix("application/") && essence.hasSuffix("+json"): true
        case .xml where essence.hasSuffix("+xml"): true
        default: mediaTypes.contains(essence)
        }
    }
}
